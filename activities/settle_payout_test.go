package activities

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
)

// attemptsOfOrder is a database with payouts of an order and its refunds, newest first, and an officer's command.
type attemptsOfOrder struct {
	PayoutStore
	attempts []exchange.PaymentAttempt
	settled  uuid.UUID
}

func (s *attemptsOfOrder) UseCommand(context.Context, uuid.UUID, string, uuid.UUID) (exchange.OperatorCommand, error) {
	return exchange.OperatorCommand{Note: "UKLMANUAL1"}, nil
}

func (s *attemptsOfOrder) ReceiptNeedsSecond(context.Context, exchange.MomoObject, string) (bool, error) {
	return false, nil
}

func (s *attemptsOfOrder) Payable(context.Context, exchange.MomoObject) (exchange.Payable, error) {
	return exchange.Payable{}, nil
}

func (s *attemptsOfOrder) Payouts(context.Context, uuid.UUID) ([]exchange.PaymentAttempt, error) {
	return s.attempts, nil
}

func (s *attemptsOfOrder) SettlePayout(_ context.Context, _ exchange.MomoObject, id uuid.UUID, _ exchange.Observation, _ exchange.Principal) error {
	s.settled = id
	return nil
}

// A receipt settles the attempt that the flow names, or else the open one of the object, or else its newest.
func TestReceiptSettlesTheOpenOrNewestAttempt(t *testing.T) {
	object, order := uuid.New(), uuid.New()
	attempt := func(refund uuid.UUID, try int, s exchange.AttemptStatus) exchange.PaymentAttempt {
		return exchange.PaymentAttempt{ID: PayoutID(object, try), OrderID: order, Object: exchange.RefundObject(refund), Direction: exchange.Payout, Status: s}
	}
	of, other := object, uuid.New()
	for name, c := range map[string]struct {
		named    uuid.UUID
		attempts []exchange.PaymentAttempt
		want     uuid.UUID
	}{
		"named":   {PayoutID(of, 1), []exchange.PaymentAttempt{attempt(of, 2, exchange.AttemptAccepted)}, PayoutID(of, 1)},
		"open":    {uuid.Nil, []exchange.PaymentAttempt{attempt(of, 3, exchange.AttemptRefused), attempt(of, 2, exchange.AttemptAccepted), attempt(of, 1, exchange.AttemptFailed)}, PayoutID(of, 2)},
		"newest":  {uuid.Nil, []exchange.PaymentAttempt{attempt(of, 3, exchange.AttemptFailed), attempt(of, 2, exchange.AttemptFailed)}, PayoutID(of, 3)},
		"another": {uuid.Nil, []exchange.PaymentAttempt{attempt(other, 4, exchange.AttemptAccepted), attempt(of, 1, exchange.AttemptFailed)}, PayoutID(of, 1)},
		"none":    {uuid.Nil, nil, uuid.Nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &attemptsOfOrder{attempts: c.attempts}
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
