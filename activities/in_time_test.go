package activities

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// punctual is an operator that accepts everything and notes until when a request may be sent.
type punctual struct {
	quiet
	until time.Time
}

func (o *punctual) sees(ctx context.Context) exchange.Submission {
	o.sent++
	o.until, _ = ctx.Deadline()
	return exchange.Submission{State: exchange.Accepted, Refs: exchange.Refs{ConversationID: "AG_1", CheckoutRequestID: "ws_CO_1"}}
}

func (o *punctual) SubmitPayout(ctx context.Context, _ exchange.PaymentAttempt) exchange.Submission {
	return o.sees(ctx)
}

func (o *punctual) SubmitCollection(ctx context.Context, _ exchange.PaymentAttempt) exchange.Submission {
	return o.sees(ctx)
}

func (o *punctual) MoveFloat(ctx context.Context, _ exchange.FloatMove) exchange.Submission {
	return o.sees(ctx)
}

func (o *punctual) Balance(context.Context) (string, error) { return "", nil }

func (o *punctual) ParseBalance([]byte) (exchange.FloatReport, error) {
	return exchange.FloatReport{}, nil
}

func (o *punctual) QueryFloat(context.Context, exchange.FloatMove) exchange.Observation {
	return exchange.Observation{}
}

// oneMove is a movement of float that may be requested.
type oneMove struct {
	FloatStore
	recorded exchange.Submission
}

func (s *oneMove) ClaimFloatMove(_ context.Context, m exchange.FloatMove) (exchange.FloatMove, bool, error) {
	m.Status = exchange.FloatUnknown
	return m, true, nil
}

func (s *oneMove) RecordFloatSubmission(_ context.Context, _ uuid.UUID, said exchange.Submission) (exchange.FloatMove, error) {
	s.recorded = said
	return exchange.FloatMove{}, nil
}

// D16: a worker that was suspended between its last look at the database and its request sent the request when it woke, hours
// after its flow had given it up. Every request for money ends at a time that was fixed before, and none is sent after it.
func TestD16_NothingIsSentAfterItsTime(t *testing.T) {
	t.Parallel()
	const span = time.Minute
	for name, begin := range map[string]func(t *testing.T, o *punctual, now func() time.Time, until time.Time) (step, in any, refused func() exchange.Code){
		"prompt": func(t *testing.T, o *punctual, now func() time.Time, until time.Time) (any, any, func() exchange.Code) {
			s := storetest.New(t)
			order := storetest.NewMarket(t, s).Order(t, s, "10")
			m := &Momo{Store: s, Operator: o, Provider: "daraja", Now: now}
			return m.PromptPayer, PromptInput{OrderID: order.ID, N: 1, Home: "a flow", Until: until}, func() exchange.Code {
				a, err := s.Attempt(t.Context(), CollectionID(order.ID, 1))
				if err != nil || a.Status != exchange.AttemptRefused {
					t.Errorf("the prompt is %s, %v", a.Status, err)
				}
				return exchange.Code(a.ResultCode)
			}
		},
		"payout": func(t *testing.T, o *punctual, now func() time.Time, until time.Time) (any, any, func() exchange.Code) {
			s := storetest.New(t)
			order := storetest.NewSellers(t, s).Sale(t, s, "10")
			storetest.TakeCrypto(t, s, order)
			p := &Payouts{Store: s, Operator: o, Provider: "daraja", CallbackKey: []byte("key"), Now: now}
			return p.SubmitPayout, SubmitPayoutInput{Object: exchange.OrderObject(order.ID), Try: 1, Until: until}, func() exchange.Code {
				a, err := s.Attempt(t.Context(), PayoutID(order.ID, 1))
				if err != nil || a.Status != exchange.AttemptRefused {
					t.Errorf("the payout is %s, %v", a.Status, err)
				}
				return exchange.Code(a.ResultCode)
			}
		},
		"movement of float": func(_ *testing.T, o *punctual, now func() time.Time, _ time.Time) (any, any, func() exchange.Code) {
			s := &oneMove{}
			f := &Float{Store: s, Operator: o, CallbackKey: []byte("key"), Now: now}
			return f.SubmitFloatMove, uuid.New(), func() exchange.Code { return exchange.Code(s.recorded.Code) }
		},
	} {
		for _, late := range []bool{false, true} {
			t.Run(name+map[bool]string{false: ", in time", true: ", after a pause"}[late], func(t *testing.T) {
				t.Parallel()
				o, start, looks := &punctual{}, time.Now(), 0
				now := func() time.Time {
					if looks++; late && looks > map[string]int{"prompt": 0, "payout": 2, "movement of float": 1}[name] {
						return start.Add(time.Hour)
					}
					return start
				}
				step, in, refused := begin(t, o, now, start.Add(span))
				env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
				env.RegisterActivity(step)
				if _, err := env.ExecuteActivity(step, in); err != nil {
					t.Fatal(err)
				}
				switch {
				case late && (o.sent != 0 || refused() != exchange.Code(exchange.ClassOverdue)):
					t.Errorf("it was sent %d times and is refused with %q", o.sent, refused())
				case !late && (o.sent != 1 || o.until.IsZero() || o.until.After(start.Add(moveWithin+time.Second))):
					t.Errorf("it was sent %d times, and may leave until %s", o.sent, o.until)
				}
			})
		}
	}
}

// A movement of float is sent before an officer may declare that it failed. A request takes a minute at most.
func TestFloatMoveIsSentBeforeItMayFail(t *testing.T) {
	t.Parallel()
	if moveWithin+time.Minute > exchange.FloatSending {
		t.Errorf("it may be sent for %s, and fail after %s", moveWithin, exchange.FloatSending)
	}
}

// A payout that is sent again ends in time too: before the operator may have forgotten its id, and before its try is over.
func TestD16_NothingIsSentAgainAfterItsTime(t *testing.T) {
	t.Parallel()
	for name, span := range map[string]time.Duration{"of its try": time.Minute, "of the operator's memory": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, o := broken(t), &punctual{}
			p.steps.Operator = o
			until := time.Now().Add(span)
			p.retried(SubmitPayoutInput{Until: until})
			if latest := time.Now().Add(min(span, resubmitFor)); o.sent != 1 || o.until.IsZero() || o.until.After(latest) {
				t.Errorf("it was sent %d times, and may leave until %s, not %s", o.sent, o.until, latest)
			}
		})
	}
}
