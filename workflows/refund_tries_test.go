package workflows_test

import (
	"testing"
	"time"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// TestRefundsGoOnByThemselves has a refund fail for reasons that pass, and sends no command about it. A refund follows the
// same rules as an order's payout.
func TestRefundsGoOnByThemselves(t *testing.T) {
	t.Parallel()
	const min = time.Minute
	suspended := func(w *harness, until time.Duration, state exchange.Breaker) {
		w.store.breaker = &state
		w.store.fault = w.during(0, until, exchange.Errorf(exchange.CodeSuspended, "suspended"), "BeginPayout")
	}
	wake := func(w *harness) func() {
		return func() { w.env.SignalWorkflow(workflows.SignalFloat, nil) }
	}
	refusedAtFirst := func(w *harness, codes ...string) {
		payouts(w, func() payer {
			if len(codes) == 0 {
				return pays
			}
			code := codes[0]
			codes = codes[1:]
			return payer{code: code, after: 5 * time.Second}
		})
	}
	for name, c := range map[string]struct {
		set    func(*testing.T, *harness)
		parked []workflows.Reason
		tries  int
		until  time.Duration
	}{
		"another payout is on trial": {func(_ *testing.T, w *harness) { suspended(w, 20*min, exchange.Breaker{Trial: true}) }, nil, 1, 22*min + 10*time.Second},
		"the breaker is open, then another payout is on trial": {func(_ *testing.T, w *harness) {
			suspended(w, 64*min, exchange.Breaker{OpenedAt: w.start})
			w.at(time.Hour, func() { w.store.breaker = &exchange.Breaker{Trial: true} })
			w.at(time.Hour, wake(w))
		}, []workflows.Reason{workflows.ReasonRefundSuspended}, 1, 66 * min},
		"refused with our credential, then the breaker is closed": {func(t *testing.T, w *harness) {
			refusedAtFirst(w, "2001")
			w.at(time.Hour, func() {
				waiting, err := w.store.SuspendedFlows(t.Context(), exchange.Breaker{ClosedAt: w.env.Now()})
				if err != nil || len(waiting) != 1 || waiting[0].WorkflowID != workflows.OnRampID(w.request.ID) {
					t.Errorf("%v are notified of the breaker, %v", waiting, err)
				}
			})
			w.at(time.Hour, wake(w))
		}, []workflows.Reason{workflows.ReasonRefundCredential}, 2, 61 * min},
		"the operator says that there is no float": {func(_ *testing.T, w *harness) { refusedAtFirst(w, "1") }, nil, 2, 12 * min},
		"no float for an hour, and no signal": {func(_ *testing.T, w *harness) {
			w.setFloat(money.Must(money.KES, "10"))
			w.at(time.Hour, func() { w.setFloat(money.Must(money.KES, "100000")) })
		}, []workflows.Reason{workflows.ReasonRefundFloat}, 1, 70 * min},
		"no float, topped up before it is parked": {func(_ *testing.T, w *harness) {
			w.setFloat(money.Must(money.KES, "10"))
			w.at(7*min, func() { w.setFloat(money.Must(money.KES, "100000")) })
			w.at(7*min, wake(w))
		}, nil, 1, 8 * min},
		"the operator is busy": {func(_ *testing.T, w *harness) { refusedAtFirst(w, "17", "17") }, nil, 3, 17 * min},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t)
			w.chain.script = func(int) outcome { return outcome{refused: chain.ReasonBlocked} }
			w.at(5*min, func() { w.command("refund") })
			c.set(t, w)
			w.run(t)
			refunded(price)(t, w)
			parkedWith(append([]workflows.Reason{workflows.ReasonPayoutBlocked}, c.parked...)...)(t, w)
			if out, err := w.store.Payouts(t.Context(), w.request.ID); err != nil || len(out) != c.tries {
				t.Errorf("%d payouts were made, want %d, %v", len(out), c.tries, err)
			}
			if took := w.env.Now().Sub(w.start); took > c.until {
				t.Errorf("it took %s, want %s at most", took, c.until)
			}
		})
	}
}

// TestRefundTakesOnlyARetryBetweenTries sends commands while a refund waits for float. A receipt is refused with what the
// refund waits for, and a retry makes the next try at once.
func TestRefundTakesOnlyARetryBetweenTries(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.chain.script = func(int) outcome { return outcome{refused: chain.ReasonBlocked} }
	w.setFloat(money.Must(money.KES, "10"))
	w.at(5*time.Minute, func() { w.command("refund") })
	w.at(7*time.Minute, func() { w.command("resolve") })
	w.at(8*time.Minute, func() {
		w.setFloat(money.Must(money.KES, "100000"))
		w.command("retry")
	})
	w.run(t)
	wants("resolve", exchange.CodeStateConflict)(t, w)
	wants("retry", "")(t, w)
	refunded(price)(t, w)
	parkedWith(workflows.ReasonPayoutBlocked)(t, w)
	if took := w.env.Now().Sub(w.start); took > 9*time.Minute {
		t.Errorf("it took %s", took)
	}
}

// TestRefundStaysParked sends a receipt that can't be booked. The refund stays parked and sends nothing.
func TestRefundStaysParked(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.chain.script = func(int) outcome { return outcome{refused: chain.ReasonBlocked} }
	payouts(w, func() payer { return payer{code: "2040", after: 5 * time.Second} })
	w.store.fault = w.during(0, time.Hour, errBug, "SettlePayout")
	w.at(5*time.Minute, func() { w.command("refund") })
	w.at(30*time.Minute, func() { w.command("resolve") })
	w.at(2*time.Hour, func() { w.notifyFlow(w.decree("resolve"), "again") })
	w.run(t)
	wants("again", "")(t, w)
	if r := refundOf(w); r.Status != exchange.RefundCompleted || r.Receipt != "UKLMANUAL1" {
		t.Errorf("the refund is %s with the receipt %q", r.Status, r.Receipt)
	}
	if out, err := w.store.Payouts(t.Context(), w.request.ID); err != nil || len(out) != 1 {
		t.Errorf("%d payouts were made, %v", len(out), err)
	}
	parkedWith(workflows.ReasonPayoutBlocked, workflows.ReasonRefundRefused)(t, w)
}
