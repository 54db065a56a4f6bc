package workflows_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// undecided notes, under the answer "undecided", whether the late money waits for an officer.
func undecided(w *harness) {
	w.answers["undecided"] = conflict("%d exceptions, none of which is open", len(w.exceptions()))
	for _, x := range w.exceptions() {
		if x.Status == exchange.ExcOpen && len(w.refunds()) == 0 {
			w.answers["undecided"] = nil
		}
	}
}

// byRule checks that no flow asked an officer about late money.
func byRule(t *testing.T, w *harness) {
	t.Helper()
	for _, a := range w.attemptList() {
		if a.Direction == exchange.Collection {
			w.signs.were(t, workflows.LatePaymentID(a.ID))
		}
	}
}

// leftBehind is a watch that has ended with its refund open: the money is booked, and some payouts were begun.
type leftBehind struct {
	*harness
	a      exchange.PaymentAttempt
	refund exchange.Refund
}

// leaves makes late money arrive for an order that ended with the detail, with an officer's refund where no rule opens one.
func leaves(t *testing.T, detail string) leftBehind {
	t.Helper()
	w, a := lateAfter(t, detail)
	return leftBehind{w, a, w.owesBack(a, detail)}
}

// owesBack makes the money of a prompt arrive although its order ended with the detail.
func (w *harness) owesBack(a exchange.PaymentAttempt, detail string) exchange.Refund {
	w.t.Helper()
	w.pay(a, payer{silent: true})()
	m := w.operator.collected(a.OrderID)[0]
	out, err := w.store.AcceptPayment(w.t.Context(), a.ID, exchange.Observation{
		Receipt: m.receipt, Amount: m.amount, Source: exchange.SourceCallback,
	}, w.start)
	if err != nil {
		w.t.Fatal(err)
	}
	if detail != exchange.DetailCancelled {
		out.Refund, err = w.store.RefundException(w.t.Context(), out.Exception.ID, w.officer)
	}
	if err != nil || out.Refund.ID == uuid.Nil {
		w.t.Fatalf("refund %+v, %v", out.Refund, err)
	}
	return out.Refund
}

// pays begins and sends a payout of the refund, as the flow that ended did.
func (l leftBehind) pays(t *testing.T, try int, p payer) {
	t.Helper()
	out := exchange.PaymentAttempt{
		ID: activities.PayoutID(l.refund.ID, try), Provider: "daraja", CallbackToken: "token of " + strconv.Itoa(try), WorkflowID: workflows.LatePaymentID(l.a.ID),
	}
	out, err := l.store.BeginPayout(t.Context(), exchange.RefundObject(l.refund.ID), out)
	if err != nil {
		t.Fatal(err)
	}
	script := l.operator.script
	l.operator.script = func(exchange.PaymentAttempt, int) payer { return p }
	_, err = l.store.RecordSubmission(t.Context(), out.ID, l.operator.SubmitPayout(t.Context(), out))
	if err == nil && p.refuse != "" {
		_, err = l.store.FailPayout(t.Context(), exchange.RefundObject(l.refund.ID), "refused")
	}
	if err != nil {
		t.Fatal(err)
	}
	l.operator.script = script
}

// A watch that is started again while its refund is open pays that refund, and pays it once, whatever was begun before.
func TestWatchTakesUpAnOpenRefund(t *testing.T) {
	t.Parallel()
	const cancelled = exchange.DetailCancelled
	for name, c := range map[string]struct {
		detail  string
		before  func(*testing.T, leftBehind)
		retry   bool // by an operator's command, after which the next payout is made
		outcome string
	}{
		"opened by rule":       {cancelled, func(*testing.T, leftBehind) {}, false, workflows.LateRefunded},
		"opened by an officer": {exchange.DetailExpired, func(*testing.T, leftBehind) {}, false, workflows.LateRefunded},
		"being paid":           {cancelled, func(t *testing.T, l leftBehind) { l.pays(t, 1, pays) }, false, workflows.LateRefunded},
		"refused before":       {cancelled, func(t *testing.T, l leftBehind) { l.pays(t, 1, payer{refuse: "2040"}) }, true, workflows.LateRefunded},
		"refused twice before": {cancelled, func(t *testing.T, l leftBehind) {
			l.pays(t, 1, payer{refuse: "2040"})
			l.pays(t, 2, payer{refuse: "2040"})
		}, true, workflows.LateRefunded},
		"being paid after a refusal": {cancelled, func(t *testing.T, l leftBehind) {
			l.pays(t, 1, payer{refuse: "2040"})
			l.pays(t, 2, pays)
		}, false, workflows.LateRefunded},
		"paid": {cancelled, func(t *testing.T, l leftBehind) {
			l.pays(t, 1, payer{code: "0", early: true})
			obs := exchange.Observation{Receipt: l.operator.paidOut(l.a.OrderID)[0].receipt}
			if _, err := l.store.CompletePayout(t.Context(), exchange.RefundObject(l.refund.ID), activities.PayoutID(l.refund.ID, 1), obs); err != nil {
				t.Fatal(err)
			}
		}, false, workflows.LateAccounted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := leaves(t, c.detail)
			c.before(t, l)
			want := []workflows.Reason{}
			if c.retry {
				want = append(want, workflows.ReasonRefundRefused)
				l.at(time.Hour, func() { l.command(activities.VerbRetry) })
			}
			if r := l.late(t, l.a); r.Outcome != c.outcome {
				t.Errorf("the watch ended %s, want %s", r.Outcome, c.outcome)
			}
			l.signs.were(t, workflows.LatePaymentID(l.a.ID), want...)
			refunded(price)(t, l.harness)
			exception(exchange.ExcLate, exchange.ExcRefunded)(t, l.harness)
		})
	}
}

// A refund whose refused payout is claimed to have been made is paid again only after the claim is denied. Until then each
// retry parks it again, and it checks by itself whether the claim is settled.
func TestRefundWaitsWhileItsPayoutIsClaimed(t *testing.T) {
	t.Parallel()
	l := leaves(t, exchange.DetailCancelled)
	l.pays(t, 1, payer{refuse: "2040"})
	claim := func(claimed bool) {
		if err := l.store.DoubtPayout(t.Context(), exchange.RefundObject(l.refund.ID), claimed); err != nil {
			t.Error(err)
		}
	}
	claim(true)
	l.at(time.Hour, func() { l.command(activities.VerbRetry) })
	l.at(2*time.Hour, func() { l.command(activities.VerbRetry) })
	l.at(3*time.Hour, func() {
		if out := l.operator.paidOut(l.a.OrderID); len(out) != 0 {
			t.Errorf("paid in spite of the claim: %v", out)
		}
		claim(false)
	})
	if r := l.late(t, l.a); r.Outcome != workflows.LateRefunded {
		t.Errorf("the watch ended %s", r.Outcome)
	}
	l.signs.changed(t, workflows.LatePaymentID(l.a.ID), workflows.ReasonRefundRefused, workflows.ReasonRefundLate)
	refunded(price)(t, l.harness)
}

// The operator claims that a refused payout of a refund was made, and answers no query. Two officers declare that it was not
// made: the claim ends, and a retry pays the refund. A claim that comes after the declaration counts again.
func TestOfficersDeclareAClaimedRefundUnpaid(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"and it is paid": false, "and a new claim comes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := leaves(t, exchange.DetailCancelled)
			l.pays(t, 1, payer{refuse: "2040"})
			a, err := l.store.Attempt(t.Context(), activities.PayoutID(l.refund.ID, 1))
			if err != nil {
				t.Fatal(err)
			}
			a.WorkflowID = workflows.LatePayoutID(a.ID)
			claims := func(receipt string) {
				l.operator.mu.Lock()
				defer l.operator.mu.Unlock()
				l.operator.plans[a.ID] = payer{mute: true}
				l.operator.callback(a, exchange.CallbackResult, exchange.Observation{
					State: exchange.SeenSucceeded, Receipt: receipt, Amount: a.Amount, Source: exchange.SourceCallback,
				})
			}
			command := func(flow, verb, note string) {
				id := l.decreeWith(activities.ObjectOrder, a.OrderID, verb, note)
				if err := l.env.UpdateWorkflowByID(flow, workflows.UpdateCommand, id.String(), l.answer(verb), workflows.CommandRef{CommandID: id}); err != nil {
					t.Error(err)
				}
			}
			watch := workflows.LatePaymentID(l.a.ID)
			claims("UKL0000091")
			l.at(3*time.Hour, func() { command(watch, activities.VerbRetry, "again") })
			l.at(4*time.Hour, func() { l.declareUnpaid(a.ID) })
			if again {
				l.at(4*time.Hour+time.Second, func() { claims("UKL0000092") })
			}
			l.at(4*time.Hour+2*time.Second, func() { command(a.WorkflowID, activities.VerbRetry, "declared not made") })
			l.at(5*time.Hour, func() { command(watch, activities.VerbRetry, "again") })
			if again {
				l.at(6*time.Hour, func() { command(a.WorkflowID, activities.VerbResolve, "UKL0000092") })
				l.at(7*time.Hour, func() { command(watch, activities.VerbRetry, "again") })
			}
			l.bothRun(t, a, again)
		})
	}
}

// declareUnpaid has two officers declare that a payout of the order was not made. The database compares its age with
// its own clock.
func (w *harness) declareUnpaid(attempt uuid.UUID) {
	w.t.Helper()
	storetest.Exec(w.t, w.store.Store, `UPDATE payment_attempts SET created_at = '2020-01-01' WHERE id = $1`, attempt)
	c, err := w.store.ProposeUnpaid(w.t.Context(), exchange.OrderObject(w.request.ID), "not in the portal", w.officer)
	if err == nil {
		err = w.confirmed(c)
	}
	if err != nil {
		w.t.Error(err)
	}
}

// confirmed has a second officer confirm a change.
func (w *harness) confirmed(c exchange.ControlChange) error {
	w.t.Helper()
	_, err := w.store.ConfirmChange(w.t.Context(), c.ID, "", storetest.PrincipalOf(storetest.User(w.t, w.store.Store, exchange.RoleAdmin)))
	return err
}

// bothRun runs the watch that owes the refund beside the check of late notices about its first payout.
func (l leftBehind) bothRun(t *testing.T, a exchange.PaymentAttempt, again bool) {
	t.Helper()
	watch := workflows.LatePaymentID(l.a.ID)
	both := func(ctx workflow.Context) (ends []string, err error) {
		as := func(id string) workflow.Context {
			return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: id, TaskQueue: workflows.QueueFlows})
		}
		late := workflow.ExecuteChildWorkflow(as(a.WorkflowID), workflows.LatePayout, workflows.LatePayoutOf(a))
		var checked workflows.LatePayoutResult
		var paid workflows.LatePaymentResult
		err = workflow.ExecuteChildWorkflow(as(watch), workflows.LatePayment, workflows.LatePaymentInput{AttemptID: l.a.ID, OrderID: a.OrderID}).Get(ctx, &paid)
		if err == nil {
			err = late.Get(ctx, &checked)
		}
		return []string{checked.Outcome, paid.Outcome}, err
	}
	l.env.RegisterWorkflow(both)
	l.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "both", TaskQueue: workflows.QueueFlows})
	l.env.ExecuteWorkflow(both)
	want, reasons := []string{workflows.LateClean, workflows.LateRefunded}, []workflows.Reason{workflows.ReasonRefundRefused, workflows.ReasonRefundLate}
	if again {
		want[0] = workflows.LateAccounted
	}
	var ends []string
	if err := l.env.GetWorkflowResult(&ends); err != nil || !slices.Equal(ends, want) {
		t.Errorf("the flows ended %q, %v", ends, err)
	}
	l.signs.changed(t, watch, reasons...)
	l.signs.were(t, a.WorkflowID, workflows.ReasonRefundLate)
	l.sound(t)
	if !again {
		refunded(price)(t, l.harness)
	} else if out := l.operator.paidOut(a.OrderID); len(out) > 0 {
		t.Errorf("paid in spite of the claim: %v", out)
	}
}

// The flow that pays a refund outlives the watch that started it. A watch that is started again waits for it, passes a
// command on to it, and pays nothing itself.
func TestWatchWaitsForTheRefundThatRuns(t *testing.T) {
	t.Parallel()
	l := leaves(t, exchange.DetailCancelled)
	l.operator.script = func(exchange.PaymentAttempt, int) payer {
		return payer{code: "0", after: time.Second, mute: true, silent: true}
	}
	both := func(ctx workflow.Context) (out workflows.LatePaymentResult, err error) {
		as := func(id string) workflow.Context {
			return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: id, TaskQueue: workflows.QueueFlows})
		}
		earlier := workflow.ExecuteChildWorkflow(as(workflows.MomoPayoutID(exchange.RefundObject(l.refund.ID))), workflows.MomoPayout,
			workflows.MomoPayoutInput{Object: exchange.RefundObject(l.refund.ID), OrderID: l.a.OrderID, Try: 1, Home: workflows.LatePaymentID(l.a.ID)})
		if err := earlier.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			return out, err
		}
		in := workflows.LatePaymentInput{AttemptID: l.a.ID, OrderID: l.a.OrderID}
		err = workflow.ExecuteChildWorkflow(as(workflows.LatePaymentID(l.a.ID)), workflows.LatePayment, in).Get(ctx, &out)
		return out, err
	}
	l.env.RegisterWorkflow(both)
	l.at(3*time.Hour, func() {
		if n := len(l.operator.submitted) - 1; n != 1 {
			t.Errorf("%d payouts were sent while the earlier one is unknown", n)
		}
		l.operator.mu.Lock()
		i := slices.IndexFunc(l.operator.book, func(m moved) bool { return m.attempt.Direction == exchange.Payout })
		receipt := l.operator.book[i].receipt
		l.operator.mu.Unlock()
		id := l.decreeWith(activities.ObjectOrder, l.a.OrderID, activities.VerbResolve, receipt)
		err := l.env.UpdateWorkflowByID(workflows.LatePaymentID(l.a.ID), workflows.UpdateCommand, id.String(), l.answer("resolve"), workflows.CommandRef{CommandID: id})
		if err != nil {
			t.Error(err)
		}
	})
	l.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "both", TaskQueue: workflows.QueueFlows})
	l.env.ExecuteWorkflow(both)
	var r workflows.LatePaymentResult
	if err := l.env.GetWorkflowResult(&r); err != nil || r.Outcome != workflows.LateRefunded {
		t.Errorf("the watch ended %q, %v", r.Outcome, err)
	}
	wants("resolve", "")(t, l.harness)
	l.sound(t)
	refunded(price)(t, l.harness)
}

// The flow of an order that was paid late while it waited may carry the order on before it could be notified. After a reset of the
// watch that flow may even have ended, and never comes back. The watch ends too, and nobody is asked.
func TestWatchEndsWhenTheOrderWentOn(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	a := w.failsSoftly(w.request, "")
	tried := 0
	w.env.OnSignalExternalWorkflow("default-test-namespace", workflows.OnRampID(a.OrderID), "", workflows.SignalCallback, workflows.CallbackRef{AttemptID: a.ID}).
		Return(func(string, string, string, string, any) error {
			if tried++; tried == 1 { // here the flow carries the order on
				_, err := storetest.Owner(t, w.store.Store).ExecContext(t.Context(), `ALTER TABLE orders DISABLE TRIGGER USER;
					UPDATE orders SET status = 'confirming', status_detail = 'finality' WHERE id = '`+a.OrderID.String()+`'`)
				if err != nil {
					t.Error(err) // Fatal would leave the flow waiting for this answer
				}
			}
			return errors.New("no such flow")
		})
	w.at(0, w.pay(a, payer{}))
	if got := w.late(t, a).Outcome; got != workflows.LateAccounted || tried != 1 {
		t.Errorf("it ended as %s after %d tries", got, tried)
	}
}
