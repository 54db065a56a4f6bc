package workflows_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/activity"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// saleRehearsals are the reasons of an order that sells crypto.
func saleRehearsals() map[workflows.Reason]rehearsal {
	said := func(v exchange.Verdict) func(*parkedCommand, *market) {
		return func(c *parkedCommand, m *market) {
			m.said = []exchange.Verdict{v}
			c.mend = func() { m.said = nil }
		}
	}
	pays := func(f momoOutcome) func(*parkedCommand, *market) {
		return func(c *parkedCommand, m *market) {
			m.payouts = []momoOutcome{f}
			c.mend = func() { m.payouts = nil }
		}
	}
	notSent := momoOutcome{after: time.Second, result: workflows.MomoPayoutResult{Reason: "momo-suspended", Class: "credential"}}
	noFloat := momoOutcome{after: time.Second, result: workflows.MomoPayoutResult{Reason: "momo-float", Class: "float"}}
	return map[workflows.Reason]rehearsal{
		workflows.ReasonDepositDenied:    {retryOrRefund, sale(said(exchange.VerdictHit))},
		workflows.ReasonDepositScreening: {retryOrRefund, sale(said(exchange.VerdictUnknown))},
		workflows.ReasonMomoRefused:      {retryOrRefund, sale(pays(wasRefused("config", "momo-refused", "2028")))},
		workflows.ReasonMomoCredential:   {retryOrRefund, sale(pays(wasRefused("credential", "momo-credential", "2001")))},
		workflows.ReasonMomoSuspended:    {retryOrRefund, sale(pays(notSent))},
		workflows.ReasonMomoPayeeLimit:   {retryOrRefund, sale(pays(wasRefused("payee_limit", "momo-payee_limit", "8")))},
		workflows.ReasonMomoFloat:        {onlyRetry, sale(pays(noFloat))},
		workflows.ReasonMomoClaimed: {[]string{activities.VerbRetry, activities.VerbRefund, activities.VerbResolve}, func(t *testing.T, c *parkedCommand) {
			if c.verb != activities.VerbResolve {
				sale(pays(claimed))(t, c)
				return
			}
			m := newMarket()
			m.payouts = []momoOutcome{wasRefused("busy", "momo-refused", "17"), claimed}
			m.settle = func() error { m.payouts = nil; return nil } // the next try finds it paid
			m.deposit(time.Minute, 1, crypto("10"))
			c.await(t, m.env, m.signs, workflows.OffRampID(m.request.ID), m.command(c.verb))
			m.run(t)
			if m.sound(t); m.order.Status != sold || m.paid != 1 {
				t.Errorf("the order is %s, paid %d times", m.order.Status, m.paid)
			}
		}},
		workflows.ReasonBankWaiting: {onlyRetry, sale(func(c *parkedCommand, m *market) {
			officer := atBank(m)
			c.mend = officer.say(activities.PayoutPaid, false) // the flow gets no signal, and checks because of the command
		})},
		workflows.ReasonBankRefused: {retryOrRefund, sale(func(c *parkedCommand, m *market) {
			officer := atBank(m)
			m.at(20*time.Minute, officer.say(activities.PayoutRefused, true))
			c.mend = func() { m.at(time.Hour, officer.say(activities.PayoutPaid, true)) }
		})},
		workflows.ReasonRefundClaimed: {retryOrResolve, func(t *testing.T, c *parkedCommand) {
			if c.verb == activities.VerbRetry { // the crypto goes back, because a second officer approves
				returned("TGiven", func(_ *parkedCommand, s *stray) { s.claimed = true }, func(s *stray) { s.order(activities.VerbRetry, "") })(t, c)
				return
			}
			sale(func(_ *parkedCommand, m *market) {
				m.payouts, m.waits = []momoOutcome{wasRefused("payee", "momo-refused", "2040")}, exchange.RefundWaitsClaim
			})(t, c)
		}},
	}
}

// atBank has the order paid out by bank.
func atBank(m *market) *counter {
	m.request.PayoutMethod = exchange.PaymentMethodBank
	officer := &counter{m: m, state: activities.BankWaits}
	m.env.RegisterActivityWithOptions(officer.look, activity.RegisterOptions{Name: "LookAtBank"})
	return officer
}

// sale runs an order whose crypto arrives. A retry has it paid out, a refund gives the crypto back, and after a
// resolve the payout stands although the order failed.
func sale(set func(*parkedCommand, *market)) func(*testing.T, *parkedCommand) {
	return func(t *testing.T, c *parkedCommand) {
		m := newMarket()
		set(c, m)
		if locked := c.mend; locked != nil && m.request.PayoutMethod != exchange.PaymentMethodBank {
			c.mend = func() { m.mu.Lock(); defer m.mu.Unlock(); locked() }
		}
		m.deposit(time.Minute, 1, crypto("10"))
		c.await(t, m.env, m.signs, workflows.OffRampID(m.request.ID), m.command(c.verb))
		m.run(t)
		m.sound(t)
		if err, answered := m.answers[c.verb]; err != nil || !answered {
			t.Errorf("the command got a response: %t, %v", answered, err)
		}
		status, detail, paid, back := sold, none, 1, 0
		switch c.verb {
		case activities.VerbRefund:
			status, detail, paid, back = exchange.OrderFailed, exchange.DetailRefundOpen, 0, 1
		case activities.VerbResolve:
			status, detail = exchange.OrderFailed, exchange.DetailRefundOpen
		}
		if m.order.Status != status || m.order.StatusDetail != detail || m.paid != paid || m.refunded != back || m.swept != paid {
			t.Errorf("the order is %s (%s): paid %d times, swept %d times, given back %d times", m.order.Status, m.order.StatusDetail, m.paid, m.swept, m.refunded)
		}
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
	locked := func(s *stray, do func()) func() {
		return func() { s.mu.Lock(); defer s.mu.Unlock(); do() }
	}
	return map[workflows.Reason]rehearsal{
		workflows.ReasonRefundAddress: {retryOrRefund, func(t *testing.T, c *parkedCommand) {
			none := func(c *parkedCommand, s *stray) {
				s.address = ""
				c.mend = locked(s, func() { s.address, s.needed = "TOwn", 0 }) // the customer set it
			}
			if c.verb == activities.VerbRetry {
				returned("TOwn", none, func(s *stray) { s.order(c.verb, "") })(t, c)
				return
			}
			returned("TSaid", none, func(s *stray) { s.order(c.verb, "TSaid") })(t, c)
		}},
		workflows.ReasonRefundSecond: {retryOrRefund, func(t *testing.T, c *parkedCommand) {
			asks := func(c *parkedCommand, s *stray) { c.mend = locked(s, func() { s.agreed = 1 }) } // and the flow got no signal
			if c.verb == activities.VerbRetry {
				returned("TGiven", asks, func(s *stray) { s.order(c.verb, "") })(t, c)
				return
			}
			returned("TOther", asks, func(s *stray) { s.order(c.verb, "TOther") })(t, c)
		}},
	}
}

// returned runs crypto that goes back to an address. A second officer approves after the command where that is
// needed.
func returned(to string, set func(*parkedCommand, *stray), send func(*stray)) func(*testing.T, *parkedCommand) {
	return func(t *testing.T, c *parkedCommand) {
		s := newStray()
		set(c, s)
		c.await(t, s.env, s.signs, workflows.ReturnDepositID(strayException), func() {
			send(s)
			s.at(2*time.Hour, func() {
				if s.status != exchange.RefundCompleted {
					s.approve("right", "good")
				}
			})
		})
		c.ends(t, s.play(t, false).Outcome, workflows.OutcomeReturned)
		if err, answered := s.answers[c.verb]; err != nil || !answered {
			t.Errorf("the command got a response: %t, %v", answered, err)
		}
		if len(s.paid) != 1 || s.paid[0] != to {
			t.Errorf("paid to %v, want %s once", s.paid, to)
		}
	}
}
