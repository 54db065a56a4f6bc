package workflows_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// book is the rows of payouts of shillings, in memory, for flows that don't run on the store yet: each
// method is one transaction, which a fault can hit before or after its effect. The embedded interfaces are nil: a flow
// that calls another of their methods fails its test.
type book struct {
	activities.OrderStore
	activities.PayoutStore
	activities.RefundStore

	mu         sync.Mutex
	now        func() time.Time
	fault      func(call string) error // called before the effect
	lost       func(call string) error // called after it
	float      money.Amount            // for payouts
	declared   bool                    // two officers declared a payout unpaid
	second     bool                    // a receipt needs a second officer
	attempts   map[uuid.UUID]exchange.PaymentAttempt
	callbacks  map[uuid.UUID][]exchange.MomoCallback
	queries    map[uuid.UUID][]string // tickets of the queries about a payout
	exceptions map[uuid.UUID]exchange.PaymentException
	commands   map[uuid.UUID]exchange.OperatorCommand
	parked     map[string]exchange.ParkedFlow
}

func newBook() *book {
	return &book{
		now: time.Now, float: money.Must(money.KES, "100000"),
		attempts: map[uuid.UUID]exchange.PaymentAttempt{}, callbacks: map[uuid.UUID][]exchange.MomoCallback{}, queries: map[uuid.UUID][]string{},
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

func run(b *book, call string, do func() error) error {
	_, err := tx(b, call, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func notFound(what string) error { return exchange.Errorf(exchange.CodeNotFound, "no %s", what) }

func conflict(format string, args ...any) error {
	return exchange.Errorf(exchange.CodeStateConflict, format, args...)
}

// SetOrderDetail changes nothing: the orders of these payouts have no rows.
func (b *book) SetOrderDetail(context.Context, uuid.UUID, string) error {
	return run(b, "SetOrderDetail", func() error { return nil })
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

func (b *book) SavePayoutQuery(_ context.Context, id uuid.UUID, ticket string) error {
	_, err := tx(b, "SavePayoutQuery", func() (any, error) {
		b.queries[id] = append(b.queries[id], ticket)
		return nil, nil
	})
	return err
}

func (b *book) PayoutQueries(_ context.Context, id uuid.UUID) ([]string, error) {
	return tx(b, "PayoutQueries", func() ([]string, error) { return append([]string{}, b.queries[id]...), nil })
}

func (b *book) Callbacks(_ context.Context, id uuid.UUID) ([]exchange.MomoCallback, error) {
	return tx(b, "Callbacks", func() ([]exchange.MomoCallback, error) {
		return append([]exchange.MomoCallback{}, b.callbacks[id]...), nil
	})
}

func (b *book) DeclaredUnpaid(context.Context, uuid.UUID) (bool, error) {
	return tx(b, "DeclaredUnpaid", func() (bool, error) { return b.declared, nil })
}

func (b *book) ClaimDeclined(context.Context, uuid.UUID) (time.Time, error) {
	return tx(b, "ClaimDeclined", func() (time.Time, error) { return time.Time{}, nil })
}

func (b *book) ReceiptNeedsSecond(context.Context, exchange.MomoObject, string) (bool, error) {
	return tx(b, "ReceiptNeedsSecond", func() (bool, error) { return b.second, nil })
}

func (b *book) Payouts(context.Context, uuid.UUID) ([]exchange.PaymentAttempt, error) {
	return tx(b, "Payouts", func() ([]exchange.PaymentAttempt, error) {
		return slices.Collect(maps.Values(b.attempts)), nil
	})
}

func (b *book) ResolveException(_ context.Context, id uuid.UUID, to exchange.ExceptionStatus, note string, _ exchange.Principal) (exchange.PaymentException, error) {
	return tx(b, "ResolveException", func() (exchange.PaymentException, error) {
		e := b.exceptions[id]
		if e.Status == to || e.Status == exchange.ExcCredited || e.Status == exchange.ExcWrittenOff { // by its own verb
			return e, nil
		}
		if err := exchange.ExceptionMachine.Allow(e.Status, to); err != nil {
			return e, err
		}
		e.Status, e.Note = to, note
		b.exceptions[id] = e
		return e, nil
	})
}
