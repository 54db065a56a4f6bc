package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/workflows"
)

// Parked answers one flow of every type and, while there is no cursor, says that there is more.
func (f *fakeFlows) Parked(_ context.Context, q ParkedFilter) (ParkedFlows, error) {
	if err := f.called("parked " + string(q.Reason) + " " + string(q.Network) + " " + string(q.After)); err != nil {
		return ParkedFlows{}, err
	}
	page := ParkedFlows{Total: 2, Flows: []ParkedFlow{
		{ID: workflows.OnRampID(uuid.Max), Type: workflows.TypeOnRamp, Reason: workflows.ReasonPayoutGas, Network: "tron", MerchantID: uuid.Max.String()},
		{ID: workflows.DepositWatchID("tron"), Type: workflows.TypeDepositWatch, Reason: workflows.ReasonDepositsStalled},
	}}
	if len(q.After) == 0 {
		page.Next = []byte("place")
	}
	return page, nil
}

func TestParkedFlowsAreListedWithWhatToDo(t *testing.T) {
	m := openMarket(t)
	const list = "/api/v1/auth/parked"
	officer := m.person(exchange.RoleTreasury).auth()

	first := m.do(get, list, nil, officer).want(200).object()
	flows := first["parked"].([]any)
	if len(flows) != 2 || first["total"] != 2.0 {
		t.Fatalf("the list holds %v", first)
	}
	order := flows[0].(map[string]any)
	if order["object_type"] != "order" || order["object_id"] != uuid.Max.String() || order["runbook"] != "docs/runbooks.md#payout-insufficient_gas" ||
		len(order["commands"].([]any)) != 2 || order["what"] == "" {
		t.Errorf("the parked order is shown as %v", order)
	}
	if watch := flows[1].(map[string]any); watch["object_type"] != nil || watch["object_id"] != nil || watch["network"] != nil {
		t.Errorf("the watch over a chain is shown as %v", watch)
	}
	if order["workflow_id"] != workflows.OnRampID(uuid.Max) || first["has_more"] != true {
		t.Errorf("the parked order is %v, more %v", order["workflow_id"], first["has_more"])
	}
	next := first["next_after"].(string)
	if last := m.do(get, list+"?network=tron&reason=step-failed&after="+next, nil, officer).want(200).object(); last["next_after"] != nil || last["has_more"] != false {
		t.Errorf("the last page goes on with %v", last["next_after"])
	}
	if got := m.flows.calls[len(m.flows.calls)-1]; got != "parked step-failed tron place" {
		t.Errorf("Temporal was asked for %q", got)
	}

	m.flows.failWith(exchange.Errorf(exchange.CodeUnavailable, "away"))
	m.do(get, list, nil, officer).want(http.StatusServiceUnavailable).refused(exchange.CodeUnavailable)
}

func TestParkedFlowsRefuseWhatIsNoFilter(t *testing.T) {
	m := openMarket(t)
	officer := m.person(exchange.RoleAdmin).auth()
	for query, pointer := range map[string]string{
		`reason=x" OR KivukoReason="`: "query/reason enum", "network=bitcoin": "query/network enum", "page_size=101": "query/page_size out_of_range", "after=%": "query/after format",
		"after=" + base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("x", maxCursor))): "query/after format",
	} {
		name, value, _ := strings.Cut(query, "=")
		m.do(get, "/api/v1/auth/parked?"+name+"="+url.QueryEscape(value), nil, officer).blames(pointer)
	}
	m.do(get, "/api/v1/auth/parked", nil, m.person(exchange.RoleOTCOfficer).auth()).refused(exchange.CodeForbidden)
}
