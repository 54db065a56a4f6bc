package activities

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// oneAttempt is a database with one attempt in it.
type oneAttempt struct {
	PayoutStore
	attempt exchange.PaymentAttempt
	failed  bool
}

func (s *oneAttempt) Payable(context.Context, exchange.MomoObject) (exchange.Payable, error) {
	return exchange.Payable{Amount: s.attempt.Amount}, nil
}

func (s *oneAttempt) Attempt(_ context.Context, id uuid.UUID) (exchange.PaymentAttempt, error) {
	if s.attempt.ID != id {
		return s.attempt, exchange.Errorf(exchange.CodeNotFound, "none")
	}
	return s.attempt, nil
}

func (s *oneAttempt) BeginPayout(_ context.Context, _ exchange.MomoObject, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	s.attempt = a
	s.attempt.CallbackToken = ""
	return a, nil
}

func (s *oneAttempt) RecordSubmission(_ context.Context, _ uuid.UUID, sub exchange.Submission) (exchange.PaymentAttempt, error) {
	to := map[exchange.SubmissionState]exchange.AttemptStatus{
		exchange.Accepted: exchange.AttemptAccepted, exchange.Refused: exchange.AttemptRefused, exchange.Unknown: exchange.AttemptUnknown,
	}[sub.State]
	sentTwice := s.attempt.Status == exchange.AttemptUnknown && to == exchange.AttemptRefused
	if !sentTwice && exchange.AttemptMachine.Allow(s.attempt.Status, to) == nil {
		s.attempt.Status, s.attempt.ResultCode = to, sub.Code
	}
	return s.attempt, nil
}

func (s *oneAttempt) FailPayout(context.Context, exchange.MomoObject, string) (exchange.Payable, error) {
	s.failed = true
	return exchange.Payable{}, nil
}

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
	accepted := exchange.Submission{State: exchange.Accepted, Refs: exchange.Refs{ConversationID: "AG_1"}}
	cutOff := exchange.Submission{State: exchange.Refused, Code: "not_sent", Transient: true}
	for name, second := range map[string]exchange.Submission{"taken": accepted, "of unknown outcome": {State: exchange.Unknown}} {
		for _, when := range []string{"after the second run", "while the second run sends"} {
			t.Run(name+", "+when, func(t *testing.T) {
				var suite testsuite.WorkflowTestSuite
				store, operator, of := &oneAttempt{}, &twoRuns{}, exchange.OrderObject(uuid.New())
				p := &Payouts{Store: store, Operator: operator, Provider: "daraja", CallbackKey: []byte("key"), Now: time.Now}
				run := func() PayoutStep {
					env := suite.NewTestActivityEnvironment()
					env.RegisterActivity(p.SubmitPayout)
					v, err := env.ExecuteActivity(p.SubmitPayout, SubmitPayoutInput{Object: of, Try: 1})
					if err != nil {
						t.Fatal(err)
					}
					var step PayoutStep
					if err := v.Get(&step); err != nil {
						t.Fatal(err)
					}
					return step
				}
				store.attempt.Amount = money.Must(money.KES, "100")
				first := func() { _, _ = keepSubmission(t.Context(), store, store.attempt.ID, cutOff) }
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
				if store.failed || store.attempt.Status == exchange.AttemptRefused || step.State != PayoutAccepted || other.State != PayoutAccepted {
					t.Errorf("the attempt is %s, the runs say %q and %q", store.attempt.Status, step.State, other.State)
				}
			})
		}
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
