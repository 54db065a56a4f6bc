package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// lateWord is what the look at a payout is told, and what it does.
type lateWord struct {
	env      *testsuite.TestWorkflowEnvironment
	signs    *signs
	steps    []activities.LatePayoutStep
	booked   activities.LatePayoutStep // by command
	verb     string
	looks    int
	asked    int
	settled  int
	resolved []uuid.UUID
}

func (w *lateWord) check(_ context.Context, in activities.CheckRefundInput) (activities.LatePayoutStep, error) {
	w.looks++
	if in.Ask {
		w.asked++
	}
	return nextOf(&w.steps), nil
}

func (w *lateWord) settle(context.Context, activities.SettleRefundInput) (activities.LatePayoutStep, error) {
	w.settled++
	return w.booked, nil
}

func (w *lateWord) resolve(_ context.Context, in activities.ExceptionInput) error {
	w.resolved = append(w.resolved, in.ExceptionID)
	return nil
}

func (w *lateWord) prove(context.Context, activities.ProveInput) (activities.Proof, error) {
	return activities.Proof{CommandID: uuid.New(), Verb: w.verb}, nil
}

var lateInput = workflows.LatePayoutInput{AttemptID: uuid.New(), RefundID: uuid.New(), OrderID: uuid.New()}

// run looks at a payout, with a command of the verb at a time.
func (w *lateWord) run(t *testing.T, at time.Duration, verb string) workflows.LatePayoutResult {
	t.Helper()
	suite := testsuite.WorkflowTestSuite{}
	suite.SetLogger(silentLogger{})
	w.env, w.signs, w.verb = suite.NewTestWorkflowEnvironment(), newSigns(), verb
	w.env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{w.signs}})
	for name, f := range map[string]any{"CheckLatePayout": w.check, "SettleLatePayout": w.settle, "ResolveException": w.resolve, "ProveCommand": w.prove, "ListParked": listed} {
		w.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	if verb != "" {
		w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow(verb, workflows.CommandRef{CommandID: uuid.New()}) }, at)
	}
	w.env.ExecuteWorkflow(workflows.LatePayout, lateInput)
	var result workflows.LatePayoutResult
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if err := w.env.GetWorkflowResult(&result); err != nil {
		t.Fatal(err)
	}
	return result
}

func (w *lateWord) parked(t *testing.T, want ...workflows.Reason) {
	t.Helper()
	w.signs.were(t, "default-test-workflow-id", want...)
}

// TestLatePayoutThatNobodyClaims ends at once and calls for nobody.
func TestLatePayoutThatNobodyClaims(t *testing.T) {
	for _, state := range []string{activities.PayoutSilent, activities.PayoutDenied} {
		w := &lateWord{steps: []activities.LatePayoutStep{{State: state}}}
		if r := w.run(t, 0, ""); r.Outcome != workflows.LateClean || w.looks != 1 {
			t.Errorf("ended %+v after %d looks", r, w.looks)
		}
		w.parked(t)
	}
}

// TestLatePayoutThatIsAccounted needs nobody either: it completed its refund, or was booked before.
func TestLatePayoutThatIsAccounted(t *testing.T) {
	w := &lateWord{steps: []activities.LatePayoutStep{{State: activities.RefundPending}, {State: activities.RefundPaid}}}
	if r := w.run(t, 0, ""); r.Outcome != workflows.LateAccounted || w.asked != 2 {
		t.Errorf("ended %+v after %d questions", r, w.asked)
	}
	w.parked(t)
}

// TestRefundThatWasPaidTwice waits for a person to settle the exception.
func TestRefundThatWasPaidTwice(t *testing.T) {
	twice := activities.LatePayoutStep{State: activities.RefundPaid, Exception: uuid.New(), Undecided: true}
	w := &lateWord{steps: []activities.LatePayoutStep{twice}}
	if r := w.run(t, time.Hour, activities.VerbResolve); r.Outcome != workflows.LateResolved || len(w.resolved) != 1 || w.resolved[0] != twice.Exception {
		t.Errorf("ended %+v, resolved %v", r, w.resolved)
	}
	w.parked(t, workflows.ReasonRefundTwice)
}

// TestClaimThatNobodyConfirms is shown to a person after some questions; a receipt settles it.
func TestClaimThatNobodyConfirms(t *testing.T) {
	w := &lateWord{steps: []activities.LatePayoutStep{{State: activities.RefundPending}}, booked: activities.LatePayoutStep{State: activities.RefundPaid}}
	if r := w.run(t, 3*time.Hour, activities.VerbResolve); r.Outcome != workflows.LateAccounted || w.settled != 1 || w.asked < 6 {
		t.Errorf("ended %+v after %d questions, settled %d times", r, w.asked, w.settled)
	}
	w.parked(t, workflows.ReasonRefundLate)
}

// TestHoldsOfExchange keeps the words of the database and the reasons of flows together.
func TestHoldsOfExchange(t *testing.T) {
	for hold, reason := range map[exchange.SigningHold]workflows.Reason{
		exchange.HoldForeign: workflows.ReasonPayoutForeignSend, exchange.HoldSentBefore: workflows.ReasonPayoutSentBefore,
		exchange.HoldUnexpected: workflows.ReasonPayoutUnexpected,
	} {
		if "payout-"+string(hold) != string(reason) {
			t.Errorf("%s is shown as %s", hold, reason)
		}
	}
}
