package workflows_test

import (
	"context"
	"maps"
	"slices"

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

// ApproveTopUp refuses: the network of these tests has no gas wallet.
func (b *book) ApproveTopUp(context.Context, uuid.UUID, money.Amount, int) (exchange.ChainPayment, error) {
	return exchange.ChainPayment{}, exchange.Errorf(exchange.CodeUnsupported, "no gas wallet")
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

func (b *book) SigningHold(_ context.Context, id uuid.UUID) (exchange.SigningHold, error) {
	return tx(b, "SigningHold", func() (exchange.SigningHold, error) {
		if _, alive := b.live(id); alive || b.hold == nil {
			return exchange.HoldNone, nil
		}
		return b.hold(), nil
	})
}

func (b *book) WaitForWatch(context.Context, uuid.UUID) error {
	return run(b, "WaitForWatch", func() error {
		b.waited++
		return nil
	})
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

func (b *book) Refund(_ context.Context, id uuid.UUID) (exchange.Refund, error) {
	return tx(b, "Refund", func() (exchange.Refund, error) {
		if r, ok := b.refunds[id]; ok {
			return r, nil
		}
		return exchange.Refund{}, notFound("refund")
	})
}

func (b *book) Payable(_ context.Context, of exchange.PayoutObject) (exchange.Payable, error) {
	return tx(b, "Payable", func() (exchange.Payable, error) { return b.payable(b.refunds[of.ID]), nil })
}

func (b *book) payable(r exchange.Refund) exchange.Payable {
	return exchange.Payable{
		Object: exchange.PayoutOfRefund(r.ID), OrderID: r.OrderID, Amount: r.Amount, Phone: r.Phone, Reference: "Refund",
		Paid: r.Status == exchange.RefundCompleted, Receipt: r.Receipt, Claimed: r.Claimed,
	}
}

func (b *book) BeginPayout(_ context.Context, of exchange.PayoutObject, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	return tx(b, "BeginPayout", func() (exchange.PaymentAttempt, error) {
		if stored, ok := b.attempts[a.ID]; ok {
			return stored, nil
		}
		id := of.ID
		r := b.refunds[id]
		if b.doubtful && !b.confirmed {
			r.Status, r.Detail = exchange.RefundNeedsReview, exchange.RefundPayerDiffers
			b.refunds[id] = r
			return exchange.PaymentAttempt{}, nil
		}
		if b.float.Cmp(r.Amount) < 0 {
			return a, exchange.Errorf(exchange.CodeInsufficientFunds, "the float is short")
		}
		if err := exchange.RefundMachine.Allow(r.Status, exchange.RefundProcessing); err != nil {
			return a, err
		}
		a.RefundID = id
		b.float = b.float.Sub(r.Amount)
		r.Status = exchange.RefundProcessing
		stored := a
		stored.CallbackToken = ""
		b.refunds[id], b.attempts[a.ID] = r, stored
		return a, nil
	})
}

func (b *book) ConfirmPayee(_ context.Context, id uuid.UUID, _ exchange.Principal) (exchange.Refund, error) {
	return blank[exchange.Refund](b, "ConfirmPayee", func() error {
		if b.refunds[id].Status != exchange.RefundNeedsReview {
			return conflict("the payee is not in question")
		}
		b.confirmed = true
		return nil
	})
}

func (b *book) CompletePayout(_ context.Context, of exchange.PayoutObject, attempt uuid.UUID, o exchange.Observation) (exchange.Payable, error) {
	return blank[exchange.Payable](b, "CompletePayout", func() error {
		id := of.ID
		r := b.refunds[id]
		a, ok := b.attempts[attempt]
		switch {
		case !ok || a.RefundID != id || o.Receipt == "":
			return exchange.Errorf(exchange.CodeConflict, "not a payout of this refund, or without receipt")
		case r.Status == exchange.RefundCompleted:
			return nil
		}
		if err := exchange.RefundMachine.Allow(r.Status, exchange.RefundCompleted); err != nil {
			return err
		}
		r.Status, r.Receipt = exchange.RefundCompleted, o.Receipt
		a.Status, a.Receipt = exchange.AttemptSucceeded, o.Receipt
		b.refunds[id], b.attempts[attempt] = r, a
		if e, ok := b.exceptions[r.ExceptionID]; ok {
			e.Status = exchange.ExcRefunded
			b.exceptions[e.ID] = e
		}
		return nil
	})
}

func (b *book) SettlePayout(ctx context.Context, of exchange.PayoutObject, attempt uuid.UUID, o exchange.Observation, _ exchange.Principal) error {
	b.mu.Lock()
	r, id, reference := b.refunds[of.ID], of.ID, o.Receipt
	b.mu.Unlock()
	if r.Status == exchange.RefundProcessing {
		_, err := b.CompletePayout(ctx, of, attempt, o)
		return err
	}
	return run(b, "SettlePayout", func() error {
		if r.Status == exchange.RefundCompleted && r.Receipt == reference {
			return nil
		}
		if r.Status != exchange.RefundNeedsReview && r.Status != exchange.RefundPending {
			return conflict("the refund is %s", r.Status)
		}
		r.Status, r.Receipt = exchange.RefundCompleted, reference
		b.refunds[id] = r
		if e, ok := b.exceptions[r.ExceptionID]; ok {
			e.Status = exchange.ExcRefunded
			b.exceptions[e.ID] = e
		}
		return nil
	})
}

func (b *book) FailPayout(_ context.Context, of exchange.PayoutObject, _ string) (exchange.Payable, error) {
	return tx(b, "FailPayout", func() (exchange.Payable, error) {
		id := of.ID
		r := b.refunds[id]
		if r.Status != exchange.RefundProcessing {
			return b.payable(r), nil
		}
		for _, a := range b.attempts {
			if a.RefundID == id && open(a) {
				return exchange.Payable{}, conflict("a payout may still move money")
			}
		}
		if err := exchange.RefundMachine.Allow(r.Status, exchange.RefundFailed); err != nil {
			return exchange.Payable{}, err
		}
		b.float = b.float.Add(r.Amount)
		r.Status = exchange.RefundNeedsReview
		b.refunds[id] = r
		return b.payable(r), nil
	})
}

func (b *book) DoubtPayout(context.Context, exchange.PayoutObject, bool) error { return nil }

func (b *book) DeclaredUnpaid(context.Context, uuid.UUID) (bool, error) {
	return tx(b, "DeclaredUnpaid", func() (bool, error) { return b.declared, nil })
}

func (b *book) ReceiptNeedsSecond(context.Context, exchange.PayoutObject, string) (bool, error) {
	return tx(b, "ReceiptNeedsSecond", func() (bool, error) { return b.second, nil })
}

func (b *book) CryptoIsHere(context.Context, uuid.UUID) (bool, error) {
	return false, nil
}

func (b *book) KeepOrderPayout(context.Context, uuid.UUID, exchange.Principal) (exchange.OrderPayout, error) {
	return exchange.OrderPayout{}, conflict("the order has no payout")
}

func (b *book) Payouts(context.Context, uuid.UUID) ([]exchange.PaymentAttempt, error) {
	return tx(b, "Payouts", func() ([]exchange.PaymentAttempt, error) {
		return slices.Collect(maps.Values(b.attempts)), nil
	})
}

func (b *book) RefundException(_ context.Context, id uuid.UUID, _ exchange.Principal) (exchange.Refund, error) {
	return tx(b, "RefundException", func() (exchange.Refund, error) {
		e := b.exceptions[id]
		refundID := uuid.NewSHA1(id, []byte("refund"))
		if r, ok := b.refunds[refundID]; ok {
			return r, nil
		}
		if err := exchange.ExceptionMachine.Allow(e.Status, exchange.ExcRefunding); err != nil {
			return exchange.Refund{}, err
		}
		e.Status = exchange.ExcRefunding
		b.exceptions[id] = e
		return b.openRefund(refundID, b.orders[e.OrderID], b.attempts[e.AttemptID], id, e.Amount), nil
	})
}

func (b *book) PaidTwiceBy(_ context.Context, attempt uuid.UUID) (exchange.PaymentException, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.exceptions {
		if x.AttemptID == attempt && x.Kind == exchange.ExcPaidTwice {
			return x, true, nil
		}
	}
	return exchange.PaymentException{}, false, nil
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
