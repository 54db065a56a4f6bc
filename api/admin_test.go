package api

import (
	"testing"

	"kivuko/exchange"
)

func TestFirstAdmin(t *testing.T) {
	e := start(t)
	admin := FirstAdmin{Email: "Root@example.com", PhoneNumber: "0711999999", FirstName: "First", LastName: "Admin", Password: testPassword}
	user := e.person(exchange.RoleUser)
	taken, weak, later := admin, admin, admin
	taken.Email, weak.Password = user.Email, "password123"
	if _, err := EnsureAdmin(t.Context(), e.store, e.server.Config.Peppers[0], taken); exchange.CodeOf(err) != exchange.CodeConflict {
		t.Errorf("a user's address: %v", err)
	}
	for i, want := range []bool{true, false} {
		if made, err := EnsureAdmin(t.Context(), e.store, e.server.Config.Peppers[0], admin); made != want || err != nil {
			t.Errorf("call %d: %v, %v", i, made, err)
		}
	}
	tokens := e.do(post, "/api/v1/users/login", map[string]any{"email": "root@example.com", "password": testPassword}).want(200)
	id, _ := parseID(tokens.object()["user"].(map[string]any)["id"].(string))
	first := person{User: exchange.User{ID: id, Role: exchange.RoleAdmin}, token: tokens.text("access_token")}
	e.do(get, "/api/v1/auth/users", nil, first.auth()).refused(exchange.CodeStepUpRequired)
	e.stepUp(first, e.enrol(first)).want(200) // an account without a passkey adds one by its password
	e.do(get, "/api/v1/auth/users", nil, first.auth()).want(200)
	later.Email, later.PhoneNumber = "second@example.com", "0711999998"
	if made, err := EnsureAdmin(t.Context(), e.store, e.server.Config.Peppers[0], later); made || err != nil {
		t.Errorf("another address in the configuration made another admin: %v, %v", made, err)
	}
	if _, err := EnsureAdmin(t.Context(), e.store, e.server.Config.Peppers[0], weak); exchange.CodeOf(err) != exchange.CodeInvalid {
		t.Errorf("a weak password: %v", err)
	}
}
