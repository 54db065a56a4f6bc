package api

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// wordCells are the lines of the matrix about what persons say of a payout.
func wordCells() map[string]cell {
	return map[string]cell{
		"POST /api/v1/auth/orders/{id}/declare-unpaid": {id: func(s scene) uuid.UUID { return s.w.unheard() }, shared: true, body: fixed(map[string]any{"note": "not in the portal"})},
	}
}

// unheard is an order whose payout was sent long ago, and of which nobody has said anything.
func (w *world) unheard() uuid.UUID {
	w.t.Helper()
	storetest.EscrowPool(w.t, w.store, exchange.Tron, 1)
	storetest.Float(w.t, w.store, money.Must(money.KES, "10000"))
	return sendUnheard(w.t, w.store, storetest.Market{Customer: w.other.User, Offer: w.buys})
}

func sendUnheard(t *testing.T, s *store.Store, m storetest.Market) uuid.UUID {
	t.Helper()
	o := storetest.TakeCrypto(t, s, m.Sale(t, s, "10"))
	id := newID()
	a, err := s.BeginOrderPayout(t.Context(), o.ID, exchange.PaymentAttempt{
		ID: id, Provider: "daraja", Reference: o.PaymentReference(), CallbackToken: id.String(), WorkflowID: exchange.OffRampFlow(o.ID),
	})
	if err == nil {
		_, err = s.RecordSubmission(t.Context(), a.ID, exchange.Submission{State: exchange.Accepted})
	}
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, s, `UPDATE refund_policy SET unknown_seconds = 0`)
	return o.ID
}

// Two officers declare that a payout was not made, and the order's flow is told. One alone changes nothing.
func TestTwoOfficersDeclareAPayoutNotMade(t *testing.T) {
	e := start(t)
	id := sendUnheard(t, e.store, storetest.NewSellers(t, e.store))
	one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	path := "/api/v1/auth/orders/" + id.String() + "/declare-unpaid"
	e.do(post, path, map[string]any{}, one.auth(), freshKey()).blames("/note required")
	e.do(post, "/api/v1/auth/orders/"+newID().String()+"/declare-unpaid", map[string]any{"note": "x"}, one.auth(), freshKey()).refused(exchange.CodeNotFound)
	var change string
	for range 2 {
		waits := e.do(post, path, map[string]any{"note": "not in the portal"}, one.auth(), freshKey()).want(http.StatusAccepted).object()["changes"].([]any)
		c := waits[0].(map[string]any)
		if len(waits) != 1 || c["kind"] != "payout_word" || c["change"].(map[string]any)["order_id"] != id.String() || (change != "" && change != c["id"]) {
			t.Fatalf("what waits is %v", waits)
		}
		change = c["id"].(string)
	}
	confirm := "/api/v1/auth/approvals/changes/" + change + "/confirm"
	e.do(post, confirm, map[string]any{}, one.auth(), freshKey()).refused(exchange.CodeForbidden)
	if e.flows.count() != 0 {
		t.Errorf("flows were told by one person: %v", e.flows.calls)
	}
	e.do(post, confirm, map[string]any{}, two.auth(), freshKey()).want(http.StatusOK)
	if !slices.Equal(e.flows.calls, []string{"command off-ramp " + id.String()}) {
		t.Errorf("flows were told %v", e.flows.calls)
	}
}

// The receipt of a payout above the value for one officer is handed to the flow when another has confirmed it.
func TestReceiptOfALargePayoutWaitsForASecond(t *testing.T) {
	e := start(t)
	id := sendUnheard(t, e.store, storetest.NewSellers(t, e.store))
	one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	path := "/api/v1/auth/orders/" + id.String() + "/resolve"
	e.do(post, path, map[string]any{"note": "UKL0000001"}, one.auth(), freshKey()).want(http.StatusOK)
	storetest.Exec(t, e.store, `UPDATE approval_rules SET one_above = 1000, two_above = 1000 WHERE object_type = 'bank_payout'`)
	waits := e.do(post, path, map[string]any{"note": "UKL0000001"}, one.auth(), freshKey()).want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
	if waits["change"].(map[string]any)["receipt"] != "UKL0000001" || e.flows.count() != 1 {
		t.Errorf("what waits is %v; flows were told %v", waits, e.flows.calls)
	}
	e.do(post, "/api/v1/auth/approvals/changes/"+waits["id"].(string)+"/confirm", map[string]any{}, two.auth(), freshKey()).want(http.StatusOK)
	e.do(post, path, map[string]any{"note": "UKL0000001"}, one.auth(), freshKey()).want(http.StatusOK)
	if e.flows.count() != 3 {
		t.Errorf("flows were told %v", e.flows.calls)
	}
}
