package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// pays has an amount arrive for a new order of 2 USDT (259 shillings), after its end where late.
func (e *env) pays(customer person, offer uuid.UUID, amount string, late bool) exchange.PaymentOutcome {
	e.t.Helper()
	o := e.order(customer, offer)
	a := storetest.Attempt(e.t, e.store, o)
	if late {
		if _, err := e.store.CloseOrder(e.t.Context(), o.ID, exchange.OrderCancelled, exchange.DetailExpired, exchange.Asked{}); err != nil {
			e.t.Fatal(err)
		}
	}
	out, err := e.store.AcceptPayment(e.t.Context(), a.ID, storetest.Listed(e.t, e.store, storetest.Paid(e.t, money.Must(money.KES, amount))), time.Time{})
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

// misfits is a store with one late payment, which is not decided, and one of too little, which the policy refunds.
func misfits(t *testing.T) (e *env, late, under exchange.PaymentOutcome) {
	t.Helper()
	e = start(t)
	vendor := e.person(exchange.RoleVendor)
	offer, customer := e.offer(vendor, e.wallet(vendor)).ID, e.person(exchange.RoleCustomer)
	return e, e.pays(customer, offer, "259", true), e.pays(customer, offer, "100", false)
}

func TestExceptionsAndRefundsAreRead(t *testing.T) {
	e, late, under := misfits(t)
	officer := e.person(exchange.RoleOTCOfficer)
	read := func(path string) *reply {
		t.Helper()
		return e.do(get, "/api/v1/auth/"+path, nil, officer.auth())
	}
	hour := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	x, r := "payment-exceptions", "refunds"
	for query, want := range map[string]int{
		x: 2, x + "?status=open": 1, x + "?kind=late": 1, x + "?kind=unmatched": 0, x + "?asset=KES": 2, x + "?asset=USDT": 0,
		x + "?order_id=" + late.Order.ID.String(): 1, x + "?created_from=" + hour(time.Hour): 0, x + "?created_to=" + hour(time.Hour): 2,
		x + "?created_to=" + hour(-time.Hour): 0, x + "?page_id=2&page_size=1": 1,
		x + "?attempt_id=" + late.Exception.AttemptID.String(): 1, x + "?attempt_id=" + newID().String(): 0,
		r: 1, r + "?status=pending": 1, r + "?status=completed": 0, r + "?asset=KES": 1, r + "?asset=USDC": 0,
		r + "?order_id=" + under.Order.ID.String(): 1, r + "?order_id=" + late.Order.ID.String(): 0,
		r + "?payment_exception_id=" + under.Exception.ID.String(): 1, r + "?payment_exception_id=" + late.Exception.ID.String(): 0,
		r + "?created_from=" + hour(time.Hour): 0, r + "?created_to=" + hour(time.Hour): 1, r + "?page_id=2&page_size=1": 0,
	} {
		name := strings.ReplaceAll(strings.SplitN(query, "?", 2)[0], "-", "_")
		if got := read(query).want(http.StatusOK).object()[name].([]any); len(got) != want {
			t.Errorf("%s: %d rows, want %d", query, len(got), want)
		}
	}
	one := read(x + "/" + late.Exception.ID.String()).want(http.StatusOK).object()
	if one["kind"] != "late" || one["status"] != "open" || one["status_detail"] != "operator" || one["amount"] != "259.00" ||
		one["order_id"] != late.Order.ID.String() || one["receipt"] != late.Exception.Receipt {
		t.Errorf("the exception is %v", one)
	}
	back := read(r + "/" + under.Refund.ID.String()).want(http.StatusOK).object()
	if back["status"] != "pending" || back["status_detail"] != "payout" || back["amount"] != "100.00" || back["completed_at"] != nil ||
		back["payment_exception_id"] != under.Exception.ID.String() || back["phone_number"] == under.Refund.Phone.Digits() {
		t.Errorf("the refund is %v", back)
	}
	read(x + "/" + newID().String()).refused(exchange.CodeNotFound)
	read(r + "/" + newID().String()).refused(exchange.CodeNotFound)
	read(x+"?asset=BTC&status=gone&created_from=today&attempt_id=1").blames("query/status enum", "query/asset enum", "query/attempt_id format", "query/created_from format")
	if others := e.do(get, "/api/v1/auth/"+r, nil, e.person(exchange.RoleVendor).auth()).want(http.StatusOK).object(); others["total"] != 0.0 {
		t.Errorf("a stranger sees %v", others)
	}
}

// watch adds a flow that watches a payment attempt and accepts commands.
func (e *env) watch(attempt uuid.UUID) {
	e.flows.mu.Lock()
	defer e.flows.mu.Unlock()
	if e.flows.watches == nil {
		e.flows.watches = map[uuid.UUID]error{}
	}
	e.flows.watches[attempt] = nil
}

// asked counts the calls of a kind about an object.
func (f *fakeFlows) asked(what string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.calls {
		if c == what {
			n++
		}
	}
	return n
}

func verbOf(x exchange.PaymentException, verb string) string {
	return "/api/v1/auth/payment-exceptions/" + x.ID.String() + "/" + verb
}

func TestExceptionIsSettledOnce(t *testing.T) {
	e, late, _ := misfits(t)
	officer, second, key := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin), newID().String()
	x, vendor := late.Exception, late.Order.VendorID
	flow := "late command " + x.AttemptID.String()
	body := map[string]any{"note": "it was for the vendor", "merchant_id": vendor}
	e.do(post, verbOf(x, "credit"), body, officer.auth()).refused(exchange.CodeIdempotencyRequired)
	e.do(post, verbOf(x, "credit"), map[string]any{"merchant_id": vendor}, officer.auth(), withKey(newID().String())).blames("/note required")
	e.do(post, verbOf(x, "credit"), map[string]any{"note": "x"}, officer.auth(), withKey(newID().String())).blames("/merchant_id required")
	e.do(post, verbOf(x, "accept"), body, officer.auth(), withKey(newID().String())).blames("/merchant_id unknown_field")
	e.do(post, verbOf(x, "accept"), map[string]any{"note": "x"}, e.person(exchange.RoleOTCOfficer).auth(), withKey(newID().String())).refused(exchange.CodeForbidden)
	if e.flows.asked(flow) != 0 {
		t.Error("the flow was notified of a refused decision")
	}
	for range 2 {
		done := e.do(post, verbOf(x, "credit"), body, officer.auth(), withKey(key)).want(http.StatusOK).object()
		if done["status"] != "credited" || done["note"] != "it was for the vendor" || done["status_detail"] != "none" {
			t.Errorf("credited %v", done)
		}
	}
	e.do(post, verbOf(x, "credit"), body, second.auth(), withKey(newID().String())).want(http.StatusOK)
	if n := e.flows.asked(flow); n != 1 {
		t.Errorf("the flow was notified %d times", n)
	}
	for _, verb := range []string{"accept", "write-off", "refund"} {
		e.do(post, verbOf(x, verb), map[string]any{"note": "x"}, second.auth(), withKey(newID().String())).refused(exchange.CodeStateConflict)
	}
	a, err := e.store.Account(t.Context(), exchange.Owned(exchange.AccFiatBalance, vendor, money.KES))
	if err != nil || a.Posted.String() != "259.00" {
		t.Errorf("the merchant has %s, %v", a.Posted, err)
	}
}

// Above the first approval value the decision waits for a second officer; then the flow is notified.
func TestExceptionIsSettledByTwo(t *testing.T) {
	e, late, _ := misfits(t)
	storetest.Patch(t, e.store, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{
		exchange.ApproveTransfer: {OneAbove: money.Must(money.KES, "258"), TwoAbove: money.Must(money.KES, "2000000")},
	}})
	officer, second, x := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin), late.Exception
	flow := "late command " + x.AttemptID.String()
	waits := e.do(post, verbOf(x, "write-off"), map[string]any{"note": "nobody asks"}, officer.auth(), withKey(newID().String())).
		want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
	if waits["kind"] != "exception_decision" || waits["change"].(map[string]any)["verdict"] != "written_off" || waits["was"].(map[string]any)["amount"] != "259.00" {
		t.Errorf("waits %v", waits)
	}
	confirm := changesPath + "/" + waits["id"].(string) + "/confirm"
	e.do(post, confirm, nil, officer.auth(), withKey(newID().String())).refused(exchange.CodeForbidden)
	if n := e.flows.asked(flow); n != 0 {
		t.Errorf("the flow was notified %d times of an unconfirmed decision", n)
	}
	e.do(post, confirm, nil, second.auth(), withKey(newID().String())).want(http.StatusOK)
	now := e.do(get, "/api/v1/auth/payment-exceptions/"+x.ID.String(), nil, officer.auth()).want(http.StatusOK).object()
	if now["status"] != "written_off" || now["note"] != "nobody asks" || e.flows.asked(flow) != 1 {
		t.Errorf("the exception is %v, the flow was notified %d times", now, e.flows.asked(flow))
	}
}

func TestExceptionIsGivenBack(t *testing.T) {
	e, late, under := misfits(t)
	officer, key := e.person(exchange.RoleTreasury), withKey(newID().String())
	x, body := late.Exception, map[string]any{"note": "the payer asks for it"}
	ask := func(x exchange.PaymentException, o ...option) *reply {
		return e.do(post, verbOf(x, "refund"), body, append(o, officer.auth())...)
	}
	// No flow watches: one is started, and it accepts the same request.
	ask(x, key).refused(exchange.CodeUnavailable)
	if n := e.flows.asked("callback " + x.AttemptID.String()); n != 1 {
		t.Errorf("the watch was woken %d times", n)
	}
	e.watch(x.AttemptID)
	ask(x, key).want(http.StatusOK)
	if n := e.flows.asked("late command " + x.AttemptID.String()); n != 2 {
		t.Errorf("the watch was asked %d times", n)
	}
	// A refund in progress is shown, and no flow is called.
	if on := ask(under.Exception, withKey(newID().String())).want(http.StatusOK).object(); on["status"] != "refunding" {
		t.Errorf("on its way: %v", on)
	}
	if n := e.flows.asked("late command " + under.Exception.AttemptID.String()); n != 0 {
		t.Errorf("the watch of a refund on its way was asked %d times", n)
	}
	e.reconcile(e.wallet(e.person(exchange.RoleCustomer)))
	all, _, err := e.store.ListExceptions(t.Context(), store.ExceptionFilter{Kind: exchange.ExcReconciliation}, store.Page{Number: 1, Size: 1})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d differences, %v", len(all), err)
	}
	ask(all[0], withKey(newID().String())).refused(exchange.CodeStateConflict)
	ask(exchange.PaymentException{ID: newID()}, withKey(newID().String())).refused(exchange.CodeNotFound)
}

// The error explains that a refund is not possible yet.
func TestExceptionsWithoutAWayBack(t *testing.T) {
	kes := money.Must(money.KES, "259")
	for name, c := range map[string]struct {
		x    exchange.PaymentException
		code exchange.Code
	}{
		"paid twice":    {exchange.PaymentException{Status: exchange.ExcOpen, Kind: exchange.ExcPaidTwice, Amount: kes, AttemptID: newID()}, exchange.CodeStateConflict},
		"too little":    {exchange.PaymentException{Status: exchange.ExcOpen, Kind: exchange.ExcLate, Amount: money.Must(money.KES, "9"), AttemptID: newID()}, exchange.CodeStateConflict},
		"written off":   {exchange.PaymentException{Status: exchange.ExcWrittenOff, Kind: exchange.ExcLate, Amount: kes, AttemptID: newID()}, exchange.CodeStateConflict},
		"as it must be": {exchange.PaymentException{Status: exchange.ExcOpen, Kind: exchange.ExcLate, Amount: kes, AttemptID: newID()}, ""},
	} {
		if got := exchange.CodeOf(refundable(c.x, exchange.MinMomoPayout())); got != c.code {
			t.Errorf("%s: %q, want %q", name, got, c.code)
		}
	}
}
