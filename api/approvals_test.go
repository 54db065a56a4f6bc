package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
)

const tokensPath = "/api/v1/auth/approvals/tokens"

// pending opens a transfer that waits for officers and returns it as an officer sees it.
func (c *crossing) pending(amount string) map[string]any {
	c.t.Helper()
	id := c.send(away(amount)).want(http.StatusCreated).text("id")
	return c.do(get, transfersPath+"/"+id, nil, c.admin.auth()).want(http.StatusOK).object()
}

func tokenRequest(t map[string]any) map[string]any {
	return map[string]any{
		"object_type": "transfer", "object_id": t["id"], "action": "approve", "amount": t["amount"], "digest": t["approval_digest"],
	}
}

func TestOfficersApproveThroughTheAPI(t *testing.T) {
	c := newCrossing(t, "100")
	c.rule("1000")
	one, two := c.officers[0], c.officers[1]
	f := c.pending("10")
	id := f["id"].(string)
	if f["status"] != "pending_approval" || f["approvals_required"] != 2.0 {
		t.Fatalf("pending %v", f)
	}
	list := func(p person) float64 {
		return c.do(get, "/api/v1/auth/approvals/pending", nil, p.auth()).want(http.StatusOK).object()["total"].(float64)
	}
	if list(one) != 1 {
		t.Error("nothing waits for the officer")
	}
	c.verb(c.sender, id, "approve", nil, "a").refused(exchange.CodeForbidden)
	c.verb(one, id, "approve", map[string]any{"digest": strings.Repeat("0", 64)}, "b").blames("/digest mismatch")
	for verb, blamed := range map[string][]string{"approve": {"/digest required"}, "reject": {"/note required", "/digest required"}} { // D7
		c.doIn(t, post, transfersPath+"/"+id+"/"+verb, map[string]any{}, one.auth(), freshKey()).blames(blamed...)
	}
	seen := map[string]any{"digest": f["approval_digest"]}
	first := c.verb(one, id, "approve", map[string]any{"digest": f["approval_digest"]}, "d").want(http.StatusOK).object()
	if first["status"] != "pending_approval" || first["approvals_given"] != 1.0 || first["status_detail"] != "second_approval" {
		t.Errorf("after one %v", first)
	}
	if list(one) != 0 || list(two) != 1 {
		t.Errorf("%v and %v wait", list(one), list(two))
	}
	c.verb(one, id, "approve", seen, "e").refused(exchange.CodeConflict)
	c.verb(one, id, "reject", map[string]any{"note": "no", "digest": f["approval_digest"]}, "f").refused(exchange.CodeConflict)
	second := c.verb(two, id, "approve", seen, "g").want(http.StatusOK).object()
	if second["status"] != "queued" || second["approvals_given"] != 2.0 {
		t.Errorf("after two %v", second)
	}
	c.verb(c.officers[2], id, "approve", seen, "h").refused(exchange.CodeStateConflict)
	no := c.pending("11")
	if got := c.verb(two, no["id"].(string), "reject", map[string]any{"note": "unknown recipient", "digest": no["approval_digest"]}, "i").want(http.StatusOK).object(); got["status"] != "rejected" {
		t.Errorf("rejected %v", got)
	}
	c.verb(two, newID().String(), "approve", seen, "j").refused(exchange.CodeNotFound)
}

// A retry with the same key finds a decision whose response was lost, also when it ended the flow.
func TestDecisionRepeatedAfterAnUnknownOutcome(t *testing.T) {
	c := newCrossing(t, "100")
	c.rule("1000000")
	f := c.pending("10")
	id, seen := f["id"].(string), map[string]any{"digest": f["approval_digest"]}
	c.flows.failWith(exchange.Errorf(exchange.CodeUnavailable, "no answer"))
	c.verb(c.officers[0], id, "approve", seen, "k").refused(exchange.CodeUnavailable)
	c.flows.takes = true
	if got := c.verb(c.officers[0], id, "approve", seen, "k").want(http.StatusOK).object(); got["status"] != "queued" {
		t.Errorf("approved %v", got)
	}
	c.flows.failWith(exchange.Errorf(exchange.CodeNotFound, "The flow has ended."))
	c.verb(c.officers[1], id, "approve", seen, "l").refused(exchange.CodeStateConflict)
}

// The requester of a transfer can't decide about it.
func TestRequesterIsNoOfficerOfItsOwn(t *testing.T) {
	c := newCrossing(t, "100")
	c.rule("1000000")
	officer := c.officers[0]
	house := c.do(post, "/api/v1/auth/wallets/provision", map[string]any{"network": "tron", "asset": "USDT", "purpose": "treasury"}, c.admin.auth()).want(http.StatusCreated)
	id, _ := parseID(house.text("id"))
	c.fund(exchange.Wallet{ID: id}, "20")
	body := away("5")
	body["from_wallet_id"] = id
	f := c.do(post, transfersPath, body, officer.auth(), withKey("a")).want(http.StatusCreated).object()
	if f["status"] != "pending_approval" {
		t.Fatalf("sent %v", f)
	}
	c.verb(officer, f["id"].(string), "approve", map[string]any{"digest": f["approval_digest"]}, "b").refused(exchange.CodeForbidden)
	c.do(post, tokensPath, tokenRequest(f), officer.auth()).refused(exchange.CodeForbidden)
	c.verb(c.officers[1], f["id"].(string), "approve", map[string]any{"digest": f["approval_digest"]}, "c").want(http.StatusOK)
}

func TestApprovalTokens(t *testing.T) {
	c := newCrossing(t, "100")
	c.rule("1000000")
	officer := c.officers[0]
	f, other := c.pending("10"), c.pending("20")
	ask := func(change func(map[string]any)) *reply {
		body := tokenRequest(f)
		change(body)
		return c.do(post, tokensPath, body, officer.auth())
	}
	set := func(name string, v any) func(map[string]any) { return func(b map[string]any) { b[name] = v } }
	ask(set("digest", other["approval_digest"])).blames("/digest mismatch")
	ask(set("amount", "9")).blames("/amount mismatch")
	ask(set("amount", 10)).blames("/amount type")
	ask(set("amount", "10.0000001")).blames("/amount precision")
	ask(set("action", "pay")).blames("/action enum")
	ask(set("object_type", "offer")).blames("/object_type enum")
	ask(set("object_id", newID())).blames("/object_id not_found")
	c.do(post, tokensPath, tokenRequest(f), c.sender.auth()).refused(exchange.CodeForbidden)

	got := ask(func(map[string]any) {}).want(http.StatusCreated)
	token := got.text("token")
	if got.text("workflow_id") != "transfer:"+f["id"].(string) || got.text("signal") != "approve" || len(token) != 64 {
		t.Errorf("token %s", got.body)
	}
	id, _ := parseID(f["id"].(string))
	otherID, _ := parseID(other["id"].(string))
	if _, err := c.store.Decide(t.Context(), otherID, token, exchange.Approve); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("the token opens another transfer: %v", err)
	}
	if now, err := c.store.Decide(t.Context(), id, token, exchange.Approve); err != nil || now.Status != exchange.TransferQueued {
		t.Errorf("%s, %v", now.Status, err)
	}
	if strings.Contains(c.logs.String(), token) {
		t.Error("a secret is in the log")
	}
	rows, _, err := c.store.ListTransfers(t.Context(), store.Everything(), store.TransferFilter{}, store.Page{Number: 1, Size: 5})
	if err != nil || len(rows) != 2 {
		t.Errorf("%d transfers, %v", len(rows), err)
	}
}

// TestH2DecisionsNeedADigestAndAPasskey plays a stolen access token of an officer: after five minutes it decides nothing,
// and nobody decides about what was not seen.
func TestH2DecisionsNeedADigestAndAPasskey(t *testing.T) {
	c := newCrossing(t, "100")
	c.rule("1000000")
	officer, f := c.officers[0], c.pending("10")
	id := f["id"].(string)
	c.verb(officer, id, "approve", map[string]any{"digest": ""}, "a").blames("/digest required")
	body := tokenRequest(f)
	delete(body, "digest")
	c.do(post, tokensPath, body, officer.auth()).blames("/digest required")
	waits := c.do(patch, "/api/v1/auth/limits", map[string]any{"valuations": map[string]any{"USDT": "100"}}, c.admin.auth()).want(http.StatusAccepted)
	confirm := waits.object()["confirm_at"].([]any)[0].(string)
	c.do(post, confirm, map[string]any{"digest": ""}, officer.auth(), freshKey()).blames("/digest required")
	c.do(post, confirm, map[string]any{"digest": f["approval_digest"]}, officer.auth(), freshKey()).blames("/digest mismatch")

	c.skew.Store(int64(exchange.StepUpLife + time.Second))
	c.verb(officer, id, "approve", nil, "b").refused(exchange.CodeStepUpRequired)
	c.do(post, tokensPath, tokenRequest(f), officer.auth()).refused(exchange.CodeStepUpRequired)
	c.do(post, confirm, nil, officer.auth(), freshKey()).refused(exchange.CodeStepUpRequired)
	c.do(get, "/api/v1/auth/approvals/pending", nil, officer.auth()).want(http.StatusOK)
	if f := c.do(get, transfersPath+"/"+id, nil, officer.auth()).want(http.StatusOK).object(); f["status"] != "pending_approval" || f["approvals_given"] != 0.0 {
		t.Errorf("decided: %v", f)
	}
	c.skew.Store(0)
	// A password is no proof of an officer's, and not even in place of the passkey's.
	c.do(post, stepUpPath, map[string]any{"password": testPassword}, officer.auth()).want(http.StatusOK)
	c.verb(officer, id, "approve", nil, "c").refused(exchange.CodeStepUpRequired)
	c.provePasskey(officer.User, officer.session)
	c.verb(officer, id, "approve", nil, "d").want(http.StatusOK)
}
