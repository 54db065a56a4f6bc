package workflows_test

import (
	"testing"
	"time"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// withdrawalRehearsals are the reasons of withdrawals.
func withdrawalRehearsals() map[workflows.Reason]rehearsal {
	return map[workflows.Reason]rehearsal{
		workflows.ReasonWithdrawalUnknown: {retryOrResolve, unheardWithdrawal},
		workflows.ReasonWithdrawalRefused: {retryOrResolve, takenOut(func(c *parkedCommand, w *withdrawalHarness) {
			w.plans(refuses("2028"), pays)
			if c.verb == activities.VerbResolve { // it was made all the same
				w.plans(payer{code: "2028", after: 5 * time.Second, late: time.Minute})
			}
		})},
		workflows.ReasonWithdrawalCredential: {retryOrResolve, takenOut(func(c *parkedCommand, w *withdrawalHarness) {
			w.plans(refuses("2001"), pays)
			if c.verb == activities.VerbResolve {
				w.plans(payer{code: "2001", after: 5 * time.Second, late: time.Minute})
			}
		})},
		workflows.ReasonWithdrawalFloat: {onlyRetry, takenOut(func(c *parkedCommand, w *withdrawalHarness) {
			w.setFloat(money.Must(money.KES, "10"))
			c.mend = func() { w.setFloat(money.Must(money.KES, "100000")) }
		})},
		workflows.ReasonWithdrawalSuspended: {retryOrResolve, suspendedWithdrawal},
		workflows.ReasonWithdrawalInactive: {onlyRetry, takenOut(func(c *parkedCommand, w *withdrawalHarness) {
			w.setFloat(money.Must(money.KES, "10"))
			w.at(3*time.Minute, func() {
				w.switched(w.market.Vendor, false)
				w.setFloat(money.Must(money.KES, "100000"))
			})
			c.mend = func() { w.switched(w.market.Vendor, true) }
		})},
		workflows.ReasonWithdrawalLate:  lateClaim(exchange.MomoWithdrawal),
		workflows.ReasonWithdrawalTwice: latePaidTwice(exchange.MomoWithdrawal, (*payoutHarness).paidByAnother),
		workflows.ReasonWithdrawalBank: {onlyRetry, takenOut(func(c *parkedCommand, w *withdrawalHarness) {
			w.byBank()
			c.mend = func() { w.at(time.Hour, func() { w.confirm("confirm", w.two) }) }
		})},
	}
}

// takenOut runs a withdrawal that two officers let go. A retry or a receipt ends it as paid.
func takenOut(set func(*parkedCommand, *withdrawalHarness)) func(*testing.T, *parkedCommand) {
	return func(t *testing.T, c *parkedCommand) {
		w := newWithdrawalHarness(t)
		w.plans(pays)
		set(c, w)
		w.executed()
		c.await(t, w.env, w.signs, workflows.WithdrawalID(w.ask.ID), func() { w.commands(c.verb) })
		w.wantEnd(w.play(), exchange.WithdrawalCompleted, exchange.WaitNothing)
		wants(c.verb, "")(t, w.harness)
		w.has("99000")
	}
}

// commands gives an operator's command. Two officers attest the receipt of a resolve before.
func (w *withdrawalHarness) commands(verb string) {
	note := "why"
	if verb == activities.VerbResolve {
		note = "UKLMANUAL1"
		if paid := w.paidOut(); len(paid) > 0 {
			note = paid[0].receipt
		}
		w.attestLost(exchange.WithdrawalObject(w.ask.ID), note)
	}
	w.tell(verb, note)
}

// unheardWithdrawal makes one payout that the operator does not answer for.
func unheardWithdrawal(t *testing.T, c *parkedCommand) {
	w := newPayoutHarness(t, exchange.MomoWithdrawal, payer{code: "0", after: 5 * time.Second, silent: true, mute: true})
	c.mend = func() { w.operator.amend(activities.PayoutID(w.of.ID, 1), func(p *payer) { p.mute = false }) }
	c.await(t, w.env, w.signs, workflows.MomoPayoutID(w.of), func() {
		receipt := w.operator.paidOut(w.of.ID)[0].receipt
		if c.verb == activities.VerbResolve {
			w.attested(receipt)
		}
		w.says(c.verb, receipt)
	})
	if got := w.pay(t); got != paidOut {
		t.Errorf("it ended %+v", got)
	}
	wants(c.verb, "")(t, w.harness)
	if w.sound(t); !w.payable().Paid {
		t.Error("the payout is not booked")
	}
}

// suspendedWithdrawal runs a withdrawal while our credential is refused or, for a resolve, in a database that was put back from before the
// withdrawal was paid.
func suspendedWithdrawal(t *testing.T, c *parkedCommand) {
	if c.verb != activities.VerbResolve {
		takenOut(func(c *parkedCommand, w *withdrawalHarness) {
			w.at(30*time.Second, w.suspend)
			c.mend = w.resume
		})(t, c)
		return
	}
	w := newWithdrawalHarness(t)
	w.lost = true
	w.at(30*time.Second, func() {
		w.another() // the first request of the database
		storetest.PutBack(t, w.store.Store)
	})
	w.executed()
	c.await(t, w.env, w.signs, workflows.WithdrawalID(w.ask.ID), func() {
		w.commands(c.verb)
		w.at(time.Minute, w.releaseDatabase)
	})
	w.wantEnd(w.play(), exchange.WithdrawalCompleted, exchange.WaitNothing)
	wants(c.verb, "")(t, w.harness)
	if o := w.row(); o.Receipt != "UKLMANUAL1" || len(w.paidOut()) != 0 {
		t.Errorf("it was paid by %q, and %v was sent besides", o.Receipt, w.paidOut())
	}
}

// another begins the payout of another withdrawal.
func (w *withdrawalHarness) another() exchange.PaymentAttempt {
	mine := w.ask
	w.ask.ID = storetest.NewID(w.t)
	w.letGo()
	of := exchange.WithdrawalObject(w.ask.ID)
	id := activities.PayoutID(of.ID, 1)
	a, err := w.store.Store.BeginPayout(w.t.Context(), of, exchange.PaymentAttempt{ID: id, Provider: "daraja", CallbackToken: "token of " + id.String(), WorkflowID: workflows.MomoPayoutID(of)})
	if err != nil {
		w.t.Errorf("another payout: %v", err)
	}
	w.ask = mine
	w.others++
	return a
}

// suspend has the operator refuse our credential twice.
func (w *withdrawalHarness) suspend() {
	for range 2 {
		if err := w.store.NoteCredential(w.t.Context(), w.another().ID, "2001"); err != nil {
			w.t.Error(err)
		}
	}
}
