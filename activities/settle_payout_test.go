package activities

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
)

// attemptsOf is a database with payouts of an object, newest first, and an officer's command.
type attemptsOf struct {
	PayoutStore
	attempts []exchange.PaymentAttempt
	settled  uuid.UUID
}

func (s *attemptsOf) UseCommand(context.Context, uuid.UUID, string, uuid.UUID) (exchange.OperatorCommand, error) {
	return exchange.OperatorCommand{Note: "UKLMANUAL1"}, nil
}

func (s *attemptsOf) Acting(context.Context, exchange.Asked) (exchange.Principal, error) {
	return exchange.Principal{}, nil
}

func (s *attemptsOf) ReceiptNeedsSecond(context.Context, exchange.MomoObject, string) (bool, error) {
	return false, nil
}

func (s *attemptsOf) PayoutsOf(context.Context, exchange.MomoObject) ([]exchange.PaymentAttempt, error) {
	return s.attempts, nil
}

func (s *attemptsOf) SettlePayout(_ context.Context, _ exchange.MomoObject, id uuid.UUID, _ exchange.Observation, _ exchange.Principal) error {
	s.settled = id
	return nil
}

// A receipt settles the attempt that the flow names, or else the open one of the object, or else its newest.
func TestReceiptSettlesTheOpenOrNewestAttempt(t *testing.T) {
	of := uuid.New()
	attempt := func(try int, s exchange.AttemptStatus) exchange.PaymentAttempt {
		return exchange.PaymentAttempt{ID: PayoutID(of, try), Object: exchange.RefundObject(of), Direction: exchange.Payout, Status: s}
	}
	for name, c := range map[string]struct {
		named    uuid.UUID
		attempts []exchange.PaymentAttempt
		want     uuid.UUID
	}{
		"named":  {PayoutID(of, 1), []exchange.PaymentAttempt{attempt(2, exchange.AttemptAccepted)}, PayoutID(of, 1)},
		"open":   {uuid.Nil, []exchange.PaymentAttempt{attempt(3, exchange.AttemptRefused), attempt(2, exchange.AttemptAccepted), attempt(1, exchange.AttemptFailed)}, PayoutID(of, 2)},
		"newest": {uuid.Nil, []exchange.PaymentAttempt{attempt(3, exchange.AttemptFailed), attempt(2, exchange.AttemptFailed)}, PayoutID(of, 3)},
		"none":   {uuid.Nil, nil, uuid.Nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &attemptsOf{attempts: c.attempts}
			env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
			p := &Payouts{Store: s, Now: time.Now}
			env.RegisterActivity(p)
			_, err := env.ExecuteActivity(p.SettlePayout, SettlePayoutInput{Object: exchange.RefundObject(of), AttemptID: c.named})
			if err != nil || s.settled != c.want {
				t.Errorf("settled %s, want %s; %v", s.settled, c.want, err)
			}
		})
	}
}
