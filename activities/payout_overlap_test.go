package activities

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// twoRuns is an operator that responds to the runs of an activity one by one.
type twoRuns struct {
	MomoOperator
	answers []func() exchange.Submission
	calls   int
}

func (o *twoRuns) Capabilities() exchange.Capabilities {
	return exchange.Capabilities{PayoutIdempotent: true}
}

func (o *twoRuns) SubmitPayout(context.Context, exchange.PaymentAttempt) exchange.Submission {
	o.calls++
	return o.answers[o.calls-1]()
}

// TestPayoutIsSentByTwoRuns cuts a worker off from everything but the database while it sends a payout. Another
// worker sends the same payout, and the operator accepts it. The result of the first worker's call proves nothing: if
// it were recorded as a refusal, the payout would be made a second time under another id.
func TestPayoutIsSentByTwoRuns(t *testing.T) {
	t.Parallel()
	accepted := exchange.Submission{State: exchange.Accepted, Refs: exchange.Refs{ConversationID: "AG_1"}}
	cutOff := exchange.Submission{State: exchange.Refused, Code: "not_sent", Transient: true}
	for want, second := range map[exchange.AttemptStatus]exchange.Submission{
		exchange.AttemptAccepted: accepted, exchange.AttemptUnknown: {State: exchange.Unknown},
	} {
		for _, when := range []string{"after the second run", "while the second run sends"} {
			t.Run(string(want)+", "+when, func(t *testing.T) {
				t.Parallel()
				var suite testsuite.WorkflowTestSuite
				s, operator := storetest.New(t), &twoRuns{}
				o := storetest.NewSellers(t, s).Sale(t, s, "10")
				storetest.TakeCrypto(t, s, o)
				p := &Payouts{Store: s, Operator: operator, Provider: "daraja", CallbackKey: []byte("key"), Now: time.Now}
				run := func() PayoutStep {
					env := suite.NewTestActivityEnvironment()
					env.RegisterActivity(p.SubmitPayout)
					v, err := env.ExecuteActivity(p.SubmitPayout, SubmitPayoutInput{Object: exchange.OrderObject(o.ID), Try: 1})
					if err != nil {
						t.Fatal(err)
					}
					var step PayoutStep
					if err := v.Get(&step); err != nil {
						t.Fatal(err)
					}
					return step
				}
				attempt := PayoutID(o.ID, 1)
				first := func() { _, _ = keepSubmission(t.Context(), s, attempt, cutOff) }
				var other PayoutStep
				operator.answers = []func() exchange.Submission{
					func() exchange.Submission { other = run(); return cutOff },
					func() exchange.Submission {
						if when != "after the second run" {
							first()
						}
						return second
					},
				}
				step := run()
				if step.State != PayoutAccepted || other.State != PayoutAccepted || operator.calls != 2 {
					t.Errorf("after %d calls the runs say %q and %q", operator.calls, step.State, other.State)
				}
				stillOpen(t, s, attempt, want)
			})
		}
	}
}

// stillOpen checks that an attempt has a status, and that its payout is under way with its float held.
func stillOpen(t *testing.T, s *store.Store, attempt uuid.UUID, want exchange.AttemptStatus) {
	t.Helper()
	a, err := s.Attempt(t.Context(), attempt)
	if err != nil || a.Status != want {
		t.Errorf("the attempt is %s, %v", a.Status, err)
	}
	if p, err := s.OrderPayout(t.Context(), a.Object.ID); err != nil || p.Status != exchange.PayoutProcessing {
		t.Errorf("the payout is %s, %v", p.Status, err)
	}
	if float, err := s.Account(t.Context(), exchange.House(exchange.AccMomoPayout, money.KES)); err != nil || float.Held.Cmp(a.Amount) < 0 {
		t.Errorf("held for the payout: %s, %v", float.Held, err)
	}
}

// The server cancels a step whose heartbeats stayed away, and gives it to another process. The operator's answer is known
// to the first one alone.
func TestAnAnswerIsStoredAlthoughTheStepWasCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stored, err := keep(ctx, func(ctx context.Context, _ uuid.UUID, s exchange.Submission) (exchange.SubmissionState, error) {
		return s.State, ctx.Err()
	}, uuid.New(), exchange.Submission{State: exchange.Accepted})
	if err != nil || stored != exchange.Accepted {
		t.Errorf("stored %q: %v", stored, err)
	}
}
