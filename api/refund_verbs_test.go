package api

import (
	"fmt"
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

// strays deposits crypto that nothing waits for on an escrow address, once for each amount of USDT.
func strays(t *testing.T, amounts ...string) (*env, []exchange.PaymentException) {
	t.Helper()
	e := start(t)
	address := storetest.EscrowPool(t, e.store, exchange.Tron, 1)[0].Address
	block := func(n uint64) exchange.ChainBlock {
		return exchange.ChainBlock{Number: n, ID: fmt.Sprintf("b%d", n), Parent: fmt.Sprintf("b%d", n-1), Time: time.Now().UTC()}
	}
	if _, err := e.store.StartDeposits(t.Context(), exchange.Tron, block(100)); err != nil {
		t.Fatal(err)
	}
	found := make([]exchange.PaymentException, len(amounts))
	for i, amount := range amounts {
		n := 101 + uint64(i)
		moved := exchange.ChainMovement{TxID: fmt.Sprintf("tx%d", i), From: "Tstranger0000000000000000000000000", To: address, Amount: money.Must(money.USDT, amount)}
		if _, err := e.store.RecordFinalBlock(t.Context(), exchange.BlockScan{Network: exchange.Tron, Block: block(n), Movements: []exchange.ChainMovement{moved}}); err != nil {
			t.Fatal(err)
		}
		all, _, err := e.store.ListExceptions(t.Context(), store.ExceptionFilter{Status: exchange.ExcOpen}, store.Page{Number: 1, Size: 1})
		if err != nil || len(all) == 0 {
			t.Fatalf("the exception of %s is not there: %v", amount, err)
		}
		found[i] = all[0]
	}
	return e, found
}

// Unmatched crypto is refunded to an address that one officer names and another approves.
func TestCryptoIsReturnedByTwo(t *testing.T) {
	e, found := strays(t, "7")
	x := found[0]
	one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	path := "/api/v1/auth/payment-exceptions/" + x.ID.String() + "/refund"
	e.do(post, "/api/v1/auth/payment-exceptions/"+newID().String()+"/refund", map[string]any{"note": "they wrote", "address": goodAddress}, one.auth(), freshKey()).
		refused(exchange.CodeNotFound)
	e.do(post, path, map[string]any{"note": "they wrote", "address": mistypedAddress}, one.auth(), freshKey()).blames("/address address")
	e.do(post, path, map[string]any{"address": goodAddress}, one.auth(), freshKey()).blames("/note required")
	key := freshKey()
	for range 2 {
		got := e.do(post, path, map[string]any{"note": "they wrote", "address": goodAddress}, one.auth(), key).want(http.StatusAccepted)
		waits, at := got.object(), got.header.Get("Location")
		if len(waits["changes"].([]any)) != 0 || !slices.Equal(waits["confirm_at"].([]any), []any{at + "/approve"}) || e.do(get, at, nil, one.auth()).text("payment_exception_id") != x.ID.String() {
			t.Fatalf("what waits is %s at %q", got.body, at)
		}
	}
	if n := e.flows.asked("return " + x.ID.String() + " on tron"); n != 1 {
		t.Errorf("the flow was asked %d times", n)
	}
	refunds := e.do(get, "/api/v1/auth/refunds?payment_exception_id="+x.ID.String(), nil, one.auth()).want(http.StatusOK).object()["refunds"].([]any)
	r := refunds[0].(map[string]any)
	if r["rail"] != "chain" || r["address"] != goodAddress || r["phone_number"] != nil || r["order_id"] != nil || r["addressed_by"] != one.ID.String() || r["tx_hash"] != nil {
		t.Fatalf("the refund is %v", r)
	}
	pending := func(p person) int {
		t.Helper()
		return len(e.do(get, "/api/v1/auth/approvals/pending", nil, p.auth()).want(http.StatusOK).object()["refunds"].([]any))
	}
	if pending(one) != 0 || pending(two) != 1 {
		t.Errorf("it waits for %d and %d of the two", pending(one), pending(two))
	}
	decide := "/api/v1/auth/refunds/" + r["id"].(string) + "/"
	seen := map[string]any{"digest": r["approval_digest"]}
	e.doIn(t, post, decide+"approve", map[string]any{}, two.auth(), freshKey()).blames("/digest required") // D7
	e.do(post, decide+"approve", seen, one.auth(), freshKey()).refused(exchange.CodeForbidden)
	e.do(post, decide+"approve", map[string]any{"digest": "another"}, two.auth(), freshKey()).blames("/digest mismatch")
	e.do(post, decide+"reject", seen, two.auth(), freshKey()).blames("/note required")
	e.do(post, decide+"approve", seen, e.person(exchange.RoleOTCOfficer).auth(), freshKey()).refused(exchange.CodeForbidden)
	key = freshKey()
	for range 2 {
		e.do(post, decide+"approve", map[string]any{"digest": r["approval_digest"]}, two.auth(), key).want(http.StatusOK)
	}
	if pending(two) != 0 {
		t.Error("it waits for who has agreed")
	}
	e.do(post, path, map[string]any{"note": "the payer wrote to us"}, one.auth(), freshKey()).want(http.StatusOK)
	if s, err := e.store.ApproveRefundPayment(t.Context(), uuid.MustParse(r["id"].(string))); err != nil || s.Wait != exchange.RefundReady || s.Payment.ToAddress != goodAddress {
		t.Errorf("it stands at %+v, %v", s, err)
	}
}

// Another address is a command to the refund's flow; refunds by mobile money take no address.
func TestReturnedCryptoGetsAnotherAddress(t *testing.T) {
	e, found := strays(t, "7")
	x, officer := found[0], e.person(exchange.RoleTreasury)
	path := "/api/v1/auth/payment-exceptions/" + x.ID.String() + "/refund"
	e.do(post, path, map[string]any{"note": "they wrote"}, officer.auth(), freshKey()).want(http.StatusOK)
	e.do(post, path, map[string]any{"note": "again"}, officer.auth(), freshKey()).want(http.StatusOK)
	if n := e.flows.asked("command return " + x.ID.String()); n != 0 {
		t.Errorf("the flow was notified %d times without a reason", n)
	}
	e.do(post, path, map[string]any{"note": "there", "address": goodAddress}, officer.auth(), freshKey()).want(http.StatusAccepted)
	if n := e.flows.asked("command return " + x.ID.String()); n != 1 {
		t.Errorf("the flow was notified %d times of the address", n)
	}
	f, late, _ := misfits(t)
	f.do(post, "/api/v1/auth/payment-exceptions/"+late.Exception.ID.String()+"/refund", map[string]any{"note": "x", "address": goodAddress},
		f.person(exchange.RoleTreasury).auth(), freshKey()).blames("/address conflict")
}

// An officer names the address for the refund of a sale, which then waits for another officer.
func TestAddressOfARefundedSaleWaitsForASecond(t *testing.T) {
	e := start(t)
	customer, vendor, officer := e.person(exchange.RoleCustomer), e.person(exchange.RoleVendor), e.person(exchange.RoleTreasury)
	e.wallet(vendor)
	o := storetest.TakeCrypto(t, e.store, e.sale(customer, e.buys(vendor).ID))
	path := ordersPath + "/" + o.ID.String() + "/refund"
	// The flow opens the refund after it has taken the command, so that nothing waits yet.
	e.do(post, path, map[string]any{"note": "the phone is wrong"}, officer.auth(), freshKey()).want(http.StatusOK)
	_, r, err := e.store.OpenChainRefund(t.Context(), exchange.ChainRefundRequest{OrderID: o.ID, Reason: "payout_refused"}, exchange.System("flow"))
	if err != nil {
		t.Fatal(err)
	}
	e.do(post, path, map[string]any{"note": "again"}, officer.auth(), freshKey()).want(http.StatusOK)
	got := e.do(post, path, map[string]any{"note": "there", "address": goodAddress}, officer.auth(), freshKey()).want(http.StatusAccepted)
	at := "/api/v1/auth/refunds/" + r.ID.String()
	if got.header.Get("Location") != at || !slices.Equal(got.object()["confirm_at"].([]any), []any{at + "/approve"}) {
		t.Errorf("what waits is %s at %q", got.body, got.header.Get("Location"))
	}
}

// The request that lets the house keep money of an escrow address starts the sweep to its treasury.
func TestKeptCryptoIsBroughtAway(t *testing.T) {
	e, found := strays(t, "7")
	storetest.TreasuryWallet(t, e.store, exchange.Tron)
	x, officer := found[0], e.person(exchange.RoleTreasury)
	e.do(post, "/api/v1/auth/payment-exceptions/"+x.ID.String()+"/write-off", map[string]any{"note": "nobody answers"}, officer.auth(), freshKey()).want(http.StatusOK)
	if n := e.flows.asked("keep " + x.ID.String() + " on tron"); n != 1 {
		t.Errorf("the flow was asked %d times", n)
	}
	e.do(post, "/api/v1/auth/payment-exceptions/"+x.ID.String()+"/refund", map[string]any{"note": "x", "address": goodAddress}, officer.auth(), freshKey()).
		refused(exchange.CodeStateConflict)
}

func freshKey() option { return withKey(newID().String()) }

// A large refund of shillings waits for a second officer, and its flow is commanded once, when that one has confirmed.
func TestLargeRefundOfShillingsWaitsForASecond(t *testing.T) {
	e, late, _ := misfits(t)
	storetest.Exec(t, e.store, `UPDATE approval_rules SET one_above = 258, two_above = 1000000 WHERE object_type = 'refund'`)
	one, two, x := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin), late.Exception
	e.watch(x.AttemptID)
	flow, body := "late command "+x.AttemptID.String(), map[string]any{"note": "the payer asks for it"}
	paths := []string{verbOf(x, "refund"), ordersPath + "/" + x.OrderID.String() + "/refund"}
	var change string
	for _, path := range paths {
		r := e.do(post, path, body, one.auth(), freshKey()).want(http.StatusAccepted)
		waits := r.object()["changes"].([]any)[0].(map[string]any)
		about := waits["change"].(map[string]any)
		if waits["kind"] != "refund_decision" || about["object_id"] != x.ID.String() || about["object_type"] != "payment_exception" || waits["was"].(map[string]any)["amount"] != "259.00" {
			t.Errorf("what waits is %v", waits)
		}
		if change != "" && change != waits["id"] {
			t.Errorf("another change waits: %v", waits)
		}
		change = waits["id"].(string)
	}
	pending := e.do(get, "/api/v1/auth/approvals/pending", nil, two.auth()).want(http.StatusOK).object()["changes"].([]any)
	listed := e.do(get, changesPath+"?status=pending", nil, two.auth()).want(http.StatusOK).object()
	if len(pending) != 1 || listed["total"] != 1.0 {
		t.Errorf("%v waits, listed as %v", pending, listed)
	}
	confirm := changesPath + "/" + change + "/confirm"
	e.do(post, confirm, nil, one.auth(), freshKey()).refused(exchange.CodeForbidden)
	if n := e.flows.asked(flow); n != 0 {
		t.Errorf("the flow was commanded %d times before", n)
	}
	e.do(post, confirm, nil, two.auth(), freshKey()).want(http.StatusOK)
	if n := e.flows.asked(flow); n != 1 {
		t.Errorf("the flow was commanded %d times", n)
	}
	e.do(post, paths[0], body, one.auth(), freshKey()).want(http.StatusOK) // the flow may have missed it
	if n := e.flows.asked(flow); n != 2 {
		t.Errorf("the flow was commanded %d times", n)
	}
}

// Two officers' decision about a payee reaches only the flows of its refund; what was paid below the price is the order's.
func TestDecisionAboutARefundReachesItsFlow(t *testing.T) {
	e, _, under := misfits(t)
	one, two, r := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin), under.Refund
	storetest.Exec(t, e.store, `UPDATE refunds SET status = 'needs_review', detail = 'payer_differs', version = version + 1 WHERE id = $1`, r.ID)
	storetest.Exec(t, e.store, `UPDATE approval_rules SET one_above = 0, two_above = 0 WHERE object_type = 'refund'`)
	path, body := ordersPath+"/"+r.OrderID.String()+"/refund", map[string]any{"note": "it is the payer's wife"}
	waits := e.do(post, path, body, one.auth(), freshKey()).want(http.StatusAccepted).object()["changes"].([]any)
	c := waits[0].(map[string]any)
	if len(waits) != 1 || c["change"].(map[string]any)["object_type"] != "refund" || c["change"].(map[string]any)["object_id"] != r.ID.String() {
		t.Errorf("what waits is %v", waits)
	}
	payout := workflows.MomoPayoutID(exchange.RefundObject(r.ID))
	e.flows.ended = []string{payout}
	before := e.flows.count()
	e.do(post, changesPath+"/"+c["id"].(string)+"/confirm", nil, two.auth(), freshKey()).want(http.StatusOK)
	e.flows.mu.Lock()
	calls := e.flows.calls[before:]
	e.flows.mu.Unlock()
	if want := []string{"command flow " + payout, "command flow " + workflows.OnRampID(r.OrderID)}; !slices.Equal(calls, want) {
		t.Errorf("%v were called, want %v", calls, want)
	}
}

// Two officers' decision to refund an order reaches only the order's flow, and then one officer may repeat it.
func TestDecisionAboutAnOrderReachesItsFlow(t *testing.T) {
	e := start(t)
	vendor, one, two := e.person(exchange.RoleVendor), e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	o := e.pays(e.person(exchange.RoleCustomer), e.offer(vendor, e.wallet(vendor)).ID, "259", false).Order
	path, body, flow := ordersPath+"/"+o.ID.String()+"/refund", map[string]any{"note": "nothing works"}, "command "+o.ID.String()
	e.do(post, path, body, one.auth(), freshKey()).want(http.StatusOK)
	storetest.Exec(t, e.store, `UPDATE approval_rules SET one_above = 258, two_above = 1000000 WHERE object_type = 'refund'`)
	waits := e.do(post, path, body, one.auth(), freshKey()).want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
	if waits["change"].(map[string]any)["object_type"] != "order" || e.flows.asked(flow) != 1 {
		t.Errorf("what waits is %v; flows were notified: %v", waits, e.flows.calls)
	}
	for i, by := range []person{two, two} { // repeated, it is passed on again
		e.do(post, changesPath+"/"+waits["id"].(string)+"/confirm", nil, by.auth(), freshKey()).want(http.StatusOK)
		if n := e.flows.asked(flow); n != 2+i {
			t.Errorf("the order's flow was commanded %d times", n)
		}
	}
	e.do(post, path, body, one.auth(), freshKey()).want(http.StatusOK)
	if n := e.flows.asked(flow); n != 4 || e.flows.count() != 5 { // and the wallet's
		t.Errorf("the flows were commanded: %v", e.flows.calls)
	}
}

// Of two late payments of an order, one officer may refund the smaller one only: the request reaches its flow alone.
func TestRefundOfOneOfTwoLatePaymentsReachesItsFlow(t *testing.T) {
	e := start(t)
	vendor, one := e.person(exchange.RoleVendor), e.person(exchange.RoleTreasury)
	o := e.order(e.person(exchange.RoleCustomer), e.offer(vendor, e.wallet(vendor)).ID)
	storetest.Exec(t, e.store, `UPDATE approval_rules SET one_above = 300, two_above = 300 WHERE object_type = 'refund'`)
	large := storetest.Attempt(t, e.store, o)
	if _, err := e.store.RecordFailure(t.Context(), large.ID, exchange.Observation{State: exchange.SeenFailed, Soft: true}); err != nil {
		t.Fatal(err)
	}
	small := storetest.Attempt(t, e.store, o)
	if _, err := e.store.CloseOrder(t.Context(), o.ID, exchange.OrderCancelled, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	for attempt, amount := range map[uuid.UUID]string{large.ID: "500", small.ID: "259"} {
		if _, err := e.store.AcceptPayment(t.Context(), attempt, storetest.Listed(t, e.store, storetest.Paid(t, money.Must(money.KES, amount))), time.Time{}); err != nil {
			t.Fatal(err)
		}
		e.watch(attempt)
	}
	before := e.flows.count()
	e.do(post, ordersPath+"/"+o.ID.String()+"/refund", map[string]any{"note": "the payer asks for it"}, one.auth(), freshKey()).want(http.StatusOK)
	if calls := e.flows.calls[before:]; !slices.Equal(calls, []string{"late command " + small.ID.String()}) {
		t.Errorf("flows were commanded: %v", calls)
	}
}
