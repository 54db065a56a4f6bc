package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/workflows"
)

const retryPath = "/api/v1/auth/parked/retry"

// parks puts a flow on the list.
func (e *env) parks(flow, flowType, object string, id uuid.UUID, r workflows.Reason, n exchange.Network) exchange.ParkedFlow {
	e.t.Helper()
	p := exchange.ParkedFlow{
		WorkflowID: flow, RunID: "run", Type: flowType, ObjectType: object, ObjectID: id, Reason: string(r), Network: n, Since: time.Now(),
	}
	if err := e.store.KeepParked(e.t.Context(), p); err != nil {
		e.t.Fatal(err)
	}
	return p
}

// One request retries each flow of a reason by a command of its own, says of each what it answered, and leaves the others alone.
func TestParkedFlowsAreRetriedTogether(t *testing.T) {
	m := openMarket(t)
	officer := m.person(exchange.RoleTreasury)
	var orders []string
	for _, n := range []exchange.Network{exchange.Tron, exchange.Tron, exchange.Ethereum} {
		o := m.order(m.customer, m.offer.ID)
		orders = append(orders, o.ID.String())
		m.parks(workflows.OnRampID(o.ID), workflows.TypeOnRamp, "order", o.ID, workflows.ReasonStepFailed, n)
	}
	other := m.order(m.customer, m.offer.ID)
	m.parks(workflows.OnRampID(other.ID), workflows.TypeOnRamp, "order", other.ID, workflows.ReasonPayoutGas, exchange.Tron)
	m.parks(workflows.CryptoPayoutID(other.ID), workflows.TypeCryptoPayout, "chain_payment", other.ID, workflows.ReasonStepFailed, exchange.Tron)

	body := map[string]any{"reason": "step-failed", "network": "tron", "note": "the disk is bigger"}
	first := m.do(post, retryPath, body, officer.auth(), withKey("k")).want(200)
	got := first.object()
	if got["accepted"] != 2.0 || got["refused"] != 1.0 || got["total"] != 3.0 || got["has_more"] != false {
		t.Fatalf("answered %v", got)
	}
	for i, want := range []struct{ flow, result, code string }{
		{"on-ramp:" + orders[0], "accepted", ""}, {"on-ramp:" + orders[1], "accepted", ""}, {"crypto-payout:" + other.ID.String(), "refused", "unsupported"},
	} {
		flow := got["flows"].([]any)[i].(map[string]any)
		if code, _ := flow["code"].(string); flow["workflow_id"] != want.flow || flow["result"] != want.result || code != want.code {
			t.Errorf("flow %d is %v, want %v", i, flow, want)
		}
	}
	calls := m.flows.count()
	if again := m.do(post, retryPath, body, officer.auth(), withKey("k")).want(200); string(again.body) != string(first.body) || m.flows.count() != calls {
		t.Errorf("repeated, it answers %s after %d calls", again.body, m.flows.count()-calls)
	}
	log, err := m.store.AuditRecords(t.Context(), store.AuditFilter{Action: "order.retry"}, 10)
	if err != nil || len(log) != 2 || log[0].Actor != "user:"+officer.ID.String() {
		t.Errorf("the audit log has %+v, %v", log, err)
	}
	m.flows.failWith(exchange.Errorf(exchange.CodeStateConflict, "Nothing waits for an operator here."))
	refused := m.do(post, retryPath, body, officer.auth(), withKey("l")).want(200).object()
	flow := refused["flows"].([]any)[0].(map[string]any)
	if refused["accepted"] != 0.0 || flow["code"] != "state_conflict" || flow["detail"] != "Nothing waits for an operator here." {
		t.Errorf("flows that refuse are shown as %v", refused)
	}
}

// A request that died after it had commanded a flow commands it once when it runs again.
func TestParkedRetryRunsTwiceAndCommandsOnce(t *testing.T) {
	m := openMarket(t)
	o := m.order(m.customer, m.offer.ID)
	p := m.parks(workflows.OnRampID(o.ID), workflows.TypeOnRamp, "order", o.ID, workflows.ReasonStepFailed, exchange.Tron)
	c := &call{ctx: t.Context(), who: principalOf(m.person(exchange.RoleAdmin)), objectID: newID()}
	before := m.flows.count()
	for range 2 {
		if out := m.server.retryEach(c, []exchange.ParkedFlow{p}, ""); out[0].Result != "accepted" {
			t.Errorf("answered %+v", out[0])
		}
	}
	if n := m.flows.count() - before; n != 1 {
		t.Errorf("the flow was commanded %d times", n)
	}
}

func TestParkedRetryRefusesWhatItMustNotDo(t *testing.T) {
	m := openMarket(t)
	admin := m.person(exchange.RoleAdmin)
	for reason, pointer := range map[string]string{
		"late-money": "/reason enum", string(workflows.ReasonRefundClaimed): "/reason enum", string(workflows.ReasonPayoutOverdue): "/reason enum", "gone": "/reason enum", "": "/reason enum",
	} {
		answer := m.do(post, retryPath, map[string]any{"reason": reason}, admin.auth(), withKey("k"+reason))
		answer.blames(pointer)
		if known := slices.Contains(workflows.Reasons(), workflows.Reason(reason)); known != strings.Contains(string(answer.body), "needs a decision of its own") {
			t.Errorf("%q is refused with %s", reason, answer.body)
		}
	}
	m.do(post, retryPath, map[string]any{"network": "tron"}, admin.auth(), withKey("all")).blames("/reason required")
	m.do(post, retryPath, map[string]any{"reason": "step-failed", "network": "bitcoin", "note": strings.Repeat("x", 501)}, admin.auth(), withKey("n")).
		blames("/network enum", "/note too_long")
	m.do(post, retryPath, map[string]any{"reason": "step-failed"}, admin.auth()).refused(exchange.CodeIdempotencyRequired)
	m.do(post, retryPath, map[string]any{"reason": "step-failed"}, m.person(exchange.RoleOTCOfficer).auth(), withKey("o")).refused(exchange.CodeForbidden)
	if all := retriedTogether(); !slices.Contains(all, "payout-insufficient_gas") || slices.Contains(all, "late-money") {
		t.Errorf("together are retried %v", all)
	}
}

// More flows than one request takes are left for the next.
func TestParkedRetryIsBounded(t *testing.T) {
	m := openMarket(t)
	for range maxRetried + 1 {
		id := newID()
		m.parks(workflows.CryptoPayoutID(id), workflows.TypeCryptoPayout, "chain_payment", id, workflows.ReasonStepFailed, exchange.Tron)
	}
	got := m.do(post, retryPath, map[string]any{"reason": "step-failed"}, m.person(exchange.RoleAdmin).auth(), withKey("k")).want(200).object()
	if len(got["flows"].([]any)) != maxRetried || got["total"] != float64(maxRetried+1) || got["has_more"] != true {
		t.Errorf("%d flows of %v, more %v", len(got["flows"].([]any)), got["total"], got["has_more"])
	}
	rest := map[string]any{"reason": "step-failed", "after": got["next_after"]}
	last := m.do(post, retryPath, rest, m.person(exchange.RoleAdmin).auth(), withKey("l")).want(200).object()
	if len(last["flows"].([]any)) != 1 || last["has_more"] != false || last["next_after"] != nil {
		t.Errorf("after these: %v", last)
	}
	rest["after"] = "gone"
	m.do(post, retryPath, rest, m.person(exchange.RoleAdmin).auth(), withKey("m")).blames("/after format")
}
