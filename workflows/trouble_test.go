package workflows_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

var errBug = exchange.Errorf(exchange.CodeInternal, "a bug")

// during makes calls fail with an error for a part of the scenario.
func (w *harness) during(from, to time.Duration, err error, calls ...string) func(string) error {
	return func(call string) error {
		since := w.env.Now().Sub(w.start)
		for _, c := range calls {
			if c == call && since >= from && since < to {
				return err
			}
		}
		return nil
	}
}

func payoutFlow(w *harness) string {
	return workflows.CryptoPayoutID(w.payment())
}

// TestPayoutOverdue keeps the network unreadable for longer than a delivery takes. The flow parks, and the same
// transaction is delivered later.
func TestPayoutOverdue(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.chain.fault = w.during(0, 80*time.Minute, errAway, "locate")
	w.run(t)
	ended(t, w, exchange.OrderCompleted, exchange.WaitNothing)
	w.signs.were(t, payoutFlow(w), workflows.ReasonPayoutOverdue)
	w.wantListed(t, payoutFlow(w), string(workflows.ReasonPayoutOverdue))
	if w.chain.built != 1 {
		t.Errorf("%d transactions were signed while the first one was alive", w.chain.built)
	}
}

// TestPayoutOverdueIsRetried makes checks fail permanently, so that the flow pauses between them; the retry signal of
// the Web UI ends the pause.
func TestPayoutOverdueIsRetried(t *testing.T) {
	t.Parallel()
	for name, retried := range map[string]bool{"retried": true, "left alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t)
			if retried {
				w.at(5*time.Minute, func() { _ = w.env.SignalWorkflowByID(payoutFlow(w), workflows.SignalRetry, nil) })
			}
			w.store.fault = afterCall("RecordBroadcast", w.during(0, 5*time.Minute, errBug, "LiveAttempts"))
			w.run(t)
			ended(t, w, exchange.OrderCompleted, exchange.WaitNothing)
			w.signs.were(t, payoutFlow(w), workflows.ReasonPayoutOverdue)
			if took := w.env.Now().Sub(w.start); retried == (took > 8*time.Minute) {
				t.Errorf("the order took %s", took)
			}
		})
	}
}

// afterCall lets a fault begin with a call.
func afterCall(call string, fault func(string) error) func(string) error {
	begun := false
	return func(c string) error {
		if c == call {
			begun = true
		}
		if !begun {
			return nil
		}
		return fault(c)
	}
}

// TestReorganisedDuringAnOutage removes the block of a transaction while the network can't be read, until the
// transaction has expired. It is then proven impossible, and another one is signed.
func TestReorganisedDuringAnOutage(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.chain.script = func(n int) outcome { return outcome{reorg: n == 1} }
	included := time.Duration(0)
	w.store.lost = func(call string) error {
		if call == "RecordIncluded" && included == 0 {
			included = w.env.Now().Sub(w.start)
		}
		return nil
	}
	w.chain.fault = func(call string) error {
		if since := w.env.Now().Sub(w.start); included > 0 && since < included+3*txLife {
			return errAway
		}
		return nil
	}
	w.run(t)
	ended(t, w, exchange.OrderCompleted, exchange.WaitNothing)
	if included == 0 || w.chain.built != 2 {
		t.Errorf("included after %s, %d transactions were signed", included, w.chain.built)
	}
}

// TestSignerTrouble makes the signer fail in ways that sign nothing.
func TestSignerTrouble(t *testing.T) {
	t.Parallel()
	const min = time.Minute
	refused := exchange.Errorf(exchange.CodeForbidden, "The payment is over the signer's limit.")
	for _, s := range []story{
		{
			name: "refused, then retried", outcomes: []outcome{{trouble: refused}, {}}, status: exchange.OrderCompleted, detail: exchange.WaitNothing,
			people: func(w *harness) { w.at(5*min, func() { w.command("retry") }) },
			check:  all(wants("retry", ""), parkedWith(workflows.ReasonPayoutSigning)),
		},
		{
			name: "refused, then refunded", outcomes: []outcome{{trouble: refused}}, status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			people: func(w *harness) { w.at(5*min, func() { w.command("refund") }) },
			check: all(wants("refund", ""), refunded(price), parkedWith(workflows.ReasonPayoutSigning), func(t *testing.T, w *harness) {
				w.wantListed(t, workflows.OnRampID(w.request.ID), string(workflows.ReasonPayoutSigning))
			}),
		},
		{
			name: "a bug of the signer, tried a few times", outcomes: []outcome{{trouble: errBug}, {trouble: errBug}, {}},
			status: exchange.OrderCompleted, detail: exchange.WaitNothing, check: parkedWith(),
		},
		{
			name: "the signer is away for a while", status: exchange.OrderCompleted, detail: exchange.WaitNothing, check: parkedWith(),
			people: func(w *harness) {
				w.chain.script = func(int) outcome {
					if w.env.Now().Sub(w.start) < 90*time.Second {
						return outcome{trouble: errAway}
					}
					return outcome{}
				}
			},
		},
		{
			name: "signed, and the response was lost", status: exchange.OrderCompleted, detail: exchange.WaitNothing,
			people: func(w *harness) { w.store.lost = once("SaveSignedAttempt") },
			check: all(parkedWith(), func(t *testing.T, w *harness) {
				if w.chain.built != 1 {
					t.Errorf("%d transactions were built", w.chain.built)
				}
			}),
		},
	} {
		t.Run(s.name, s.play)
	}
}

// parkedWith checks the reasons that the order's flow was parked with.
func parkedWith(want ...workflows.Reason) func(*testing.T, *harness) {
	return func(t *testing.T, w *harness) {
		t.Helper()
		w.signs.were(t, workflows.OnRampID(w.request.ID), want...)
	}
}

// TestOrderThatCannotBeOpened makes the database fail in an unexpected way. It is unknown whether the order exists, so its
// flow parks instead of failing.
func TestOrderThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"before its row": false, "with its row": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t)
			fault := w.during(0, 5*time.Minute, errBug, "OpenOrder")
			if lost {
				w.store.lost = fault
			} else {
				w.store.fault = fault
			}
			w.at(time.Minute, func() { cancel(w) }) // must not keep the flow from its end
			w.at(6*time.Minute, func() { w.env.SignalWorkflow(workflows.SignalRetry, nil) })
			w.at(time.Hour, func() { w.lateCommand("refund") }) // the prompt was out already
			w.run(t)
			ended(t, w, exchange.OrderCancelled, exchange.DetailCancelled)
			all(wants("open", ""), wants("cancel", ""), parkedWith(workflows.ReasonStepFailed))(t, w)
		})
	}
}

// TestPaidWithLostReports loses the responses of the check that books the payment. The customer cancels in the
// meantime, and the order turns out to be paid.
func TestPaidWithLostReports(t *testing.T) {
	t.Parallel()
	closing := false
	w := newHarness(t)
	w.operator.script = func(exchange.PaymentAttempt, int) payer {
		return payer{code: "0", after: 5 * time.Second, silent: true}
	}
	w.store.fault = func(call string) error {
		closing = closing || call == "CloseOrder"
		return nil
	}
	w.store.lost = func(call string) error {
		if call == "AcceptPayment" && !closing {
			return errAway
		}
		return nil
	}
	w.at(10*time.Second, func() { cancel(w) })
	w.run(t)
	ended(t, w, exchange.OrderCompleted, exchange.WaitNothing)
	all(wants("cancel", exchange.CodeStateConflict), parkedWith())(t, w)
}

// TestUnderpaidWithLostReports loses the response that the first prompt was paid late with too little, and has the
// payer decline the second one. The order has failed by then, and its refund must still be paid.
func TestUnderpaidWithLostReports(t *testing.T) {
	t.Parallel()
	closing := false
	w := newHarness(t)
	w.operator.script = func(a exchange.PaymentAttempt, n int) payer {
		switch {
		case a.Direction == exchange.Payout:
			return pays
		case n == 1:
			return payer{code: "1037", after: time.Minute, late: 2 * time.Minute, pays: "1000", confirms: true}
		}
		return payer{code: "1032", after: 90 * time.Second}
	}
	w.store.fault = func(call string) error {
		closing = closing || call == "CloseOrder"
		return nil
	}
	w.store.lost = func(call string) error {
		if call == "AcceptPayment" && !closing {
			return errAway
		}
		return nil
	}
	w.at(2*time.Minute, retryPayment(w, "retry"))
	w.run(t)
	ended(t, w, exchange.OrderFailed, exchange.DetailUnderpaid)
	refunded("1000")(t, w)
}

// TestRetryPaymentWhilePromptsAreOnTheirWay requests another prompt at moments when there is one already.
func TestRetryPaymentWhilePromptsAreOnTheirWay(t *testing.T) {
	t.Parallel()
	const done, none = exchange.OrderCompleted, exchange.WaitNothing
	const min = time.Minute
	refused := payer{refuse: "403.002.1001", config: true}
	locked := payer{refuse: "500.001.1001", transient: true}
	// both sends the customer's request and the operator's retry while the flow checks the first prompt, which is
	// over: the flow must choose between the two, and takes the operator's first.
	both := func(w *harness) {
		w.at(2*min, retryPayment(w, "second"))
		w.at(5*min, func() {
			w.operator.heard = func(exchange.PaymentAttempt) {
				w.operator.heard = nil
				arrived := make(chan struct{})
				w.at(0, func() {
					retryPayment(w, "retry")()
					w.env.SignalWorkflow(workflows.SignalRetry, nil)
					w.at(0, func() { close(arrived) })
				})
				<-arrived // the check ends after both have arrived
			}
			first := activities.CollectionID(w.request.ID, 1)
			w.env.SignalWorkflow(workflows.SignalCallback, workflows.CallbackRef{AttemptID: first})
		})
	}
	noAnswer := payer{code: "1037", after: min}
	prompts := func(want int) func(*testing.T, *harness) {
		return func(t *testing.T, w *harness) {
			t.Helper()
			if n := w.operator.counts[exchange.Collection]; n != want {
				t.Errorf("%d prompts were sent, want %d", n, want)
			}
		}
	}
	rejected := func(t *testing.T, w *harness) {
		t.Helper()
		if !w.rejected["retry"] {
			t.Error("a request that is refused at once became part of the history")
		}
	}
	accepted := func(t *testing.T, w *harness) {
		t.Helper()
		if w.rejected["retry"] {
			t.Error("the request came too late for this test")
		}
	}
	for _, s := range []story{
		{
			name: "one is open", payers: []payer{{code: "0", after: 40 * time.Second}}, status: done, detail: none,
			people: func(w *harness) { w.at(20*time.Second, retryPayment(w, "retry")) },
			check:  all(wants("retry", exchange.CodeStateConflict), rejected, prompts(1)),
		},
		{
			name: "one will be repeated by itself", payers: []payer{locked, pays}, status: done, detail: none,
			people: func(w *harness) { w.at(20*time.Second, retryPayment(w, "retry")) },
			check:  all(wants("retry", exchange.CodeStateConflict), rejected, prompts(2)),
		},
		{
			name: "an operator's retry was first", payers: []payer{noAnswer, refused, {code: "0", after: 40 * time.Second}}, status: done, detail: none,
			people: both, check: all(wants("retry", exchange.CodeStateConflict), prompts(3), accepted),
		},
		{
			name: "an operator's retry was first and its prompt is repeated by itself", payers: []payer{noAnswer, refused, locked, pays}, status: done, detail: none,
			people: both, check: all(wants("retry", exchange.CodeStateConflict), prompts(4), accepted, func(t *testing.T, w *harness) {
				if took := w.env.Now().Sub(w.start); took < 6*min {
					t.Errorf("the operator's pause was not kept: the order took %s", took)
				}
			}),
		},
		{
			name: "six were sent", payers: []payer{{code: "1", after: 10 * time.Second}}, status: exchange.OrderCancelled, detail: exchange.DetailExpired,
			people: func(w *harness) {
				for i, id := range []string{"second", "third", "fourth", "fifth", "sixth", "retry"} {
					w.at(time.Duration(i+1)*min, retryPayment(w, id))
				}
			},
			check: all(wants("sixth", ""), wants("retry", exchange.CodeStateConflict), rejected, prompts(6)),
		},
	} {
		t.Run(s.name, s.play)
	}
}

// TestAbandonedFlowLooksSeldom leaves an order with an unknown outcome alone for two months. The server ends a flow whose
// history is too long, so the checks must become rare.
func TestAbandonedFlowLooksSeldom(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.operator.script = func(exchange.PaymentAttempt, int) payer {
		return payer{code: "0", after: 1e4 * time.Hour, silent: true, mute: true}
	}
	w.at(60*24*time.Hour, func() { w.command("resolve") })
	w.at(120*24*time.Hour, func() { w.lateCommand("resolve") })
	w.run(t)
	if o := w.order(); o.Status != exchange.OrderCancelled {
		t.Errorf("the order is %s", o.Status)
	}
	if w.operator.looked < 50 || w.operator.looked > 400 {
		t.Errorf("the operator was queried %d times in four months", w.operator.looked)
	}
}

// lateHarness is a harness in which a prompt failed softly, its order and its flow are over, and only then the
// payer's money arrives.
func lateHarness(t *testing.T) (*harness, exchange.PaymentAttempt) {
	t.Helper()
	return lateAfter(t, exchange.DetailExpired)
}

// lateAfter is lateHarness with an order that ended with the detail.
func lateAfter(t *testing.T, detail string) (*harness, exchange.PaymentAttempt) {
	t.Helper()
	w := newHarness(t)
	return w, w.failsSoftly(w.request, detail)
}

// failsSoftly opens an order whose prompt fails softly and which ends with the detail; without one it goes on waiting.
func (w *harness) failsSoftly(r exchange.OrderRequest, detail string) exchange.PaymentAttempt {
	w.t.Helper()
	ctx := w.t.Context()
	o, err := storetest.OpenOrder(ctx, w.store.Store, r, w.customer())
	if err != nil {
		w.t.Fatal(err)
	}
	a := exchange.PaymentAttempt{
		ID: activities.CollectionID(o.ID, 1), Provider: "daraja", CallbackToken: "token of " + o.ID.String(), WorkflowID: workflows.OnRampID(o.ID),
	}
	if _, _, err = w.store.BeginCollection(ctx, exchange.OrderObject(o.ID), a); err == nil {
		_, err = w.store.RecordSubmission(ctx, a.ID, exchange.Submission{State: exchange.Accepted, Refs: refs(a)})
	}
	if err == nil {
		a, err = w.store.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Soft: true, Code: "1037"})
	}
	if err == nil && detail != "" {
		_, err = w.store.CloseOrder(ctx, o.ID, exchange.OrderCancelled, detail, exchange.Asked{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.operator.submitted[a.ID] = 1
	return a
}

// late runs the watch over an attempt as the API starts it.
func (w *harness) late(t *testing.T, a exchange.PaymentAttempt) workflows.LatePaymentResult {
	t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.LatePaymentID(a.ID), TaskQueue: workflows.QueueFlows})
	w.env.ExecuteWorkflow(workflows.LatePayment, workflows.LatePaymentInput{AttemptID: a.ID, OrderID: a.OrderID})
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var r workflows.LatePaymentResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	w.sound(t)
	w.signs.mu.Lock()
	defer w.signs.mu.Unlock()
	if w.signs.alarmed[workflows.LatePaymentID(a.ID)] {
		t.Error("the watch has ended and is still parked")
	}
	return r
}

func (w *harness) pay(a exchange.PaymentAttempt, p payer) func() {
	return func() {
		w.operator.mu.Lock()
		defer w.operator.mu.Unlock()
		w.operator.plans[a.ID] = p
		w.operator.finish(a, p, "0")
	}
}

// TestLateMoneyStartsItsWatch makes money arrive after the order's flow has ended: the callback starts a watch with a
// signal, which opens an exception, and an operator decides about it.
func TestLateMoneyStartsItsWatch(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]string{"refund": workflows.LateRefunded, "resolve": workflows.LateResolved} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			w, a := lateHarness(t)
			w.at(0, w.pay(a, payer{twice: true}))
			w.at(time.Hour, func() { w.command(verb) })
			if r := w.late(t, a); r.Outcome != want {
				t.Errorf("the watch ended %s, want %s", r.Outcome, want)
			}
			wants(verb, "")(t, w)
			ended(t, w, exchange.OrderCancelled, exchange.DetailExpired)
			if verb == "refund" {
				refunded(price)(t, w)
			} else {
				exception(exchange.ExcLate, exchange.ExcAccepted)(t, w)
			}
			w.signs.were(t, workflows.LatePaymentID(a.ID), workflows.ReasonLateMoney)
		})
	}
}

// TestLateWatchIsReachedBeforeItSawAnything parks a watch whose first check fails, so that it knows neither its order
// nor an exception. Commands about the order still reach it.
func TestLateWatchIsReachedBeforeItSawAnything(t *testing.T) {
	t.Parallel()
	w, a := lateHarness(t)
	w.store.fault = w.during(0, 30*time.Minute, errBug, "Attempt")
	w.at(29*time.Minute, func() { w.command("retry") })
	w.at(0, w.pay(a, payer{}))
	w.at(3*time.Hour, func() { w.command("resolve") })
	if r := w.late(t, a); r.Outcome != workflows.LateResolved {
		t.Errorf("the watch ended %s", r.Outcome)
	}
	all(wants("retry", ""), wants("resolve", ""))(t, w)
	w.signs.were(t, workflows.LatePaymentID(a.ID), workflows.ReasonStepFailed, workflows.ReasonLateMoney)
}

// TestLateWatchThatIsNeverAnswered makes every check fail for days. The flow parks when its time is over, and ends by
// a command when checks succeed again.
func TestLateWatchThatIsNeverAnswered(t *testing.T) {
	t.Parallel()
	w, a := lateHarness(t)
	w.store.fault = w.during(0, 72*time.Hour, errAway, "Attempt")
	w.at(48*time.Hour, func() { w.command("resolve") })
	r := w.late(t, a)
	if r.Outcome != workflows.LateClean {
		t.Errorf("the watch ended %s", r.Outcome)
	}
	wants("resolve", "")(t, w)
	w.signs.were(t, workflows.LatePaymentID(a.ID), workflows.ReasonOutcomeUnknown)
}
