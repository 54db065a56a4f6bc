package api

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// The list shows each flow with its object and its possible actions, the longest parked first, page by page.
func TestParkedFlowsAreListedWithWhatToDo(t *testing.T) {
	m := openMarket(t)
	const list = "/api/v1/auth/parked"
	officer := m.person(exchange.RoleTreasury).auth()
	order := storetest.NewMarket(t, m.store).Order(t, m.store, "10")
	began := time.Now().Add(-time.Hour)
	for i, p := range []exchange.ParkedFlow{
		{WorkflowID: workflows.OnRampID(order.ID), Type: workflows.TypeOnRamp, ObjectType: "order", ObjectID: order.ID, Reason: string(workflows.ReasonPayoutGas), Network: "tron"},
		{WorkflowID: workflows.DepositWatchID("tron"), Type: workflows.TypeDepositWatch, Reason: string(workflows.ReasonDepositsStalled)},
	} {
		p.RunID, p.Since = "run", began.Add(time.Duration(i)*time.Minute)
		if err := m.store.KeepParked(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	first := m.do(get, list+"?page_size=1", nil, officer).want(200).object()
	flows := first["parked"].([]any)
	if len(flows) != 1 || first["total"] != 2.0 || first["has_more"] != true {
		t.Fatalf("the first page is %v", first)
	}
	shown := flows[0].(map[string]any)
	if shown["object_type"] != "order" || shown["object_id"] != order.ID.String() || shown["runbook"] != "docs/runbooks.md#payout-insufficient_gas" ||
		len(shown["commands"].([]any)) != 2 || shown["what"] == "" || shown["workflow_id"] != workflows.OnRampID(order.ID) ||
		shown["customer_id"] != order.CustomerID.String() || shown["merchant_id"] != order.VendorID.String() || shown["order_id"] != order.ID.String() ||
		shown["amount"] != order.Price.Crypto.String() || shown["asset"] != string(order.Asset) {
		t.Errorf("the parked order is shown as %v", shown)
	}
	last := m.do(get, list+"?page_size=1&after="+first["next_after"].(string), nil, officer).want(200).object()
	if flows = last["parked"].([]any); len(flows) != 1 || last["next_after"] != nil || last["has_more"] != false {
		t.Fatalf("the last page is %v", last)
	}
	if watch := flows[0].(map[string]any); watch["object_type"] != nil || watch["object_id"] != nil || watch["network"] != nil || watch["merchant_id"] != nil || watch["amount"] != nil {
		t.Errorf("the watch over a chain is shown as %v", watch)
	}
	for query, want := range map[string]float64{"?network=tron": 1, "?reason=deposits-stalled": 1, "?reason=step-failed": 0, "": 2} {
		if got := m.do(get, list+query, nil, officer).want(200).object(); got["total"] != want || len(got["parked"].([]any)) != int(want) {
			t.Errorf("%q finds %v", query, got)
		}
	}
}

func TestParkedFlowsRefuseWhatIsNoFilter(t *testing.T) {
	m := openMarket(t)
	officer := m.person(exchange.RoleAdmin).auth()
	for query, pointer := range map[string]string{
		`reason=x" OR KivukoReason="`: "query/reason enum", "network=bitcoin": "query/network enum", "page_size=101": "query/page_size out_of_range", "after=%": "query/after format",
		"after=" + base64.RawURLEncoding.EncodeToString([]byte("yesterday on-ramp:1")):          "query/after format",
		"after=" + base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("x", maxCursor))): "query/after format",
	} {
		name, value, _ := strings.Cut(query, "=")
		m.do(get, "/api/v1/auth/parked?"+name+"="+url.QueryEscape(value), nil, officer).blames(pointer)
	}
	m.do(get, "/api/v1/auth/parked", nil, m.person(exchange.RoleOTCOfficer).auth()).refused(exchange.CodeForbidden)
}

// Late money is found in the list by the exception in which it lies, from the prompt that its flow watches.
func TestParkedLateMoneyNamesItsException(t *testing.T) {
	e, late, _ := misfits(t)
	attempt := late.Exception.AttemptID
	p := exchange.ParkedFlow{
		WorkflowID: workflows.LatePaymentID(attempt), RunID: "run", Type: workflows.TypeLatePayment, ObjectType: "payment_attempt", ObjectID: attempt,
		Reason: string(workflows.ReasonLateMoney), Since: time.Now(),
	}
	if err := e.store.KeepParked(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	row := e.do(get, "/api/v1/auth/parked?reason=late-money", nil, e.person(exchange.RoleTreasury).auth()).want(200).object()["parked"].([]any)[0].(map[string]any)
	if row["payment_exception_id"] != late.Exception.ID.String() || row["order_id"] != late.Order.ID.String() || row["amount"] != "259.00" || row["asset"] != "KES" {
		t.Errorf("late money is listed as %v", row)
	}
}
