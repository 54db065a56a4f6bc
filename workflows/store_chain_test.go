package workflows_test

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

func (b *book) ChainPayment(_ context.Context, id uuid.UUID) (exchange.ChainPayment, error) {
	return tx(b, "ChainPayment", func() (exchange.ChainPayment, error) {
		if p, ok := b.payments[id]; ok {
			return p, nil
		}
		return exchange.ChainPayment{}, notFound("chain payment")
	})
}

func (b *book) live(payment uuid.UUID) (exchange.ChainAttempt, bool) {
	for _, a := range b.signed {
		if a.PaymentID == payment && a.Alive() {
			return a, true
		}
	}
	return exchange.ChainAttempt{}, false
}

func (b *book) LiveAttempt(_ context.Context, payment uuid.UUID) (exchange.ChainAttempt, bool, error) {
	type both struct {
		a  exchange.ChainAttempt
		ok bool
	}
	out, err := tx(b, "LiveAttempt", func() (both, error) {
		a, ok := b.live(payment)
		return both{a, ok}, nil
	})
	return out.a, out.ok, err
}

func (b *book) LiveAttempts(ctx context.Context, payment uuid.UUID) ([]exchange.ChainAttempt, error) {
	a, ok, err := b.LiveAttempt(ctx, payment)
	if err != nil || !ok {
		return nil, err
	}
	return []exchange.ChainAttempt{a}, nil
}

func (b *book) AttemptAt(context.Context, uuid.UUID, uint64) (exchange.ChainAttempt, bool, error) {
	return exchange.ChainAttempt{}, false, nil
}

func (b *book) SaveSignedAttempt(_ context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	return tx(b, "SaveSignedAttempt", func() (exchange.ChainAttempt, error) {
		if l, ok := b.live(a.PaymentID); ok {
			return l, nil
		}
		p := b.payments[a.PaymentID]
		if err := exchange.ChainPaymentMachine.Allow(p.Status, exchange.ChainSigned); err != nil {
			return a, err
		}
		p.Status = exchange.ChainSigned
		b.payments[p.ID], b.signed[a.ID] = p, a
		return a, nil
	})
}

// step moves a chain payment, its transaction and its order together.
func (b *book) step(id uuid.UUID, tx exchange.ChainAttemptStatus, to exchange.ChainPaymentStatus, order exchange.OrderStatus) error {
	a := b.signed[id]
	p := b.payments[a.PaymentID]
	if p.Status != to {
		if err := exchange.ChainPaymentMachine.Allow(p.Status, to); err != nil {
			return err
		}
	}
	a.Status, p.Status = tx, to
	b.signed[id], b.payments[p.ID] = a, p
	o := b.orders[p.ObjectID]
	if order != "" && o.Status != order {
		if _, err := b.move(o.ID, order, "chain"); err != nil {
			return err
		}
	}
	return nil
}

func (b *book) RecordBroadcast(_ context.Context, id uuid.UUID, code string, accepted bool) (exchange.ChainPayment, error) {
	return tx(b, "RecordBroadcast", func() (exchange.ChainPayment, error) {
		a := b.signed[id]
		a.Broadcasts++
		a.LastCode = code
		b.signed[id] = a
		if !accepted || a.Status == exchange.TxIncluded {
			return b.payments[a.PaymentID], nil
		}
		err := b.step(id, exchange.TxBroadcast, exchange.ChainBroadcast, exchange.OrderConfirming)
		return b.payments[a.PaymentID], err
	})
}

func (b *book) RecordIncluded(_ context.Context, id uuid.UUID, block uint64, blockID string) (exchange.ChainPayment, error) {
	return blank[exchange.ChainPayment](b, "RecordIncluded", func() error {
		a := b.signed[id]
		a.Block, a.BlockID = block, blockID
		b.signed[id] = a
		return b.step(id, exchange.TxIncluded, exchange.ChainIncluded, exchange.OrderConfirming)
	})
}

func (b *book) RecordVanished(_ context.Context, id uuid.UUID) (exchange.ChainPayment, error) {
	return blank[exchange.ChainPayment](b, "RecordVanished", func() error {
		return b.step(id, exchange.TxBroadcast, exchange.ChainBroadcast, exchange.OrderProcessing)
	})
}

func (b *book) RecordExpired(_ context.Context, id uuid.UUID, _ string) (exchange.ChainPayment, error) {
	return blank[exchange.ChainPayment](b, "RecordExpired", func() error {
		return b.step(id, exchange.TxExpired, exchange.ChainApproved, exchange.OrderProcessing)
	})
}

func (b *book) RecordFinal(_ context.Context, id uuid.UUID, ok bool, _ uint64, _ string, _ money.Amount, code string) (exchange.ChainPayment, error) {
	return tx(b, "RecordFinal", func() (exchange.ChainPayment, error) {
		a := b.signed[id]
		var err error
		if ok {
			err = b.step(id, exchange.TxSucceeded, exchange.ChainCompleted, "")
		} else {
			err = b.step(id, exchange.TxFailed, exchange.ChainParked, "")
		}
		p := b.payments[a.PaymentID]
		p.TxID, p.Detail = a.TxID, code
		b.payments[p.ID] = p
		return p, err
	})
}

func (b *book) SigningHold(context.Context, uuid.UUID) (exchange.SigningHold, error) {
	return exchange.HoldNone, nil
}

func (b *book) ParkChainPayment(_ context.Context, id uuid.UUID, detail string) (exchange.ChainPayment, error) {
	return blank[exchange.ChainPayment](b, "ParkChainPayment", func() error {
		p := b.payments[id]
		if _, alive := b.live(id); alive {
			return conflict("a transaction is alive")
		}
		p.Status, p.Detail = exchange.ChainParked, detail
		b.payments[id] = p
		return nil
	})
}

func (b *book) RetryChainPayment(_ context.Context, id uuid.UUID, _ exchange.Principal) (exchange.ChainPayment, error) {
	return blank[exchange.ChainPayment](b, "RetryChainPayment", func() error {
		p := b.payments[id]
		if err := exchange.ChainPaymentMachine.Allow(p.Status, exchange.ChainApproved); err != nil {
			return err
		}
		p.Status = exchange.ChainApproved
		b.payments[id] = p
		return nil
	})
}

func (b *book) DeclaredUnpaid(context.Context, uuid.UUID) (bool, error) {
	return tx(b, "DeclaredUnpaid", func() (bool, error) { return b.declared, nil })
}

func (b *book) ClaimDeclined(context.Context, uuid.UUID) (time.Time, error) {
	return tx(b, "ClaimDeclined", func() (time.Time, error) { return time.Time{}, nil })
}

func (b *book) ReceiptNeedsSecond(context.Context, exchange.PayoutObject, string) (bool, error) {
	return tx(b, "ReceiptNeedsSecond", func() (bool, error) { return b.second, nil })
}

func (b *book) Payouts(context.Context, uuid.UUID) ([]exchange.PaymentAttempt, error) {
	return tx(b, "Payouts", func() ([]exchange.PaymentAttempt, error) {
		return slices.Collect(maps.Values(b.attempts)), nil
	})
}

func (b *book) ResolveException(_ context.Context, id uuid.UUID, to exchange.ExceptionStatus, note string, _ exchange.Principal) (exchange.PaymentException, error) {
	return blank[exchange.PaymentException](b, "ResolveException", func() error {
		e := b.exceptions[id]
		if e.Status == to || e.Status == exchange.ExcCredited || e.Status == exchange.ExcWrittenOff { // by its own verb
			return nil
		}
		if err := exchange.ExceptionMachine.Allow(e.Status, to); err != nil {
			return err
		}
		e.Status, e.Note = to, note
		b.exceptions[id] = e
		return nil
	})
}
