package api

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// attestationCells are the rows of the matrix about attestations of payouts.
func attestationCells() map[string]cell {
	return map[string]cell{
		"POST /api/v1/auth/orders/{id}/declare-unpaid": {id: func(s scene) uuid.UUID { return s.w.unheard() }, shared: true, body: fixed(map[string]any{"note": "not in the portal"})},
	}
}

// unheard is an order whose payout was sent long ago and has no result.
func (w *harness) unheard() uuid.UUID {
	w.t.Helper()
	storetest.EscrowPool(w.t, w.store, exchange.Tron, 1)
	storetest.Float(w.t, w.store, money.Must(money.KES, "10000"))
	return sendUnheard(w.t, w.store, storetest.Market{Customer: w.other.User, Offer: w.buys})
}

func sendUnheard(t *testing.T, s *store.Store, m storetest.Market) uuid.UUID {
	t.Helper()
	o := storetest.TakeCrypto(t, s, m.Sale(t, s, "10"))
	id := newID()
	a, err := s.BeginPayout(t.Context(), exchange.OrderObject(o.ID), exchange.PaymentAttempt{
		ID: id, Provider: "daraja", Reference: o.PaymentReference, CallbackToken: id.String(), WorkflowID: exchange.OffRampFlow(o.ID),
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

// refundUnheard is an order that was paid too little, whose refund was sent long ago and has no result.
func refundUnheard(t *testing.T, s *store.Store) (order, refund uuid.UUID) {
	t.Helper()
	m := storetest.NewMarket(t, s)
	out, err := s.AcceptPayment(t.Context(), storetest.Attempt(t, s, m.Order(t, s, "10")).ID, storetest.Listed(t, s, storetest.Paid(t, money.Must(money.KES, "1100"))), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.BeginPayout(t.Context(), exchange.RefundObject(out.Refund.ID), exchange.PaymentAttempt{
		ID: newID(), Provider: "daraja", Reference: "Refund", WorkflowID: workflows.OnRampID(out.Order.ID),
	})
	if err == nil {
		_, err = s.RecordSubmission(t.Context(), a.ID, exchange.Submission{State: exchange.Accepted})
	}
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, s, `UPDATE refund_policy SET unknown_seconds = 0`)
	return out.Order.ID, out.Refund.ID
}

// refundPayout is the only payout of an order.
func refundPayout(t *testing.T, s *store.Store, order uuid.UUID) uuid.UUID {
	t.Helper()
	all, err := s.Payouts(t.Context(), order)
	if err != nil || len(all) != 1 {
		t.Fatalf("the order has %d payouts, %v", len(all), err)
	}
	return all[0].ID
}

// unheardOf are the orders whose payouts have no result, by what is paid, with the call that notifies their flow.
var unheardOf = map[string]func(*testing.T, *store.Store) (uuid.UUID, string){
	"a sale": func(t *testing.T, s *store.Store) (uuid.UUID, string) {
		id := sendUnheard(t, s, storetest.NewSellers(t, s))
		return id, "command off-ramp " + id.String()
	},
	"a refund": func(t *testing.T, s *store.Store) (uuid.UUID, string) {
		id, refund := refundUnheard(t, s)
		return id, "command flow " + workflows.MomoPayoutID(exchange.RefundObject(refund))
	},
}

// Two officers declare a payout unpaid, and the order's flow is notified. One alone changes nothing.
func TestTwoOfficersDeclareAPayoutNotMade(t *testing.T) {
	for name, unheard := range unheardOf {
		t.Run(name, func(t *testing.T) { declareNotMade(t, unheard) })
	}
}

func declareNotMade(t *testing.T, unheard func(*testing.T, *store.Store) (uuid.UUID, string)) {
	t.Helper()
	e := start(t)
	id, notified := unheard(t, e.store)
	one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	path := "/api/v1/auth/orders/" + id.String() + "/declare-unpaid"
	e.do(post, path, map[string]any{}, one.auth(), freshKey()).blames("/note required")
	e.do(post, "/api/v1/auth/orders/"+newID().String()+"/declare-unpaid", map[string]any{"note": "x"}, one.auth(), freshKey()).refused(exchange.CodeNotFound)
	var change string
	for range 2 {
		waits := e.do(post, path, map[string]any{"note": "not in the portal"}, one.auth(), freshKey()).want(http.StatusAccepted).object()["changes"].([]any)
		c := waits[0].(map[string]any)
		if len(waits) != 1 || c["kind"] != "payout_attestation" || c["change"].(map[string]any)["order_id"] != id.String() || (change != "" && change != c["id"]) {
			t.Fatalf("what waits is %v", waits)
		}
		change = c["id"].(string)
	}
	confirm := "/api/v1/auth/approvals/changes/" + change + "/confirm"
	e.do(post, confirm, map[string]any{}, one.auth(), freshKey()).refused(exchange.CodeForbidden)
	if e.flows.count() != 0 {
		t.Errorf("one officer alone notified flows: %v", e.flows.calls)
	}
	e.do(post, confirm, map[string]any{}, two.auth(), freshKey()).want(http.StatusOK)
	if !slices.Equal(e.flows.calls, []string{notified}) {
		t.Errorf("flows were notified: %v", e.flows.calls)
	}
}

// The receipt of a payout above the value for one officer goes to the flow when a second officer has confirmed it.
func TestReceiptOfALargePayoutWaitsForASecond(t *testing.T) {
	for name, unheard := range unheardOf {
		t.Run(name, func(t *testing.T) { confirmReceipt(t, unheard) })
	}
}

func confirmReceipt(t *testing.T, unheard func(*testing.T, *store.Store) (uuid.UUID, string)) {
	t.Helper()
	e := start(t)
	id, _ := unheard(t, e.store)
	one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	path := "/api/v1/auth/orders/" + id.String() + "/resolve"
	e.do(post, path, map[string]any{"note": "UKL0000001"}, one.auth(), freshKey()).want(http.StatusOK)
	storetest.Exec(t, e.store, `UPDATE approval_rules SET one_above = 1000, two_above = 1000 WHERE object_type = 'bank_payout'`)
	waits := e.do(post, path, map[string]any{"note": "UKL0000001"}, one.auth(), freshKey()).want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
	if waits["change"].(map[string]any)["receipt"] != "UKL0000001" || e.flows.count() != 1 {
		t.Errorf("what waits is %v; flows were notified: %v", waits, e.flows.calls)
	}
	e.do(post, "/api/v1/auth/approvals/changes/"+waits["id"].(string)+"/confirm", map[string]any{}, two.auth(), freshKey()).want(http.StatusOK)
	e.do(post, path, map[string]any{"note": "UKL0000001"}, one.auth(), freshKey()).want(http.StatusOK)
	if e.flows.count() != 3 {
		t.Errorf("flows were notified: %v", e.flows.calls)
	}
}

// What officers attest about a refund reaches only flows of that refund, and a declaration only the flow of its payout or the
// check of late notices about it, which find it by themselves: a retry elsewhere could send another payout.
func TestAttestationReachesNoOtherPayout(t *testing.T) {
	for name, test := range map[string]struct {
		path, note string
		home       bool
	}{
		"declared unpaid": {"declare-unpaid", "not in the portal", false},
		"receipt":         {"resolve", "UKL0000001", true},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t)
			id, refund := refundUnheard(t, e.store)
			child := workflows.MomoPayoutID(exchange.RefundObject(refund))
			e.flows.ended = []string{child}
			storetest.Exec(t, e.store, `UPDATE approval_rules SET one_above = 1000, two_above = 1000 WHERE object_type = 'bank_payout'`)
			one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
			path := "/api/v1/auth/orders/" + id.String() + "/" + test.path
			waits := e.do(post, path, map[string]any{"note": test.note}, one.auth(), freshKey()).want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
			e.do(post, "/api/v1/auth/approvals/changes/"+waits["id"].(string)+"/confirm", map[string]any{}, two.auth(), freshKey()).want(http.StatusOK)
			want := []string{"command flow " + child}
			if test.home {
				want = append(want, "command flow "+workflows.OnRampID(id))
			} else {
				want = append(want, "command flow "+workflows.LatePayoutID(refundPayout(t, e.store, id)))
			}
			if !slices.Equal(e.flows.calls, want) {
				t.Errorf("flows were notified: %v", e.flows.calls)
			}
		})
	}
}

// A resolve may name the refund that its receipt settles; the refund's own flow gets it. A receipt of a payment to the house
// is refused.
func TestResolveNamesTheRefund(t *testing.T) {
	e := start(t)
	id, refund := refundUnheard(t, e.store)
	one := e.person(exchange.RoleTreasury)
	path := "/api/v1/auth/orders/" + id.String() + "/resolve"
	resolve := func(note string, refund uuid.UUID) *reply {
		return e.do(post, path, map[string]any{"note": note, "refund_id": refund.String()}, one.auth(), freshKey())
	}
	resolve("UKL0000001", newID()).blames("/refund_id not_found")
	resolve("found by hand", refund).blames("/note receipt")
	collected, err := e.store.Refund(t.Context(), refund)
	if err != nil {
		t.Fatal(err)
	}
	prompts, err := e.store.Collections(t.Context(), exchange.OrderObject(id))
	if err != nil || len(prompts) != 1 || prompts[0].ID != collected.AttemptID {
		t.Fatalf("the order has %d prompts, %v", len(prompts), err)
	}
	resolve(prompts[0].Receipt, refund).blames("/note receipt")
	resolve("UKL0000001", refund).want(http.StatusOK)
	if want := []string{"command flow " + workflows.MomoPayoutID(exchange.RefundObject(refund))}; !slices.Equal(e.flows.calls, want) {
		t.Errorf("flows were notified: %v", e.flows.calls)
	}
}
