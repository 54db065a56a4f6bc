package workflows_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/workflows"
)

// A refund whose payer differs from the prompted phone is held, and only a proven command lets it go to that phone.
func TestRefundOfADoubtfulPayer(t *testing.T) {
	t.Parallel()
	const min = time.Minute
	for name, c := range map[string]struct {
		verb    string
		payouts int
	}{"confirmed": {"refund", 1}, "paid by other means": {"resolve", 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t)
			w.operator.stranger = true
			w.chain.script = func(int) outcome { return outcome{refused: chain.ReasonBlocked} }
			w.at(5*min, func() { w.command("refund") })
			w.at(10*min, func() { w.command("retry") })
			w.at(12*min, func() { w.env.SignalWorkflow(workflows.SignalRetry, nil) }) // the Web UI's retry signal
			w.at(15*min, func() {
				if n := len(w.operator.paidOut(w.request.ID)); n != 0 {
					t.Errorf("%d payouts while the payee is in doubt", n)
				}
			})
			w.at(20*min, func() { w.command(c.verb) })
			w.run(t)
			ended(t, w, exchange.OrderFailed, exchange.DetailRefundOpen)
			wants("retry", exchange.CodeStateConflict)(t, w)
			w.signs.were(t, workflows.OnRampID(w.request.ID), workflows.ReasonPayoutBlocked, workflows.ReasonRefundPayee)
			if n := len(w.operator.paidOut(w.request.ID)); n != c.payouts {
				t.Errorf("%d payouts, want %d", n, c.payouts)
			}
			for _, r := range w.refunds() {
				if r.Status != exchange.RefundCompleted {
					t.Errorf("the refund is %s", r.Status)
				}
			}
		})
	}
}

// Two officers ask at once for the refund of an order. The second command was written before anybody knew that the payer
// differs, so it must not confirm the payee.
func TestSecondRequestForARefundConfirmsNoPayee(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.operator.stranger = true
	w.chain.script = func(int) outcome { return outcome{refused: chain.ReasonBlocked} }
	var second uuid.UUID
	w.at(5*time.Minute, func() {
		second = w.decree("refund")
		w.command("refund")
	})
	w.at(6*time.Minute, func() { w.notifyFlow(second, "second") })
	w.at(30*time.Minute, func() { w.command("resolve") })
	w.run(t)
	if n := len(w.operator.paidOut(w.request.ID)); n != 0 {
		t.Errorf("%d payouts to a phone that is not the payer's, by a command that asked for the refund of the order", n)
	}
	ended(t, w, exchange.OrderFailed, exchange.DetailRefundOpen)
}
