package api

import (
	"net/http"
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// TestSwitchedOffMerchantStaysOff lets a merchant keep the link of an invitation to new secrets and be switched off: the
// link is gone. A later one renews the secrets, and only an admin switches the account on.
func TestSwitchedOffMerchantStaysOff(t *testing.T) {
	e := start(t)
	admin, vendor := e.person(exchange.RoleAdmin), e.person(exchange.RoleVendor)
	account := "/api/v1/auth/users/" + vendor.ID.String()
	set := func(active bool) {
		t.Helper()
		e.do(patch, account, map[string]any{"is_active": active}, admin.auth()).want(http.StatusOK)
	}
	invite := func() {
		t.Helper()
		e.do(post, "/api/v1/auth/invitations", map[string]any{"user_id": vendor.ID}, admin.auth()).want(http.StatusCreated)
	}
	invite()
	old := e.found(vendor.Email, `#([A-Za-z0-9_-]+)`)
	set(false)
	e.do(post, "/api/v1/users/invitations/accept", map[string]any{"token": old, "password": "quite another good one"}).refused(exchange.CodeNotFound)
	invite()
	made := e.accept(vendor.Email, "quite another good one", nil).want(http.StatusCreated)
	if made.object()["is_active"] != false {
		t.Errorf("accepted %s", made.body)
	}
	login := map[string]any{"email": vendor.Email, "password": "quite another good one"}
	e.do(post, "/api/v1/users/login", login).refused(exchange.CodeInvalidCredentials)
	set(true)
	e.do(post, "/api/v1/users/login", login).want(http.StatusOK)
}

// TestTakenPhonesStopNoInvitation lets others have the phones of an officer who lost the secrets, and of a person who is
// invited. Either gets an account, without a phone until a code proves one.
func TestTakenPhonesStopNoInvitation(t *testing.T) {
	e := start(t)
	admin, lost := e.person(exchange.RoleAdmin), e.person(exchange.RoleOTCOfficer)
	storetest.Exec(t, e.store, `UPDATE users SET phone_proven_at = NULL WHERE id = $1`, lost.ID)
	storetest.Exec(t, e.store, `UPDATE users SET phone_number = NULL WHERE id = $1`, lost.ID)
	sent := e.do(post, "/api/v1/auth/invitations", map[string]any{"user_id": lost.ID}, admin.auth()).want(http.StatusCreated)
	if sent.text("phone_number") != "" {
		t.Errorf("invited %s", sent.body)
	}
	e.accept(lost.Email, "quite another good one", newAuthenticator()).want(http.StatusCreated)

	squat := registration("11000781")
	squat["email"] = "squatter@example.com"
	id, _ := parseID(e.do(post, "/api/v1/users/register", squat).want(http.StatusCreated).text("id"))
	e.wallet(person{User: exchange.User{ID: id, Role: exchange.RoleUser}}) // its claim never lapses by itself
	body := invited("11000781")
	body["role"] = "vendor"
	e.do(post, "/api/v1/auth/invitations", body, admin.auth()).want(http.StatusCreated)
	made := e.accept("11000781@example.com", testPassword, nil).want(http.StatusCreated)
	if made.text("phone_number") != "" || made.object()["is_active"] != true {
		t.Errorf("accepted %s", made.body)
	}
	tokens := e.do(post, "/api/v1/users/login", map[string]any{"email": "11000781@example.com", "password": testPassword}).want(http.StatusOK)
	me := bearer(tokens.text("access_token"))
	const path = "/api/v1/auth/user/me/verifications"
	code := e.do(post, path, map[string]any{"phone_number": "0711000781"}, me).want(http.StatusAccepted).text("id")
	proven := e.do(post, path+"/"+code+"/confirm", map[string]any{"code": e.code("254711000781")}, me).want(http.StatusOK)
	if proven.text("phone_number") != "254711000781" {
		t.Errorf("proven %s", proven.body)
	}
}
