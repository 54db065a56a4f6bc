package workflows_test

import (
	"errors"
	"testing"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// lateRehearsals are the reasons about evidence that arrives after a flow has ended.
func lateRehearsals() map[workflows.Reason]rehearsal {
	return map[workflows.Reason]rehearsal{
		workflows.ReasonLateMoney: {refundOrResolve, func(t *testing.T, c *parkedCommand) {
			w, a := lateHarness(t)
			w.at(0, w.pay(a, payer{}))
			c.await(t, w.env, w.signs, workflows.LatePaymentID(a.ID), func() { w.command(c.verb) })
			outcome := w.late(t, a).Outcome
			wants(c.verb, "")(t, w)
			ended(t, w, exchange.OrderCancelled, exchange.DetailExpired)
			if c.verb == activities.VerbResolve {
				exception(exchange.ExcLate, exchange.ExcAccepted)(t, w)
				c.ends(t, outcome, workflows.LateResolved)
				return
			}
			refunded(price)(t, w)
			exception(exchange.ExcLate, exchange.ExcRefunded)(t, w)
			c.ends(t, outcome, workflows.LateRefunded)
		}},
		// The flow of an order that was paid late while it waited is there again before the retry.
		workflows.ReasonFlowGone: {onlyRetry, func(t *testing.T, c *parkedCommand) {
			w := newHarness(t)
			a := w.failsSoftly(w.request, "")
			w.env.OnSignalExternalWorkflow("default-test-namespace", workflows.OnRampID(a.OrderID), "", workflows.SignalCallback, workflows.CallbackRef{AttemptID: a.ID}).
				Return(func(string, string, string, string, any) error {
					if c.mended() {
						return nil
					}
					return errors.New("no such flow")
				})
			w.at(0, w.pay(a, payer{}))
			c.await(t, w.env, w.signs, workflows.LatePaymentID(a.ID), func() { w.command(c.verb) })
			c.ends(t, w.late(t, a).Outcome, workflows.LateAccounted)
			wants(c.verb, "")(t, w)
			if o, err := w.store.OrderByID(t.Context(), a.OrderID); err != nil || o.Status != exchange.OrderProcessing {
				t.Errorf("the order is %s, %v", o.Status, err)
			}
		}},
		workflows.ReasonMomoLate:    lateClaim(exchange.MomoOrder),
		workflows.ReasonMomoTwice:   latePaidTwice(exchange.MomoOrder, (*payoutHarness).sendsBack),
		workflows.ReasonRefundLate:  lateClaim(exchange.MomoRefund),
		workflows.ReasonRefundTwice: latePaidTwice(exchange.MomoRefund, (*payoutHarness).paidByAnother),
	}
}

// lateClaim has one source claim a payout that was recorded as refused. After a retry the operator confirms it, and a
// resolve names the receipt.
func lateClaim(kind exchange.MomoObjectType) rehearsal {
	return rehearsal{retryOrResolve, func(t *testing.T, c *parkedCommand) {
		p := payer{code: "0", mute: true}
		w, a := refusedBefore(t, kind, p)
		c.mend = func() { w.operator.amend(a.ID, func(p *payer) { p.mute = false }) }
		c.await(t, w.env, w.signs, workflows.LatePayoutID(a.ID), func() {
			if c.verb == activities.VerbResolve && kind == exchange.MomoWithdrawal { // two officers attest every receipt of one
				w.attested("UKLMANUAL1")
			}
			w.says(c.verb, "UKLMANUAL1")
		})
		c.ends(t, w.late(t, a, p), workflows.LateAccounted)
		wants(c.verb, "")(t, w.harness)
		w.paidOnce(t, a, true)
		want := w.operator.paidOut(w.request.ID)[0].receipt
		if c.verb == activities.VerbResolve {
			want = "UKLMANUAL1"
		}
		if p := w.payable(); p.Receipt != want {
			t.Errorf("booked with %q, want %q", p.Receipt, want)
		}
	}}
}

// latePaidTwice has a payout proven that was recorded as refused, when nothing is owed any more.
func latePaidTwice(kind exchange.MomoObjectType, before func(*payoutHarness, *testing.T)) rehearsal {
	return rehearsal{[]string{activities.VerbResolve}, func(t *testing.T, c *parkedCommand) {
		p := payer{code: "0"}
		w, a := refusedBefore(t, kind, p)
		before(w, t)
		c.await(t, w.env, w.signs, workflows.LatePayoutID(a.ID), func() { w.says(c.verb, "it is lost") })
		c.ends(t, w.late(t, a, p), workflows.LateResolved)
		wants(c.verb, "")(t, w.harness)
		w.paidOnce(t, a, false)
		w.decided(t, exchange.ExcAccepted)
	}}
}

// ends checks the outcome that a flow returns.
func (c *parkedCommand) ends(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("the flow ended %s, want %s", got, want)
	}
}
