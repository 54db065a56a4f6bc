package api

import (
	"net/http"
	"testing"

	"kivuko/exchange"
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
