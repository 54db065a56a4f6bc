package e2e

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// ticket is the token for one decision, which the API issues to an officer.
type ticket struct {
	Token      string `json:"token"`
	WorkflowID string `json:"workflow_id"`
	Signal     string `json:"signal"`
}

// ask has an officer request a token.
func (w *harness) ask(t *testing.T, officer *client.Client, f sent) (ticket, error) {
	t.Helper()
	var got ticket
	err := officer.Post(t.Context(), "/api/v1/auth/approvals/tokens", "", map[string]any{
		"object_type": "transfer", "object_id": f.ID, "action": "approve", "amount": f.Amount, "digest": f.Digest,
	}, &got)
	return got, err
}

// TestApprovals sends transfers of which the larger ones need two officers. Such a transfer goes out when two
// different officers have approved it, one through the API and one by a signal with a token of the API; nothing else
// counts. One that needs a single officer is approved through the API alone.
func TestApprovals(t *testing.T) {
	w := open(t)
	w.approvalRule(t, "300", "2000") // 5 USDT are worth about 650 shillings, 20 about 2,600
	defer w.approvalRule(t, usualOne, ruleTwo)
	vendor, first, second := w.as(t, demo.VendorEmail), w.operator(t), w.as(t, secondOfficer)
	needs := func(amount string, officers int) (sent, string) {
		t.Helper()
		to := newAddress(t)
		f := w.arrives(t, first, w.send(t, vendor, amount, map[string]any{"address": to}).ID, "pending_approval")
		if f.Required != officers || len(f.Digest) != 64 {
			t.Fatalf("a transfer of %s is %+v", amount, f)
		}
		return f, to
	}
	one, oneTo := needs("5", 1)
	approve(t, first, one, true)
	one = w.arrives(t, vendor, one.ID, "completed")

	two, twoTo := needs("20", 2)
	other, _ := needs("20", 2)
	w.oneIsNotEnough(t, two, other)
	late, err := w.ask(t, second, two)
	if err != nil {
		t.Fatal(err)
	}
	ui := w.webUI(t)
	if err := ui.SignalWorkflow(t.Context(), workflows.TransferID(other.ID), "", late.Signal, map[string]any{"token": late.Token}); err != nil {
		t.Fatal(err)
	}
	w.refusals(t, other.ID, 1)
	w.stays(t, first, other, 0)
	for range 2 { // a token counts once
		if err := ui.SignalWorkflow(t.Context(), late.WorkflowID, "", late.Signal, map[string]any{"token": late.Token}); err != nil {
			t.Fatal(err)
		}
	}
	two = w.arrives(t, vendor, two.ID, "completed")
	if two.Given != 2 {
		t.Errorf("%d decisions were counted", two.Given)
	}
	w.decidedBy(t, two.ID, demo.TreasuryEmail, secondOfficer)
	tron := w.seed().Nodes()[0]
	cameOnce(t, tron, oneTo, one.TxHash, money.Must(money.USDT, "5"))
	cameOnce(t, tron, twoTo, two.TxHash, money.Must(money.USDT, "20"))
	if n := len(w.arrived(t, twoTo)); n != 1 {
		t.Errorf("the money arrived %d times", n)
	}
	if err := insist(t.Context(), vendor, ofTransfer(other.ID, "cancel"), uuid.NewString(), nil, nil); err != nil {
		t.Fatal(err)
	}
	w.arrives(t, vendor, other.ID, "cancelled")
	w.invariants(t)
}

// oneIsNotEnough has the first officer approve a transfer and tries everything that must not count as the second
// decision.
func (w *harness) oneIsNotEnough(t *testing.T, two, other sent) {
	t.Helper()
	vendor, first, second := w.as(t, demo.VendorEmail), w.operator(t), w.as(t, secondOfficer)
	early, err := w.ask(t, first, two)
	if err != nil {
		t.Fatal(err)
	}
	approve(t, first, two, true)
	w.stays(t, first, two, 1)
	approve(t, first, two, false)
	if _, err := w.ask(t, first, two); !is(err, http.StatusConflict) {
		t.Errorf("the officer who approved first got a token for the second decision: %v", err)
	}
	if _, err := w.ask(t, vendor, two); !is(err, http.StatusForbidden) {
		t.Errorf("the sender got a token: %v", err)
	}
	foreign, err := w.ask(t, second, other)
	if err != nil {
		t.Fatal(err)
	}
	ui := w.webUI(t)
	for i, typed := range []any{
		nil, "yes", map[string]any{"token": "made up"}, map[string]any{"token": foreign.Token}, map[string]any{"token": early.Token},
	} {
		if err := ui.SignalWorkflow(t.Context(), workflows.TransferID(two.ID), "", workflows.SignalApprove, typed); err != nil {
			t.Fatal(err)
		}
		w.refusals(t, two.ID, i+1)
	}
	w.stays(t, first, two, 1)
	w.stays(t, first, other, 0)
}

// approve sends an officer's approval through the API.
func approve(t *testing.T, officer *client.Client, f sent, counts bool) {
	t.Helper()
	err := testbed.Approve(t, officer, f)
	if counts && err != nil {
		t.Fatal(err)
	}
	if !counts && !is(err, http.StatusConflict) {
		t.Errorf("the response to a decision that must not count: %v", err)
	}
}

// stays checks that a transfer still waits, with the given number of decisions.
func (w *harness) stays(t *testing.T, c *client.Client, f sent, given int) {
	t.Helper()
	if now := w.arrives(t, c, f.ID, "pending_approval"); now.Given != given {
		t.Errorf("%d decisions were counted, not %d", now.Given, given)
	}
	var attempts int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM chain_payments WHERE purpose = 'transfer' AND object_id = $1 AND status <> 'cancelled'`, f.ID).
		Scan(&attempts)
	if err != nil || attempts != 0 {
		t.Errorf("%d payments of a transfer that waits: %v", attempts, err)
	}
}

// decidedBy checks that the counted decisions are those of the given officers.
func (w *harness) decidedBy(t *testing.T, transfer uuid.UUID, emails ...string) {
	t.Helper()
	for _, email := range emails {
		u, err := w.store.UserByEmail(t.Context(), email)
		if err != nil {
			t.Fatal(err)
		}
		var n int
		err = w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM approvals WHERE object_id = $1 AND officer_id = $2 AND action = $3`,
			transfer, u.ID, exchange.Approve).Scan(&n)
		if err != nil || n != 1 {
			t.Errorf("%s decided %d times: %v", email, n, err)
		}
	}
}
