package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// purchaseRehearsals are the reasons of an order that waits for its shillings, and of failing activities.
func purchaseRehearsals() map[workflows.Reason]rehearsal {
	const never = 10000 * time.Hour
	unseen := func(p payer, plain func(*payer), resolved func(*testing.T, *harness)) rehearsal {
		return rehearsal{retryOrResolve, func(t *testing.T, c *parkedCommand) {
			w := newHarness(t)
			w.operator.script = func(exchange.PaymentAttempt, int) payer { return p }
			c.mend = func() { w.operator.amend(activities.CollectionID(w.request.ID, 1), plain) }
			c.await(t, w.env, w.signs, workflows.OnRampID(w.request.ID), func() {
				w.command(c.verb)
				w.at(40*time.Hour, func() { w.lateCommand(activities.VerbResolve) }) // for the watch over a prompt with an unknown outcome
			})
			w.run(t)
			wants(c.verb, "")(t, w)
			if c.verb == activities.VerbResolve {
				resolved(t, w)
				return
			}
			delivered(t, w)
		}}
	}
	unpaid := func(t *testing.T, w *harness) {
		t.Helper()
		ended(t, w, exchange.OrderCancelled, exchange.DetailExpired)
	}
	return map[workflows.Reason]rehearsal{
		workflows.ReasonPromptRefused: {onlyRetry, func(t *testing.T, c *parkedCommand) {
			w := newHarness(t)
			w.operator.script = func(exchange.PaymentAttempt, int) payer {
				if c.mended() {
					return pays
				}
				return payer{refuse: "403.002.1001", config: true}
			}
			c.await(t, w.env, w.signs, workflows.OnRampID(w.request.ID), func() { w.command(c.verb) })
			w.run(t)
			wants(c.verb, "")(t, w)
			delivered(t, w)
		}},
		workflows.ReasonReceiptMissing: unseen(payer{code: "0", after: time.Minute, silent: true, unlisted: true}, func(p *payer) { p.unlisted = false }, delivered),
		workflows.ReasonOneSource:      unseen(payer{code: "0", after: time.Minute, mute: true, unlisted: true}, func(p *payer) { p.mute = false }, delivered),
		workflows.ReasonDisagree:       unseen(payer{code: "0", after: time.Minute, lies: true, unlisted: true}, func(p *payer) { p.lies = false }, delivered),
		workflows.ReasonOutcomeUnknown: {retryOrResolve, func(t *testing.T, c *parkedCommand) {
			if c.verb == activities.VerbResolve { // nothing was paid
				unseen(payer{code: "0", after: never, silent: true, mute: true}, nil, unpaid).play(t, c)
				return
			}
			unseen(payer{code: "0", after: time.Minute, silent: true, mute: true, unlisted: true}, func(p *payer) { p.mute, p.unlisted = false, false }, nil).play(t, c)
		}},
		workflows.ReasonStepFailed: {onlyRetry, func(t *testing.T, c *parkedCommand) {
			w := newHarness(t)
			w.store.fault = func(call string) error {
				if call == "CompleteOrder" && !c.mended() {
					return errBug
				}
				return nil
			}
			c.await(t, w.env, w.signs, workflows.OnRampID(w.request.ID), func() { w.command(c.verb) })
			w.run(t)
			wants(c.verb, "")(t, w)
			delivered(t, w)
		}},
	}
}

// amend changes how the operator handles a request from now on.
func (o *operator) amend(id uuid.UUID, change func(*payer)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.plans[id]
	change(&p)
	o.plans[id] = p
	for i := range o.book {
		if o.book[i].attempt.ID == id {
			change(&o.book[i].payer)
		}
	}
}

// refundRehearsals are the reasons about refunds in shillings after the crypto can't be sent.
func refundRehearsals() map[workflows.Reason]rehearsal {
	orders := func(w *harness) string { return workflows.OnRampID(w.request.ID) }
	own := func(*harness) string { return "refund:" }
	return map[workflows.Reason]rehearsal{
		workflows.ReasonRefundPayee: {refundOrResolve, owed(orders, func(_ *parkedCommand, w *harness) { w.operator.stranger = true })},
		workflows.ReasonRefundRefused: {retryOrResolve, owed(orders, func(c *parkedCommand, w *harness) {
			payouts(w, func() payer {
				if c.mended() {
					return pays
				}
				return payer{code: "2040", after: 5 * time.Second}
			})
		})},
		workflows.ReasonRefundFloat: {onlyRetry, owed(orders, func(c *parkedCommand, w *harness) {
			w.setFloat(money.Must(money.KES, "10"))
			c.mend = func() { w.setFloat(money.Must(money.KES, "100000")) }
		})},
		workflows.ReasonRefundCredential: {retryOrResolve, owed(orders, func(c *parkedCommand, w *harness) {
			payouts(w, func() payer {
				if c.mended() {
					return pays
				}
				return payer{code: "2001", after: 5 * time.Second}
			})
		})},
		workflows.ReasonRefundSuspended: {retryOrResolve, owed(orders, func(c *parkedCommand, w *harness) {
			if c.verb == activities.VerbResolve { // it was paid before the database was put back
				w.store.lost = func(call string) error {
					if call == "RefundOrder" {
						storetest.PutBack(w.t, w.store.Store)
					}
					return nil
				}
				w.at(5*time.Minute+30*time.Second, func() { w.attestLost(exchange.RefundObject(refundOf(w).ID), "UKLMANUAL1") })
				return
			}
			w.store.breaker = &exchange.Breaker{OpenedAt: w.start}
			c.mend = func() { w.store.breaker = nil }
			w.store.fault = func(call string) error {
				if call == "BeginPayout" && !c.mended() {
					return exchange.Errorf(exchange.CodeSuspended, "suspended")
				}
				return nil
			}
		})},
		workflows.ReasonRefundPayeeLimit: {retryOrResolve, owed(orders, func(c *parkedCommand, w *harness) {
			w.store.fault = func(call string) error {
				if call == "BeginPayout" && !c.mended() {
					return exchange.Errorf(exchange.CodeLimitReached, "no more today")
				}
				return nil
			}
		})},
		workflows.ReasonRefundUnknown: {retryOrResolve, owed(own, func(c *parkedCommand, w *harness) {
			payouts(w, func() payer { return payer{code: "0", after: 5 * time.Second, silent: true, mute: true} })
			c.mend = func() { w.operator.amend(activities.PayoutID(refundOf(w).ID, 1), func(p *payer) { p.mute = false }) }
		})},
		workflows.ReasonRefundDisagree: {retryOrResolve, owed(own, func(c *parkedCommand, w *harness) {
			payouts(w, func() payer { return payer{code: "0", after: 5 * time.Second, lies: true} })
			// The contradiction stays in the rows, so even after another query a receipt is needed.
			c.mend = func() { w.at(2*time.Hour, func() { w.notifyFlow(w.decree(activities.VerbResolve), "receipt") }) }
		})},
	}
}

// refundOf returns the refund of a purchase whose crypto could not be sent.
func refundOf(w *harness) exchange.Refund {
	for _, r := range w.refunds() {
		return r
	}
	return exchange.Refund{}
}

// payouts sets what the operator does with the payouts of refunds.
func payouts(w *harness, do func() payer) {
	w.operator.script = func(a exchange.PaymentAttempt, _ int) payer {
		if a.Direction == exchange.Payout {
			return do()
		}
		return pays
	}
}

// owed runs a purchase that is refunded by command, and whose refund fails at first. The flow that parks is the
// order's own or the refund's; commands go to the order's.
func owed(parks func(*harness) string, set func(*parkedCommand, *harness)) func(*testing.T, *parkedCommand) {
	return func(t *testing.T, c *parkedCommand) {
		w := newHarness(t)
		w.chain.script = func(int) outcome { return outcome{refused: chain.ReasonBlocked} }
		set(c, w)
		w.at(5*time.Minute, func() { w.notifyFlow(w.decree(activities.VerbRefund), "give back") })
		c.await(t, w.env, w.signs, parks(w), func() { w.command(c.verb) })
		w.run(t)
		wants("give back", "")(t, w)
		wants(c.verb, "")(t, w)
		ended(t, w, exchange.OrderFailed, exchange.DetailRefundOpen)
		r := refundOf(w)
		if r.Status != exchange.RefundCompleted {
			t.Errorf("the refund is %s", r.Status)
		}
		unsent := []workflows.Reason{workflows.ReasonRefundPayee, workflows.ReasonRefundRefused, workflows.ReasonRefundPayeeLimit, workflows.ReasonRefundCredential, workflows.ReasonRefundSuspended}
		otherwise := c.verb == activities.VerbResolve && slices.Contains(unsent, c.reason)
		if !otherwise {
			refunded(price)(t, w)
		} else if out := w.operator.paidOut(w.request.ID); len(out) != 0 || r.Receipt != "UKLMANUAL1" {
			t.Errorf("%v was paid besides the payment by other means, the receipt is %q", out, r.Receipt)
		}
	}
}
