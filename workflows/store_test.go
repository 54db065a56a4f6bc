package workflows_test

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// book is the rows of transfers and of payouts of shillings, in memory, for flows that don't run on the store yet: each
// method is one transaction, which a fault can hit before or after its effect. The embedded interfaces are nil: a flow
// that calls another of their methods fails its test.
type book struct {
	activities.OrderStore
	activities.PayoutStore
	activities.RefundStore
	activities.SigningStore
	activities.ChainStore

	mu         sync.Mutex
	now        func() time.Time
	fault      func(call string) error // called before the effect
	lost       func(call string) error // called after it
	float      money.Amount            // for payouts
	declared   bool                    // two officers declared a payout unpaid
	second     bool                    // a receipt needs a second officer
	orders     map[uuid.UUID]exchange.Order
	attempts   map[uuid.UUID]exchange.PaymentAttempt
	callbacks  map[uuid.UUID][]exchange.MomoCallback
	payments   map[uuid.UUID]exchange.ChainPayment
	signed     map[uuid.UUID]exchange.ChainAttempt
	exceptions map[uuid.UUID]exchange.PaymentException
	commands   map[uuid.UUID]exchange.OperatorCommand
	parked     map[string]exchange.ParkedFlow
}

func newBook() *book {
	return &book{
		now: time.Now, float: money.Must(money.KES, "100000"), orders: map[uuid.UUID]exchange.Order{},
		attempts: map[uuid.UUID]exchange.PaymentAttempt{}, callbacks: map[uuid.UUID][]exchange.MomoCallback{},
		payments: map[uuid.UUID]exchange.ChainPayment{}, signed: map[uuid.UUID]exchange.ChainAttempt{},
		exceptions: map[uuid.UUID]exchange.PaymentException{}, commands: map[uuid.UUID]exchange.OperatorCommand{},
	}
}

// tx runs one transaction with its faults.
func tx[T any](b *book, call string, do func() (T, error)) (T, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var zero T
	if b.fault != nil {
		if err := b.fault(call); err != nil {
			return zero, err
		}
	}
	out, err := do()
	if err == nil && b.lost != nil {
		if err := b.lost(call); err != nil {
			return zero, err
		}
	}
	return out, err
}

// blank is run for a method whose result no flow uses.
func blank[T any](b *book, call string, do func() error) (T, error) {
	return tx(b, call, func() (none T, err error) { return none, do() })
}

func run(b *book, call string, do func() error) error {
	_, err := tx(b, call, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func notFound(what string) error { return exchange.Errorf(exchange.CodeNotFound, "no %s", what) }

func conflict(format string, args ...any) error {
	return exchange.Errorf(exchange.CodeStateConflict, format, args...)
}

// move changes an order's status where the state machine allows it.
func (b *book) move(id uuid.UUID, to exchange.OrderStatus, detail string) (exchange.Order, error) {
	o := b.orders[id]
	if o.Status != to {
		if err := exchange.OnRampMachine.Allow(o.Status, to); err != nil {
			return o, err
		}
	}
	o.Status, o.StatusDetail = to, detail
	b.orders[id] = o
	return o, nil
}

func (b *book) SetOrderDetail(_ context.Context, id uuid.UUID, detail string) error {
	return run(b, "SetOrderDetail", func() error {
		o := b.orders[id]
		if exchange.OnRampMachine.Terminal(o.Status) {
			return nil
		}
		o.StatusDetail = detail
		b.orders[id] = o
		return nil
	})
}

func (b *book) UseCommand(_ context.Context, id uuid.UUID, kind string, object uuid.UUID) (exchange.OperatorCommand, error) {
	return tx(b, "UseCommand", func() (exchange.OperatorCommand, error) {
		c, ok := b.commands[id]
		if !ok || c.ObjectType != kind || c.ObjectID != object {
			return exchange.OperatorCommand{}, notFound("command")
		}
		if c.UsedAt.IsZero() {
			c.UsedAt = b.now()
			b.commands[id] = c
		}
		return c, nil
	})
}

func (b *book) Attempt(_ context.Context, id uuid.UUID) (exchange.PaymentAttempt, error) {
	return tx(b, "Attempt", func() (exchange.PaymentAttempt, error) {
		if a, ok := b.attempts[id]; ok {
			return a, nil
		}
		return exchange.PaymentAttempt{}, notFound("attempt")
	})
}

func (b *book) RecordSubmission(_ context.Context, id uuid.UUID, s exchange.Submission) (exchange.PaymentAttempt, error) {
	return tx(b, "RecordSubmission", func() (exchange.PaymentAttempt, error) {
		a := b.attempts[id]
		to := map[exchange.SubmissionState]exchange.AttemptStatus{
			exchange.Accepted: exchange.AttemptAccepted, exchange.Refused: exchange.AttemptRefused, exchange.Unknown: exchange.AttemptUnknown,
		}[s.State]
		if s.Refs.CheckoutRequestID != "" {
			a.CheckoutRequestID, a.MerchantRequestID = s.Refs.CheckoutRequestID, s.Refs.MerchantRequestID
		}
		if exchange.AttemptMachine.Allow(a.Status, to) == nil {
			a.Status, a.ResultCode, a.ResultClass = to, s.Code, s.Class
		}
		a.SubmittedAt = b.now()
		b.attempts[id] = a
		return a, nil
	})
}

func (b *book) RecordFailure(_ context.Context, id uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error) {
	return tx(b, "RecordFailure", func() (exchange.PaymentAttempt, error) {
		a := b.attempts[id]
		if a.Status == exchange.AttemptFailed {
			return a, nil
		}
		if err := exchange.AttemptMachine.Allow(a.Status, exchange.AttemptFailed); err != nil {
			return a, err
		}
		a.Status, a.Soft, a.ResultCode, a.ResultClass = exchange.AttemptFailed, o.Soft, o.Code, o.Class
		b.attempts[id] = a
		return a, nil
	})
}

func (b *book) SaveCallback(c exchange.MomoCallback) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.callbacks[c.AttemptID] = append(b.callbacks[c.AttemptID], c)
}

func (b *book) Callbacks(_ context.Context, id uuid.UUID) ([]exchange.MomoCallback, error) {
	return tx(b, "Callbacks", func() ([]exchange.MomoCallback, error) {
		return append([]exchange.MomoCallback{}, b.callbacks[id]...), nil
	})
}
