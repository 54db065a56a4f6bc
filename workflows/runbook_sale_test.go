package workflows_test

import (
	"slices"
	"testing"
	"time"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// saleRehearsals are the reasons of an order that sells crypto.
func saleRehearsals() map[workflows.Reason]rehearsal {
	said := func(v exchange.Verdict) func(*parkedCommand, *saleHarness) {
		return func(c *parkedCommand, w *saleHarness) {
			w.verdicts(v)
			c.mend = func() { w.verdicts() }
		}
	}
	refused := func(code string) func(*parkedCommand, *saleHarness) {
		return func(c *parkedCommand, w *saleHarness) {
			w.payouts(refuses(code))
			c.mend = func() { w.payouts(pays) }
		}
	}
	return map[workflows.Reason]rehearsal{
		workflows.ReasonDepositDenied:    {retryOrRefund, sale(said(exchange.VerdictHit))},
		workflows.ReasonDepositScreening: {retryOrRefund, sale(said(exchange.VerdictUnknown))},
		workflows.ReasonMomoRefused:      {retryOrRefund, sale(refused("2028"))},
		workflows.ReasonMomoCredential:   {retryOrRefund, sale(refused("2001"))},
		workflows.ReasonMomoSuspended:    {[]string{activities.VerbRetry, activities.VerbRefund, activities.VerbResolve}, suspendedSale},
		workflows.ReasonMomoPayeeLimit:   {retryOrRefund, sale(refused("8"))},
		workflows.ReasonMomoFloat: {onlyRetry, sale(func(c *parkedCommand, w *saleHarness) {
			w.setFloat(money.Must(money.KES, "10"))
			c.mend = func() { w.setFloat(money.Must(money.KES, "100000")) }
		})},
		workflows.ReasonMomoInactive: {retryOrRefund, sale(func(c *parkedCommand, w *saleHarness) {
			w.at(30*time.Second, func() { w.switched(w.market.Customer, false) })
			c.mend = func() { w.switched(w.market.Customer, true) }
		})},
		workflows.ReasonMomoClaimed: {[]string{activities.VerbRetry, activities.VerbRefund, activities.VerbResolve}, claimedSale},
		workflows.ReasonBankWaiting: {onlyRetry, sale(func(c *parkedCommand, w *saleHarness) {
			w.byBank()
			c.mend = w.atBank(false) // the flow gets no signal, and checks because of the command
		})},
		workflows.ReasonBankRefused: {retryOrRefund, sale(func(c *parkedCommand, w *saleHarness) {
			w.byBank()
			w.at(20*time.Minute, w.declined)
			c.mend = func() { w.at(time.Hour, w.atBank(true)) }
			w.at(5*time.Hour, w.agree("agree")) // only the officer says that it was not paid
		})},
		workflows.ReasonBankInactive: {retryOrRefund, sale(func(c *parkedCommand, w *saleHarness) {
			w.byBank()
			w.at(30*time.Second, func() { w.switched(w.market.Customer, false) })
			c.mend = func() {
				w.switched(w.market.Customer, true)
				w.at(time.Hour, w.atBank(true))
			}
		})},
		workflows.ReasonRefundClaimed: {retryOrResolve, claimedRefund},
	}
}

// claimedSale runs a sale whose refused payout somebody claims to be made. After a refund by command the claim stops the
// refund, until an officer dismisses it and another one approves.
func claimedSale(t *testing.T, c *parkedCommand) {
	var played *saleHarness
	sale(func(c *parkedCommand, w *saleHarness) {
		played = w
		w.payouts(refuses("17"), pays)
		if c.verb == activities.VerbResolve { // it was made, and no callback says so, which would settle it
			w.payouts(payer{code: "17", after: 5 * time.Second, late: time.Minute, quiet: true})
		}
		w.at(4*time.Minute, w.claim(true))
		c.mend = w.claim(false)
		if c.verb == activities.VerbRefund {
			w.at(2*time.Hour, func() {
				w.notifyFlow(w.decreeWith(activities.ObjectOrder, w.request.ID, activities.VerbRetry, "why"), "dismiss")
			})
			w.at(3*time.Hour, w.agree("agree"))
		}
	})(t, c)
	if c.verb == activities.VerbRefund {
		wants("dismiss", "")(t, played.harness)
		wants("agree", "")(t, played.harness)
		flow := workflows.OffRampID(played.request.ID)
		played.signs.were(t, flow, workflows.ReasonMomoClaimed, workflows.ReasonRefundClaimed, workflows.ReasonRefundSecond)
	}
}

// claimedRefund runs a sale whose crypto is to go back when a source claims that the payout was made. A retry dismisses the
// claim, so that the crypto goes back when a second officer approves; by a resolve the payout stands.
func claimedRefund(t *testing.T, c *parkedCommand) {
	w := newSale(t)
	w.request.RefundAddress = "" // the customer names it later, so that the refund still waits when the claim comes
	w.payouts(payer{code: "2040", after: 5 * time.Second})
	if c.verb == activities.VerbResolve {
		w.payouts(payer{code: "2040", after: 5 * time.Second, late: time.Minute})
	}
	w.deposit(time.Minute, 1, crypto("10"))
	w.at(10*time.Minute, func() { w.claim(true)(); w.names() })
	c.await(t, w.env, w.signs, workflows.OffRampID(w.request.ID), w.tell(c.verb))
	w.at(5*time.Hour, w.agree("agree"))
	w.run(t)
	w.sound(t)
	wants(c.verb, "")(t, w.harness)
	swept, back := 0, 1
	if c.verb == activities.VerbResolve {
		swept, back = 1, 0
	}
	w.endedAs(t, exchange.OrderFailed, swept, swept, back)
}

// endedAs checks how an order ended: its status, and how often it was paid out, its crypto swept, and given back.
func (w *saleHarness) endedAs(t *testing.T, status exchange.OrderStatus, paid, swept, back int) {
	t.Helper()
	detail := none
	if status == exchange.OrderFailed {
		detail = exchange.DetailRefundOpen
	}
	o, paidOut := w.order(), len(w.paidOut())
	if w.request.PayoutMethod == exchange.PaymentMethodBank && o.PaymentTxnID != "" {
		paidOut++
	}
	wasSwept, wasBack := len(w.chain.sent(exchange.ForSweep)), len(w.chain.sent(exchange.ForRefund))
	if o.Status != status || o.StatusDetail != detail || paidOut != paid || wasSwept != swept || wasBack != back {
		t.Errorf("the order is %s (%s): paid %d times, swept %d times, given back %d times", o.Status, o.StatusDetail, paidOut, wasSwept, wasBack)
	}
}

// sale runs an order whose crypto arrives. A retry or a receipt ends it as paid out, a refund gives the crypto back.
func sale(set func(*parkedCommand, *saleHarness)) func(*testing.T, *parkedCommand) {
	return func(t *testing.T, c *parkedCommand) {
		w := newSale(t)
		set(c, w)
		w.deposit(time.Minute, 1, crypto("10"))
		c.await(t, w.env, w.signs, workflows.OffRampID(w.request.ID), w.tell(c.verb))
		w.run(t)
		w.sound(t)
		wants(c.verb, "")(t, w.harness)
		if c.verb == activities.VerbRefund {
			w.endedAs(t, exchange.OrderFailed, 0, 0, 1)
			return
		}
		w.endedAs(t, sold, 1, 1, 0)
	}
}

// suspendedSale runs a sale while our credential is refused or, for a resolve, in a database that was put back from before the
// sale was paid: two officers attest the payout by its receipt, and nothing is sent.
func suspendedSale(t *testing.T, c *parkedCommand) {
	if c.verb != activities.VerbResolve {
		sale(func(c *parkedCommand, w *saleHarness) {
			w.at(30*time.Second, w.suspend)
			c.mend = w.resume
		})(t, c)
		return
	}
	w := newSale(t)
	w.at(30*time.Second, func() {
		w.another() // the first request of the database
		storetest.PutBack(t, w.store.Store)
	})
	w.deposit(time.Minute, 1, crypto("10"))
	c.await(t, w.env, w.signs, workflows.OffRampID(w.request.ID), func() {
		w.attestLost(exchange.OrderObject(w.request.ID), "UKLMANUAL1")
		w.tell(c.verb)()
		w.at(time.Minute, w.releaseDatabase)
	})
	w.run(t)
	wants(c.verb, "")(t, w.harness)
	if o := w.order(); o.Status != exchange.OrderCompleted || o.MomoReceipt != "UKLMANUAL1" {
		t.Errorf("the sale is %s by %q", o.Status, o.MomoReceipt)
	}
	if out := w.operator.paidOut(w.request.ID); len(out) != 0 {
		t.Errorf("%v was sent besides", out)
	}
}

// A payout is under way when its database is put back to before it began. Its flow knows more than the rows: it parks like every
// other payout then, is booked by the receipt that two officers attest, and sends nothing.
func TestPayoutUnderWayThatItsDatabaseLost(t *testing.T) {
	w := newSale(t)
	w.payouts(payer{code: "0", after: time.Second, silent: true, mute: true})
	w.at(30*time.Second, w.another) // the first request of the database
	w.deposit(time.Minute, 1, crypto("10"))
	var sent int
	var receipt string
	w.at(4*time.Minute, func() {
		sent = len(w.operator.paidOut(w.request.ID))
		storetest.Exec(t, w.store.Store, `SET session_replication_role = replica;
			DELETE FROM payment_attempts WHERE object_id = '`+w.request.ID.String()+`' AND direction = 'payout';
			UPDATE order_payouts SET status = 'pending' WHERE id = '`+w.request.ID.String()+`'; SET session_replication_role = origin`)
		storetest.PutBack(t, w.store.Store)
	})
	w.at(time.Hour, func() {
		w.signs.mu.Lock()
		parked := w.signs.reasons[workflows.OffRampID(w.request.ID)]
		w.signs.mu.Unlock()
		if !slices.Equal(parked, []string{string(workflows.ReasonMomoSuspended)}) {
			t.Errorf("it is parked with %v", parked)
		}
		receipt = w.paidOut()[0].receipt
		w.attestLost(exchange.OrderObject(w.request.ID), receipt)
		w.tell(activities.VerbResolve)()
	})
	w.at(70*time.Minute, w.releaseDatabase)
	w.run(t)
	if o := w.order(); o.Status != exchange.OrderCompleted || o.MomoReceipt != receipt {
		t.Errorf("the sale is %s by %q", o.Status, o.MomoReceipt)
	}
	if out := w.operator.paidOut(w.request.ID); len(out) != sent || sent != 1 {
		t.Errorf("%d payouts were sent, and %d when the database was put back", len(out), sent)
	}
}

// releaseDatabase lets all that leaves leave again, as two officers do.
func (w *harness) releaseDatabase() {
	storetest.Exec(w.t, w.store.Store, `SET session_replication_role = replica; INSERT INTO database_releases (identity) VALUES (database_identity()); SET session_replication_role = origin`)
}

// attestLost has two officers attest a payout that the database lost.
func (w *harness) attestLost(of exchange.MomoObject, receipt string) {
	c, err := w.store.ProposeReceipt(w.t.Context(), of, receipt, w.officer)
	if err == nil {
		err = w.confirmed(c)
	}
	if err != nil {
		w.t.Error(err)
	}
}

// paidOutRehearsals are the reasons of a payout that is under way.
func paidOutRehearsals() map[workflows.Reason]rehearsal {
	payout := func(p payer, mend func(w *payoutHarness)) rehearsal {
		return rehearsal{retryOrResolve, func(t *testing.T, c *parkedCommand) {
			w := newPayoutHarness(t, exchange.MomoOrder, p)
			c.mend = func() { mend(w) }
			c.await(t, w.env, w.signs, workflows.MomoPayoutID(exchange.OrderObject(w.request.ID)), func() { w.command(c.verb) })
			if got := w.pay(t); got != paidOut {
				t.Errorf("it ended %+v", got)
			}
			wants(c.verb, "")(t, w.harness)
			if w.sound(t); !w.payable().Paid {
				t.Error("the payout is not booked")
			}
		}}
	}
	return map[workflows.Reason]rehearsal{
		workflows.ReasonMomoUnknown: payout(payer{code: "0", after: 5 * time.Second, silent: true, mute: true}, func(w *payoutHarness) {
			w.operator.amend(activities.PayoutID(w.request.ID, 1), func(p *payer) { p.mute = false })
		}),
		// The contradiction stays in the rows, so even after another query a receipt is needed.
		workflows.ReasonMomoDisagree: payout(payer{code: "0", after: 5 * time.Second, lies: true}, func(w *payoutHarness) {
			w.at(2*time.Hour, func() { w.notifyFlow(w.decree(activities.VerbResolve), "receipt") })
		}),
	}
}

// returnRehearsals are the reasons of crypto that goes back.
func returnRehearsals() map[workflows.Reason]rehearsal {
	return map[workflows.Reason]rehearsal{
		workflows.ReasonRefundAddress: {retryOrRefund, func(t *testing.T, c *parkedCommand) {
			none := func(c *parkedCommand, w *returnHarness) {
				w.asked = w.asks("")
				c.mend = w.names // the customer set it
			}
			if c.verb == activities.VerbRetry {
				returned(homeward, none, "")(t, c)
				return
			}
			returned(elsewhere, none, elsewhere)(t, c)
		}},
		workflows.ReasonRefundSecond: {retryOrRefund, func(t *testing.T, c *parkedCommand) {
			asks := func(c *parkedCommand, w *returnHarness) { c.mend = w.agreed } // and the flow got no signal
			if c.verb == activities.VerbRetry {
				returned(elsewhere, asks, "")(t, c)
				return
			}
			returned(otherwise, asks, otherwise)(t, c)
		}},
	}
}

// otherwise is another address than the one that an officer gave at first.
const otherwise = "Totherwise000000000000000000000000"

// agreed counts the approval of another officer, of which the flow gets no signal.
func (w *returnHarness) agreed() {
	for _, r := range w.refunds() {
		if _, err := w.store.DecideRefund(w.t.Context(), r.ID, w.ticket(r), exchange.Approve); err != nil {
			w.t.Error(err)
		}
	}
}

// returned runs crypto that goes back to an address. A second officer approves after the command where that is
// needed.
func returned(to string, set func(*parkedCommand, *returnHarness), address string) func(*testing.T, *parkedCommand) {
	return func(t *testing.T, c *parkedCommand) {
		w := newReturn(t)
		set(c, w)
		c.await(t, w.env, w.signs, workflows.ReturnDepositID(w.exception), func() {
			w.instruct(c.verb, address)
			w.at(2*time.Hour, w.agree("right"))
		})
		c.ends(t, w.play(t, false).Outcome, workflows.OutcomeReturned)
		wants(c.verb, "")(t, w.harness)
		if paid := w.paid(); len(paid) != 1 || paid[0] != to {
			t.Errorf("paid to %v, want %s once", paid, to)
		}
	}
}
