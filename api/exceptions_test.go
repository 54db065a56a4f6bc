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
func (e *env) pays(customer person, offer uuid.UUID, amount string, late bool) store.PaymentOutcome {
	e.t.Helper()
	o := e.order(customer, offer)
	a := storetest.Attempt(e.t, e.store, o)
	if late {
		if _, err := e.store.CloseOrder(e.t.Context(), o.ID, exchange.OrderCancelled, exchange.DetailExpired, exchange.System("flow")); err != nil {
			e.t.Fatal(err)
		}
	}
	out, err := e.store.AcceptPayment(e.t.Context(), a.ID, storetest.Paid(e.t, money.Must(money.KES, amount)), time.Time{})
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

// misfits is a store with one late payment, which nobody has decided about, and one of too little, which policy returns.
func misfits(t *testing.T) (e *env, late, under store.PaymentOutcome) {
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
	read(x+"?asset=BTC&status=gone&created_from=today").blames("query/status enum", "query/asset enum", "query/created_from format")
	e.do(get, "/api/v1/auth/"+r, nil, e.person(exchange.RoleVendor).auth()).refused(exchange.CodeForbidden)
}
