package api

import (
	"net/http"
	"testing"

	"kivuko/exchange"
)

// TestPartiesReadTheirMisfits checks that customers and merchants see only refunds and exceptions of their orders.
func TestPartiesReadTheirMisfits(t *testing.T) {
	e := start(t)
	vendor, customer, stranger := e.person(exchange.RoleVendor), e.person(exchange.RoleCustomer), e.person(exchange.RoleCustomer)
	offer := e.offer(vendor, e.wallet(vendor)).ID
	under := e.pays(customer, offer, "100", false)
	const list = "/api/v1/auth/refunds"
	count := func(path string, who person) int {
		t.Helper()
		return int(e.do(get, path, nil, who.auth()).want(http.StatusOK).object()["total"].(float64))
	}
	for who, want := range map[*person]int{&vendor: 1, &customer: 1, &stranger: 0} {
		if n := count(list, *who); n != want {
			t.Errorf("%s sees %d refunds, want %d", who.Email, n, want)
		}
		if n := count("/api/v1/auth/payment-exceptions", *who); n != want {
			t.Errorf("%s sees %d exceptions, want %d", who.Email, n, want)
		}
	}
	one := list + "/" + under.Refund.ID.String()
	e.do(get, one, nil, stranger.auth()).refused(exchange.CodeNotFound)
	if mine := e.do(get, one, nil, customer.auth()).want(http.StatusOK).object(); mine["phone_number"] == nil || mine["reason"] != nil {
		t.Errorf("the customer does not see where the money goes, or sees what is for staff: %v", mine)
	}
	if theirs := e.do(get, one, nil, vendor.auth()).want(http.StatusOK).object(); theirs["phone_number"] != nil {
		t.Errorf("the merchant sees the customer's number: %v", theirs)
	}
}

func TestOwnLimitsAndMovements(t *testing.T) {
	e := start(t)
	customer, stranger := e.person(exchange.RoleCustomer), e.person(exchange.RoleCustomer)
	limits := e.do(get, "/api/v1/auth/user/me/limits", nil, customer.auth()).want(http.StatusOK).object()
	if used := limits["used"].(map[string]any); used["day"] != "0.00" || used["month"] != "0.00" || limits["merchant"] != nil {
		t.Errorf("used %v", limits)
	}
	sub := e.person(exchange.RoleSubvendor, e.person(exchange.RoleVendor).ID)
	if shared := e.do(get, "/api/v1/auth/user/me/limits", nil, sub.auth()).want(http.StatusOK).object(); shared["merchant"] == nil || len(shared["counts"].([]any)) == 0 {
		t.Errorf("a subvendor's limits are %v", shared)
	}
	w := e.wallet(customer)
	e.fund(w, "12.5")
	path := "/api/v1/auth/wallet/id/" + w.ID.String() + "/movements"
	e.do(get, path, nil, customer.auth()).want(http.StatusOK)
	e.do(get, path, nil, stranger.auth()).refused(exchange.CodeNotFound)
	e.do(get, path+"?direction=out&created_from=2026-01-01T00:00:00Z", nil, customer.auth()).want(http.StatusOK)
	e.do(get, path+"?kind=gift&direction=up", nil, customer.auth()).blames("query/direction enum", "query/kind enum")
}

// TestChangesToAnotherVersionAreRefused checks that of two changes to one version of an offer only one succeeds.
func TestChangesToAnotherVersionAreRefused(t *testing.T) {
	e := start(t)
	vendor := e.person(exchange.RoleVendor)
	path := "/api/v1/auth/offers/" + e.draft(vendor, e.wallet(vendor)).ID.String()
	tag := e.do(get, path, nil, vendor.auth()).want(http.StatusOK).header.Get("ETag")
	first := e.do(patch, path, map[string]any{"rate": "131"}, vendor.auth(), header("If-Match", tag)).want(http.StatusOK)
	if next := first.header.Get("ETag"); next == tag || next == "" {
		t.Errorf("the tag stays %q after a change", next)
	}
	e.do(patch, path, map[string]any{"rate": "132"}, vendor.auth(), header("If-Match", tag)).refused(exchange.CodePrecondition)
	e.do(patch, path, map[string]any{"rate": "132"}, vendor.auth(), header("If-Match", `"none"`)).refused(exchange.CodePrecondition)
	if now := e.do(get, path, nil, vendor.auth()).want(http.StatusOK).object(); now["rate"] != first.object()["rate"] {
		t.Errorf("a refused change counted: %v", now["rate"])
	}
}

func TestErrorPages(t *testing.T) {
	e := start(t)
	p := e.do(get, "/api/v1/auth/user/me", nil).refused(exchange.CodeUnauthenticated).problem()
	if e.do(get, p.Type, nil).want(http.StatusOK); p.Type != "/docs/errors/unauthenticated" {
		t.Errorf("the type is %s", p.Type)
	}
	e.do(get, "/docs/errors/nothing", nil).refused(exchange.CodeNotFound)
}
