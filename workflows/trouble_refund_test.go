package workflows_test

import (
	"strings"
	"testing"
	"time"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/workflows"
)

// TestRefundThatIsNotOpenedIsNoRetry makes the refund of a parked order fail. The operator wanted the money back, so
// the crypto must not go out instead, although the signer would sign by now.
func TestRefundThatIsNotOpenedIsNoRetry(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.chain.script = func(n int) outcome {
		if n == 1 {
			return outcome{trouble: exchange.Errorf(exchange.CodeForbidden, "no")}
		}
		return outcome{}
	}
	w.store.fault = w.during(0, 20*time.Minute, errBug, "RefundOrder")
	w.at(5*time.Minute, func() { w.command("refund") })
	w.at(30*time.Minute, func() { w.command("refund") })
	w.run(t)
	ended(t, w, exchange.OrderFailed, exchange.DetailRefundOpen)
	refunded(price)(t, w)
	if w.chain.built != 1 {
		t.Error("the payment was signed on the command to refund it")
	}
}

// TestRefundSourcesDisagree has the mobile money operator's result report paid and its queries report failed. Nothing
// is sent again, and our operator settles it.
func TestRefundSourcesDisagree(t *testing.T) {
	story{
		outcomes: []outcome{{refused: chain.ReasonBlocked}}, payout: []payer{{code: "0", after: 10 * time.Second, lies: true}},
		status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
		people: func(w *harness) {
			w.at(5*time.Minute, func() { w.command("refund") })
			w.at(20*time.Minute, func() { w.command("retry") })
			w.at(2*time.Hour, func() { w.command("resolve") })
		},
		check: all(refunded(price), func(t *testing.T, w *harness) {
			for _, r := range w.refunds() {
				w.signs.were(t, workflows.MomoPayoutID(exchange.RefundObject(r.ID)), workflows.ReasonRefundDisagree)
			}
			if n := w.operator.counts[exchange.Payout]; n != 1 {
				t.Errorf("%d payouts were sent", n)
			}
		}),
	}.play(t)
}

// TestRefundWaitsForThePayeesNextDay has the payee reach the operator's daily limit. The refund is not parked for it, and
// is paid after midnight in Kenya, twelve hours after the start.
func TestRefundWaitsForThePayeesNextDay(t *testing.T) {
	story{
		outcomes: []outcome{{refused: chain.ReasonBlocked}}, status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
		people: func(w *harness) {
			w.at(5*time.Minute, func() { w.command("refund") })
			w.store.fault = w.during(0, 10*time.Hour, exchange.Errorf(exchange.CodeLimitReached, "no more today"), "BeginPayout")
		},
		check: all(refunded(price), parkedWith(workflows.ReasonPayoutBlocked), func(t *testing.T, w *harness) {
			if took := w.env.Now().Sub(w.start); took < 12*time.Hour+time.Minute || took > 13*time.Hour {
				t.Errorf("it took %s", took)
			}
		}),
	}.play(t)
}

// TestRefundThatWaitsForADayAnswers looks at a refund that waits for its payee's next day, and sends it commands. The details
// say what it waits for, a receipt is refused with the reason, and a retry pays it at once when there is room again.
func TestRefundThatWaitsForADayAnswers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.chain.script = func(int) outcome { return outcome{refused: chain.ReasonBlocked} }
	w.store.fault = w.during(0, 2*time.Hour, exchange.Errorf(exchange.CodeLimitReached, "no more today"), "BeginPayout")
	w.at(5*time.Minute, func() { w.command("refund") })
	w.at(time.Hour, func() { w.command("retry") }) // too early, so it waits again
	w.at(90*time.Minute, func() {
		details := detailsOf(t, w.env, workflows.OnRampID(w.request.ID))
		if !strings.Contains(details, "the next day") || !strings.Contains(details, "2026-11-21 21:01:00 UTC") {
			t.Errorf("the details do not say what it waits for:\n%s", details)
		}
		w.command("resolve")
	})
	w.at(3*time.Hour, func() { w.notifyFlow(w.decree("retry"), "again") })
	w.run(t)
	wants("resolve", exchange.CodeStateConflict)(t, w)
	if err := w.answers["resolve"]; err == nil || !strings.Contains(err.Error(), "next day") {
		t.Errorf("the receipt was answered with %v", err)
	}
	wants("retry", "")(t, w)
	wants("again", "")(t, w)
	refunded(price)(t, w)
	parkedWith(workflows.ReasonPayoutBlocked)(t, w)
	if took := w.env.Now().Sub(w.start); took > 4*time.Hour {
		t.Errorf("it took %s", took)
	}
}

// TestRefundMendsItself makes checks of a payout fail permanently for a while. The flow parks, and unparks when a check
// succeeds.
func TestRefundMendsItself(t *testing.T) {
	story{
		outcomes: []outcome{{refused: chain.ReasonBlocked}}, payout: []payer{{code: "0", after: 8 * time.Minute}},
		status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
		people: func(w *harness) {
			w.at(5*time.Minute, func() { w.command("refund") })
			w.store.fault = w.during(6*time.Minute, 13*time.Minute, errBug, "Callbacks")
			w.at(16*time.Minute, func() {
				w.signs.mu.Lock()
				defer w.signs.mu.Unlock()
				for flow, on := range w.signs.alarmed {
					if on {
						w.answers["alarm of "+flow] = errBug
					}
				}
			})
		},
		check: all(refunded(price), func(t *testing.T, w *harness) {
			for _, r := range w.refunds() {
				w.signs.were(t, workflows.MomoPayoutID(exchange.RefundObject(r.ID)), workflows.ReasonStepFailed)
				if w.answers["alarm of "+workflows.MomoPayoutID(exchange.RefundObject(r.ID))] != nil {
					t.Error("the refund is parked although its checks succeed again")
				}
			}
		}),
	}.play(t)
}
