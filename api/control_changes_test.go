package api

import (
	"net/http"
	"testing"

	"kivuko/exchange"
)

const changesPath = "/api/v1/auth/approvals/changes"

// A second officer sees what waits, and confirms it; the API shows each step.
func TestTwoOfficersRaiseTheApprovalValues(t *testing.T) {
	c := newCrossing(t, "1")
	colleague := c.person(exchange.RoleAdmin)
	higher := map[string]any{"approvals": map[string]any{"transfer": map[string]any{"one_above": "300000", "two_above": "3000000"}}}
	waits := c.do(patch, "/api/v1/auth/limits", higher, c.admin.auth()).want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
	id := waits["id"].(string)
	if waits["kind"] != "house_limits" || waits["subject_id"] != nil || waits["status"] != "pending" || waits["proposed_by"] != c.admin.ID.String() {
		t.Errorf("waits %v", waits)
	}
	asked := func(who person) int {
		return len(c.do(get, "/api/v1/auth/approvals/pending", nil, who.auth()).want(http.StatusOK).object()["changes"].([]any))
	}
	if asked(c.admin) != 0 || asked(colleague) != 1 || asked(c.officers[0]) != 1 {
		t.Errorf("%d, %d and %d wait", asked(c.admin), asked(colleague), asked(c.officers[0]))
	}
	verb := func(who person, name string, body any) *reply {
		return c.do(post, changesPath+"/"+id+"/"+name, body, who.auth(), withKey(newID().String()))
	}
	verb(c.admin, "confirm", nil).refused(exchange.CodeForbidden)
	verb(c.sender, "confirm", nil).refused(exchange.CodeForbidden)
	verb(colleague, "reject", nil).blames("/note required")
	rule := func() any {
		return c.do(get, "/api/v1/auth/limits", nil, c.admin.auth()).want(http.StatusOK).object()["approvals"].(map[string]any)["transfer"].(map[string]any)["one_above"]
	}
	if rule() != "200000.00" {
		t.Errorf("before anybody confirmed %v", rule())
	}
	done := verb(colleague, "confirm", map[string]any{"note": "as agreed on Monday"}).want(http.StatusOK).object()
	if done["status"] != "confirmed" || done["decided_by"] != colleague.ID.String() || done["note"] != "as agreed on Monday" || rule() != "300000.00" {
		t.Errorf("confirmed %v, asked above %v", done, rule())
	}
	verb(c.officers[0], "reject", map[string]any{"note": "no"}).refused(exchange.CodeStateConflict)
	if got := c.do(get, changesPath+"/"+id, nil, c.officers[0].auth()).want(http.StatusOK); got.text("status") != "confirmed" {
		t.Errorf("read %s", got.body)
	}
	c.do(get, changesPath+"/"+newID().String(), nil, c.admin.auth()).refused(exchange.CodeNotFound)
	if list := c.do(get, changesPath+"?status=confirmed", nil, c.admin.auth()).want(http.StatusOK).object(); list["total"] != 1.0 {
		t.Errorf("%v changes were confirmed", list["total"])
	}
	c.do(get, changesPath+"?status=done", nil, c.admin.auth()).refused(exchange.CodeInvalid)

	// Lowering limits needs no second officer, and a proposer may withdraw a change.
	lower := map[string]any{"approvals": map[string]any{"transfer": map[string]any{"one_above": "1", "two_above": "2"}}}
	c.do(patch, "/api/v1/auth/limits", lower, c.admin.auth()).want(http.StatusOK)
	id = c.do(patch, "/api/v1/auth/limits", higher, c.admin.auth()).want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)["id"].(string)
	if got := verb(c.admin, "reject", map[string]any{"note": "a slip"}).want(http.StatusOK); got.text("status") != "rejected" {
		t.Errorf("taken back %s", got.body)
	}
}

// The approval values of refunds in crypto and payments by bank are changed in the same way.
func TestTwoOfficersRaiseTheRulesOfPayouts(t *testing.T) {
	c := newCrossing(t, "1")
	const path = "/api/v1/auth/limits"
	rules := func(all map[string]any) map[string]any { return map[string]any{"approvals": all} }
	shown := func() map[string]any {
		return c.do(get, path, nil, c.admin.auth()).want(http.StatusOK).object()["approvals"].(map[string]any)
	}
	if bank := shown()["bank_payout"].(map[string]any); len(bank) != 1 || bank["two_above"] != "200000.00" {
		t.Errorf("a payment by bank needs two above %v", bank)
	}
	c.do(patch, path, rules(map[string]any{"bank_payout": map[string]any{"one_above": "1", "two_above": "2"}}), c.admin.auth()).
		blames("/approvals/bank_payout/one_above unknown_field")
	c.do(patch, path, rules(map[string]any{"swap": map[string]any{}}), c.admin.auth()).blames("/approvals/swap unknown_field")
	c.do(patch, path, rules(map[string]any{}), c.admin.auth()).blames(" required")

	c.do(patch, path, rules(map[string]any{"bank_payout": map[string]any{"two_above": "1000"}}), c.admin.auth()).want(http.StatusOK)
	waits := c.do(patch, path, rules(map[string]any{
		"bank_payout": map[string]any{"two_above": "500000"}, "refund": map[string]any{"one_above": "10", "two_above": "20"},
	}), c.admin.auth())
	change := waits.want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
	if asked := change["change"].(map[string]any)["approvals"].(map[string]any); len(asked) != 1 || asked["bank_payout"].(map[string]any)["two_above"] != "500000.00" {
		t.Errorf("what waits is %v", asked)
	}
	if now := shown(); now["refund"].(map[string]any)["one_above"] != "10.00" || now["bank_payout"].(map[string]any)["two_above"] != "1000.00" {
		t.Errorf("before the confirmation the rules are %v", now)
	}
	c.confirm(waits, c.officers[0]).want(http.StatusOK)
	if now := shown(); now["bank_payout"].(map[string]any)["two_above"] != "500000.00" || now["transfer"].(map[string]any)["one_above"] != "200000.00" {
		t.Errorf("confirmed, the rules are %v", now)
	}
}

// Two admins activate an account that may approve; it can't log in before.
func TestTwoOfficersActivateAnOfficer(t *testing.T) {
	c := newCrossing(t, "1")
	body := invited("11000777")
	body["role"] = "treasury"
	c.do(post, "/api/v1/auth/invitations", body, c.admin.auth(), withKey("officer")).want(http.StatusCreated)
	made := c.accept("11000777@example.com", testPassword, newAuthenticator()).want(http.StatusCreated)
	login := map[string]any{"email": "11000777@example.com", "password": testPassword}
	c.do(post, "/api/v1/users/login", login).refused(exchange.CodeInvalidCredentials)
	list := c.do(get, changesPath+"?subject_id="+made.text("id"), nil, c.officers[0].auth()).want(http.StatusOK).object()["changes"].([]any)
	waiting := list[0].(map[string]any)
	if len(list) != 1 || waiting["kind"] != "staff_access" {
		t.Fatalf("waits %v", list)
	}
	c.do(post, changesPath+"/"+waiting["id"].(string)+"/confirm", nil, c.officers[0].auth(), withKey("in")).want(http.StatusOK)
	c.do(post, "/api/v1/users/login", login).want(http.StatusOK)

	user := "/api/v1/auth/users/" + waiting["subject_id"].(string)
	c.do(patch, user, map[string]any{"is_active": false}, c.admin.auth()).want(http.StatusOK)
	c.do(post, "/api/v1/users/login", login).refused(exchange.CodeInvalidCredentials)
	back := c.do(patch, user, map[string]any{"is_active": true}, c.admin.auth())
	c.do(post, "/api/v1/users/login", login).refused(exchange.CodeInvalidCredentials)
	c.confirm(back, c.officers[1]).want(http.StatusOK)
	c.do(post, "/api/v1/users/login", login).want(http.StatusOK)

	limits := map[string]any{"limits": map[string]any{"per_transaction": "250001"}}
	raise := c.do(patch, "/api/v1/auth/users/"+c.sender.ID.String(), limits, c.admin.auth())
	c.confirm(raise, c.officers[0]).want(http.StatusOK)
	if got := c.do(get, "/api/v1/auth/users/"+c.sender.ID.String(), nil, c.admin.auth()).want(http.StatusOK).object()["limits"].(map[string]any); got["effective"].(map[string]any)["per_transaction"] != "250001.00" {
		t.Errorf("limits %v", got)
	}
}

// New destinations rest longer by one officer's word, and less by that of two.
func TestDestinationsRestByTheLimits(t *testing.T) {
	c := newCrossing(t, "1")
	change := func(seconds int, above string) *reply {
		return c.do(patch, "/api/v1/auth/limits", map[string]any{"new_destinations": map[string]any{"rest_seconds": seconds, "rest_above": above}}, c.admin.auth())
	}
	shown := func() map[string]any {
		t.Helper()
		return c.do(get, "/api/v1/auth/limits", nil, c.admin.auth()).want(http.StatusOK).object()["new_destinations"].(map[string]any)
	}
	change(172800, "100000").want(http.StatusOK)
	if got := shown(); got["rest_seconds"] != 172800.0 || got["rest_above"] != "100000.00" {
		t.Errorf("new destinations rest %v", got)
	}
	waits := change(3600, "100000").want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
	if got := shown(); waits["kind"] != "house_limits" || got["rest_seconds"] != 172800.0 {
		t.Errorf("%v waits, and new destinations rest %v", waits, got)
	}
	c.do(post, changesPath+"/"+waits["id"].(string)+"/confirm", nil, c.officers[0].auth(), freshKey()).want(http.StatusOK)
	if got := shown(); got["rest_seconds"] != 3600.0 {
		t.Errorf("two agreed, and new destinations rest %v", got)
	}
	change(604801, "1").blames("/new_destinations/rest_seconds out_of_range")
	c.do(patch, "/api/v1/auth/limits", map[string]any{"new_destinations": map[string]any{"rest_seconds": 1}}, c.admin.auth()).blames("/new_destinations/rest_above required")
}
