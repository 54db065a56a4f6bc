package api

import (
	"crypto/sha256"
	"net/http"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// login logs in with the test's password.
func (e *env) login(p person) *reply {
	e.t.Helper()
	return e.do(post, "/api/v1/users/login", map[string]any{"email": p.Email, "password": testPassword}).want(http.StatusOK)
}

// TestC2SessionRowIsNoToken plays somebody who writes to the database: a row with the hash of a chosen text, the hash of
// an own token in the session of another account, and the hash of an own password in another account's row.
func TestC2SessionRowIsNoToken(t *testing.T) {
	e := start(t)
	admin, thief := e.person(exchange.RoleAdmin), e.person(exchange.RoleCustomer)
	refresh := func(text string) *reply {
		return e.do(post, "/api/v1/auth/refresh", map[string]any{"refresh_token": text})
	}
	const chosen = "a text that its writer chose"
	now := time.Now().UTC()
	row := store.Session{
		ID: newID(), FamilyID: newID(), UserID: admin.ID, TokenHash: sha256.Sum256([]byte(chosen)), Assurance: exchange.AssurancePassword,
		CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
	if err := e.store.CreateSession(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	refresh(chosen).refused(exchange.CodeUnauthenticated)

	own := e.login(thief).text("refresh_token")
	hash := sha256.Sum256([]byte(own))
	db := storetest.Owner(t, e.store)
	if _, err := db.ExecContext(t.Context(), `UPDATE session_families SET user_id = $1 WHERE user_id = $2`, admin.ID, thief.ID); err == nil {
		t.Error("a session changed its user")
	}
	storetest.Exec(t, e.store, `DELETE FROM sessions WHERE token_hash = $1`, hash[:])
	storetest.Exec(t, e.store, `UPDATE sessions SET token_hash = $1 WHERE family_id = $2`, hash[:], row.FamilyID)
	refresh(own).refused(exchange.CodeUnauthenticated)

	storetest.Exec(t, e.store, `UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE id = $1) WHERE id = $2`, thief.ID, admin.ID)
	e.do(post, "/api/v1/users/login", map[string]any{"email": admin.Email, "password": testPassword}).refused(exchange.CodeInvalidCredentials)
}

func TestSessionsAreListedAndEnded(t *testing.T) {
	e := start(t)
	p, other := e.person(exchange.RoleCustomer), e.person(exchange.RoleCustomer)
	phone := e.do(post, "/api/v1/users/login", map[string]any{"email": p.Email, "password": testPassword}, header("User-Agent", "phone")).want(http.StatusOK)
	list := e.do(get, "/api/v1/auth/sessions", nil, p.auth()).want(http.StatusOK).object()["sessions"].([]any)
	first, second := list[0].(map[string]any), list[1].(map[string]any)
	if len(list) != 2 || first["id"] != phone.text("session_id") || first["current"] != false || first["user_agent"] != "phone" ||
		first["assurance"] != "password" || second["current"] != true {
		t.Fatalf("sessions %v", list)
	}
	path := "/api/v1/auth/sessions/" + phone.text("session_id")
	e.do(del, path, nil, other.auth()).refused(exchange.CodeNotFound)
	e.do(del, path, nil, p.auth()).want(http.StatusNoContent)
	e.do(get, "/api/v1/auth/user/me", nil, bearer(phone.text("access_token"))).refused(exchange.CodeUnauthenticated)
	e.do(post, "/api/v1/auth/refresh", map[string]any{"refresh_token": phone.text("refresh_token")}).refused(exchange.CodeUnauthenticated)
	e.do(del, path, nil, p.auth()).want(http.StatusNoContent)
}

// TestStaffSessionsEndWhenIdle checks that 15 minutes without a request end a session of staff, and that a refresh alone
// does not prolong it. Customers stay logged in.
func TestStaffSessionsEndWhenIdle(t *testing.T) {
	e := start(t)
	idle := func(p person) {
		storetest.Exec(t, e.store, `ALTER TABLE session_families DISABLE TRIGGER session_families_grow;
			UPDATE session_families SET seen_at = seen_at - interval '15 minutes' WHERE user_id = '`+p.ID.String()+`';
			ALTER TABLE session_families ENABLE TRIGGER session_families_grow`)
		e.server.sessions.forgetAll()
	}
	for _, role := range exchange.Roles() {
		if role == exchange.RoleSubvendor {
			continue
		}
		p := e.person(role)
		tokens := e.login(p)
		e.do(get, "/api/v1/auth/user/me", nil, bearer(tokens.text("access_token"))).want(http.StatusOK)
		idle(p)
		want := http.StatusOK
		if role.Staff() {
			want = http.StatusUnauthorized
		}
		e.do(get, "/api/v1/auth/user/me", nil, bearer(tokens.text("access_token"))).want(want)
		e.do(post, "/api/v1/auth/refresh", map[string]any{"refresh_token": tokens.text("refresh_token")}).want(want)
	}
	admin := e.person(exchange.RoleAdmin)
	tokens := e.login(admin)
	storetest.Exec(t, e.store, `ALTER TABLE session_families DISABLE TRIGGER session_families_grow;
		UPDATE session_families SET seen_at = seen_at - interval '10 minutes';
		ALTER TABLE session_families ENABLE TRIGGER session_families_grow`)
	seen := func() (at time.Time) {
		for _, l := range must(e.store.Sessions(t.Context(), admin.ID)) {
			if l.ID.String() == tokens.text("session_id") {
				at = l.SeenAt
			}
		}
		return at
	}
	before := seen()
	again := e.do(post, "/api/v1/auth/refresh", map[string]any{"refresh_token": tokens.text("refresh_token")}).want(http.StatusOK)
	if !seen().Equal(before) {
		t.Error("a refresh counts as use of a session of staff")
	}
	e.do(get, "/api/v1/auth/user/me", nil, bearer(again.text("access_token"))).want(http.StatusOK)
	if !seen().After(before) {
		t.Error("a request does not count as use")
	}
}

// must returns a value that is there.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestPasswordIsChanged(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleVendor)
	elsewhere := e.session(p.User)
	const path, next = "/api/v1/auth/user/me/password", "quite another good one"
	e.do(put, path, map[string]any{"password": "not it", "new_password": next}, p.auth()).blames("/password wrong")
	e.do(put, path, map[string]any{"password": testPassword, "new_password": "password123"}, p.auth()).blames("/new_password too_common")
	e.do(put, path, map[string]any{"password": testPassword, "new_password": next}, p.auth()).want(http.StatusNoContent)
	e.do(get, "/api/v1/auth/user/me", nil, p.auth()).want(http.StatusOK)
	e.do(get, "/api/v1/auth/user/me", nil, elsewhere.auth()).refused(exchange.CodeUnauthenticated)
	e.do(post, "/api/v1/users/login", map[string]any{"email": p.Email, "password": testPassword}).refused(exchange.CodeInvalidCredentials)
	e.do(post, "/api/v1/users/login", map[string]any{"email": p.Email, "password": next}).want(http.StatusOK)
}

// TestC4StaffHaveNoPIN checks that four digits open no account of staff, even if its row has the hash of a PIN.
func TestC4StaffHaveNoPIN(t *testing.T) {
	e := start(t)
	for _, role := range exchange.Roles() {
		if !role.Staff() {
			continue
		}
		p := e.person(role)
		if err := e.store.SetPIN(t.Context(), p.ID, e.cheapHash(pinOf(p.ID, "73915")), principalOf(p)); err != nil {
			t.Fatal(err)
		}
		e.do(post, "/api/v1/users/login-pin", map[string]any{"email": p.Email, "pin": "73915"}).refused(exchange.CodeInvalidCredentials)
		e.do(put, "/api/v1/auth/user/id/"+p.ID.String()+"/pin", map[string]any{"pin": "73915", "password": testPassword}, p.auth()).refused(exchange.CodeUnsupported)
		now := time.Now().UTC()
		err := e.store.CreateSession(t.Context(), store.Session{
			ID: newID(), FamilyID: newID(), UserID: p.ID, TokenHash: sha256.Sum256(p.ID[:]), Assurance: exchange.AssurancePIN, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		})
		if err == nil {
			t.Errorf("a session of %s began with a PIN", role)
		}
	}
}

// TestPeppersRotate logs in under the new pepper with hashes of the old one, which are renewed by it.
func TestPeppersRotate(t *testing.T) {
	old, next := testKey("old", 1), testKey("new", 2)
	e := start(t, func(d *Deps) { d.Config.Peppers = []Key{old} })
	p := e.person(exchange.RoleCustomer)
	both := startOn(t, e.store, func(d *Deps) { d.Config.Peppers = []Key{next, old} })
	e.login(p)
	both.login(p)
	alone := startOn(t, e.store, func(d *Deps) { d.Config.Peppers = []Key{next} })
	alone.login(p)
	e.do(post, "/api/v1/users/login", map[string]any{"email": p.Email, "password": testPassword}).refused(exchange.CodeInvalidCredentials)
}
