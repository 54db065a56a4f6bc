package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// lateEvidence is the answers that a check of a payout gets, and the calls that it makes.
type lateEvidence struct {
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

func (w *lateEvidence) check(_ context.Context, in activities.CheckPayoutInput) (activities.LatePayoutStep, error) {
	w.looks++
	if in.Ask {
		w.asked++
	}
	return nextOf(&w.steps), nil
}

func (w *lateEvidence) settle(context.Context, activities.SettlePayoutInput) (activities.LatePayoutStep, error) {
	w.settled++
	return w.booked, nil
}

func (w *lateEvidence) resolve(_ context.Context, in activities.ExceptionInput) error {
	w.resolved = append(w.resolved, in.ExceptionID)
	return nil
}

func (w *lateEvidence) prove(context.Context, activities.ProveInput) (activities.Proof, error) {
	return activities.Proof{CommandID: uuid.New(), Verb: w.verb}, nil
}

var lateInput = workflows.LatePayoutInput{AttemptID: uuid.New(), RefundID: uuid.New(), OrderID: uuid.New()}

// run checks a payout, with a command of the verb at a time.
func (w *lateEvidence) run(t *testing.T, at time.Duration, verb string) workflows.LatePayoutResult {
	t.Helper()
	w.signs, w.verb = newSigns(), verb
	w.env = newEnvironment(w.signs)
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

func (w *lateEvidence) parked(t *testing.T, want ...workflows.Reason) {
	t.Helper()
	w.signs.were(t, "default-test-workflow-id", want...)
}

// TestUnclaimedLatePayout ends at once and does not park.
func TestUnclaimedLatePayout(t *testing.T) {
	for _, state := range []string{activities.PayoutNoClaim, activities.PayoutDenied} {
		w := &lateEvidence{steps: []activities.LatePayoutStep{{State: state}}}
		if r := w.run(t, 0, ""); r.Outcome != workflows.LateClean || w.looks != 1 {
			t.Errorf("ended %+v after %d checks", r, w.looks)
		}
		w.parked(t)
	}
}

// TestLatePayoutThatIsAccounted does not park either: the payout completed its refund, or was booked before.
func TestLatePayoutThatIsAccounted(t *testing.T) {
	w := &lateEvidence{steps: []activities.LatePayoutStep{{State: activities.PayoutPending}, {State: activities.PayoutPaid}}}
	if r := w.run(t, 0, ""); r.Outcome != workflows.LateAccounted || w.asked != 2 {
		t.Errorf("ended %+v after %d queries", r, w.asked)
	}
	w.parked(t)
}

// TestRefundThatWasPaidTwice waits for an operator to settle the exception.
func TestRefundThatWasPaidTwice(t *testing.T) {
	twice := activities.LatePayoutStep{State: activities.PayoutPaid, Exception: uuid.New(), Undecided: true}
	w := &lateEvidence{steps: []activities.LatePayoutStep{twice}}
	if r := w.run(t, time.Hour, activities.VerbResolve); r.Outcome != workflows.LateResolved || len(w.resolved) != 1 || w.resolved[0] != twice.Exception {
		t.Errorf("ended %+v, resolved %v", r, w.resolved)
	}
	w.parked(t, workflows.ReasonRefundTwice)
}

// TestUnconfirmedClaim parks after some queries; a receipt settles it.
func TestUnconfirmedClaim(t *testing.T) {
	w := &lateEvidence{steps: []activities.LatePayoutStep{{State: activities.PayoutPending}}, booked: activities.LatePayoutStep{State: activities.PayoutPaid}}
	if r := w.run(t, 3*time.Hour, activities.VerbResolve); r.Outcome != workflows.LateAccounted || w.settled != 1 || w.asked < 6 {
		t.Errorf("ended %+v after %d queries, settled %d times", r, w.asked, w.settled)
	}
	w.parked(t, workflows.ReasonRefundLate)
}

// TestHoldsOfExchange compares the codes of the database with the reasons of flows.
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
