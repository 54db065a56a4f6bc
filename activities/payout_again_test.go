package activities

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// quiet is an operator that accepts a payout and has no answer to queries.
type quiet struct {
	MomoOperator
	sent, asked int
}

func (o *quiet) Capabilities() exchange.Capabilities {
	return exchange.Capabilities{PayoutIdempotent: true}
}

func (o *quiet) SubmitPayout(_ context.Context, a exchange.PaymentAttempt) exchange.Submission {
	o.sent++
	return exchange.Submission{State: exchange.Accepted, Refs: exchange.Refs{ConversationID: "AG_" + a.ID.String()}}
}

func (o *quiet) Resolve(context.Context, exchange.PaymentAttempt) exchange.Observation {
	o.asked++
	return exchange.Observation{State: exchange.SeenPending}
}

// outgoing runs the steps of a sale's payout whose worker died after it had written the attempt: nobody knows whether the
// request has left.
type outgoing struct {
	t        *testing.T
	s        *store.Store
	order    exchange.Order
	operator *quiet
	steps    *Payouts
	suite    testsuite.WorkflowTestSuite
}

func broken(t *testing.T) *outgoing {
	t.Helper()
	s, operator := storetest.New(t), &quiet{}
	p := &outgoing{t: t, s: s, operator: operator, order: storetest.NewSellers(t, s).Sale(t, s, "10")}
	storetest.TakeCrypto(t, s, p.order)
	p.steps = &Payouts{Store: s, Operator: operator, Provider: "daraja", CallbackKey: []byte("key"), Now: time.Now}
	_, err := s.BeginPayout(t.Context(), exchange.OrderObject(p.order.ID), exchange.PaymentAttempt{
		ID: p.attempt(), Provider: "daraja", CallbackToken: "a token", WorkflowID: "a flow", CreatedAt: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *outgoing) attempt() uuid.UUID { return PayoutID(p.order.ID, 1) }

// retried runs the step that sends the payout again, and checks that the payout is open.
func (p *outgoing) retried(in SubmitPayoutInput) {
	p.t.Helper()
	in.Object, in.Try = exchange.OrderObject(p.order.ID), 1
	p.isOpen(p.steps.SubmitPayout, in, PayoutAccepted)
}

// checked asks for the outcome, and checks that the payout is open.
func (p *outgoing) checked() {
	p.t.Helper()
	p.isOpen(p.steps.CheckPayout, CheckPayoutInput{AttemptID: p.attempt(), Ask: true}, PayoutPending)
}

func (p *outgoing) isOpen(activity, in any, want string) {
	p.t.Helper()
	env := p.suite.NewTestActivityEnvironment()
	env.RegisterActivity(activity)
	var step PayoutStep
	v, err := env.ExecuteActivity(activity, in)
	if err == nil {
		err = v.Get(&step)
	}
	if err != nil || step.State != want {
		p.t.Fatalf("the step says %q, %v, want %q", step.State, err, want)
	}
}

// lastReleased makes a database the one that was released last, as after it was put back from a backup.
func (p *outgoing) lastReleased(identity string) {
	p.t.Helper()
	storetest.Exec(p.t, p.s, `ALTER TABLE database_releases DISABLE TRIGGER USER`)
	storetest.Exec(p.t, p.s, `INSERT INTO database_releases (identity) VALUES (`+identity+`)`)
	storetest.Exec(p.t, p.s, `ALTER TABLE database_releases ENABLE TRIGGER USER`)
}

// A payout whose row was written before a stop does not leave in it. It may have left before, so it stays open and is queried;
// once nothing stops it, a check sends it under its own id.
func TestAStopHoldsAPayoutThatWasBegun(t *testing.T) {
	t.Parallel()
	active := func(p *outgoing, is bool) error {
		_, err := p.s.UpdateUser(p.t.Context(), p.order.CustomerID, store.UserPatch{IsActive: &is}, storetest.By)
		return err
	}
	for name, c := range map[string]struct {
		stop, end func(p *outgoing, officer exchange.Principal) error
	}{
		"freeze": {func(p *outgoing, officer exchange.Principal) error {
			_, err := p.s.Freeze(p.t.Context(), uuid.New(), "why", officer)
			return err
		}, func(p *outgoing, officer exchange.Principal) error {
			return storetest.Agreed(p.t, p.s)(p.s.ProposeLift(p.t.Context(), "why not", officer))
		}},
		"a party is switched off": {
			func(p *outgoing, _ exchange.Principal) error { return active(p, false) },
			func(p *outgoing, _ exchange.Principal) error { return active(p, true) },
		},
		"another database": {
			func(p *outgoing, _ exchange.Principal) error { p.lastReleased(`'elsewhere'`); return nil },
			func(p *outgoing, _ exchange.Principal) error { p.lastReleased(`database_identity()`); return nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := broken(t)
			officer := storetest.PrincipalOf(storetest.User(t, p.s, exchange.RoleAdmin))
			if err := c.stop(p, officer); err != nil {
				t.Fatal(err)
			}
			p.retried(SubmitPayoutInput{})
			stillOpen(t, p.s, p.attempt(), exchange.AttemptUnknown)
			p.checked()
			if p.operator.sent != 0 || p.operator.asked != 1 {
				t.Errorf("while it is stopped it was sent %d times and queried %d times", p.operator.sent, p.operator.asked)
			}
			stillOpen(t, p.s, p.attempt(), exchange.AttemptUnknown)
			if err := c.end(p, officer); err != nil {
				t.Fatal(err)
			}
			p.checked()
			p.checked()
			if p.operator.sent != 1 {
				t.Errorf("afterwards it was sent %d times", p.operator.sent)
			}
			stillOpen(t, p.s, p.attempt(), exchange.AttemptAccepted)
		})
	}
}

// A step that comes back after the time of its try sends nothing, and leaves open whether the run before it did.
func TestAPayoutIsNotSentAgainAfterItsTime(t *testing.T) {
	t.Parallel()
	p := broken(t)
	p.retried(SubmitPayoutInput{Until: time.Now().Add(-time.Second)})
	if p.operator.sent != 0 {
		t.Errorf("it was sent %d times", p.operator.sent)
	}
	stillOpen(t, p.s, p.attempt(), exchange.AttemptUnknown)
}

// While a source claims that an earlier payout was made, the next one is not sent again.
func TestAClaimHoldsAPayoutThatWasBegun(t *testing.T) {
	t.Parallel()
	p := broken(t)
	if err := p.s.DoubtPayout(t.Context(), exchange.OrderObject(p.order.ID), true); err != nil {
		t.Fatal(err)
	}
	p.retried(SubmitPayoutInput{})
	p.checked()
	if p.operator.sent != 0 || p.operator.asked != 1 {
		t.Errorf("it was sent %d times and queried %d times", p.operator.sent, p.operator.asked)
	}
}
