package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// refunded is what RefundOrder returns.
type refunded struct {
	order  exchange.Order
	refund exchange.Refund
}

const payingCollection = `SELECT receipt, attempt_id FROM collections WHERE object_type = 'order' AND object_id = $1 AND kind IN ('exact', 'over')`

// RefundOrder gives up delivering a paid order and opens the refund of its price. CodeStateConflict while the crypto
// may still arrive: the chain payment must be parked, cancelled, or approved without a live transaction, and is
// cancelled with the order. CodeStateConflict too while an unsettled outgoing movement may be the order's crypto. A
// repeated call returns the existing refund.
func (s *Store) RefundOrder(ctx context.Context, id uuid.UUID, reason string, by exchange.Principal) (exchange.Order, exchange.Refund, error) {
	out, err := change(ctx, s, "order", id, func(ctx context.Context, t unitTx) (refunded, exchange.Posting, error) {
		var none exchange.Posting
		before, err := t.lockedOrder(ctx, id)
		if err != nil {
			return refunded{}, none, err
		}
		if old, found, err := t.maybeRefund(ctx, readRefundOfOrder, id); err != nil || found {
			return refunded{before, old}, none, err
		}
		o := before
		o.Status, o.StatusDetail = exchange.OrderFailed, exchange.DetailRefundOpen
		if before.Status != exchange.OrderProcessing && before.Status != exchange.OrderConfirming {
			return refunded{}, none, exchange.Errorf(exchange.CodeStateConflict, "An order that is %s has nothing to refund.", before.Status)
		}
		if _, err := t.cancelPayment(ctx, before, "refund", by); err != nil {
			return refunded{}, none, err
		}
		if o, err = t.saveOrder(ctx, "order.failed", by, before, o); err != nil {
			return refunded{}, none, err
		}
		posting, err := t.returnReservation(ctx, o)
		if err != nil {
			return refunded{}, none, err
		}
		refund, err := t.refundPrice(ctx, o, reason, by)
		posting.Entries = []exchange.Entry{{
			Key: "order:" + id.String() + ":refund", Kind: "order.refund", ObjectType: "order", ObjectID: id,
			Lines: []exchange.Line{
				exchange.Debit(exchange.House(exchange.AccOrdersInFlight, money.KES), o.Price.Fiat),
				exchange.Credit(exchange.House(exchange.AccRefundsDue, money.KES), o.Price.Fiat),
			},
		}}
		return refunded{o, refund}, posting, err
	})
	return out.order, out.refund, err
}

func (t unitTx) refundPrice(ctx context.Context, o exchange.Order, reason string, by exchange.Principal) (exchange.Refund, error) {
	var c struct {
		Receipt   string
		AttemptID uuid.UUID
	}
	if err := t.Get(ctx, &c, payingCollection, o.ID); err != nil {
		return exchange.Refund{}, translate(err, "collection")
	}
	var a exchange.PaymentAttempt
	if err := t.Get(ctx, &a, readAttempt, c.AttemptID); err != nil {
		return exchange.Refund{}, translate(err, "payment attempt")
	}
	return t.openRefund(ctx, o, exchange.Refund{OrderID: o.ID, AttemptID: c.AttemptID, Amount: o.Price.Fiat, Phone: a.Phone, Reason: reason}, c.Receipt, by)
}

// cancelPayment makes sure that the crypto of an order's latest payment never leaves.
func (t unitTx) cancelPayment(ctx context.Context, o exchange.Order, why string, by exchange.Principal) (exchange.ChainPayment, error) {
	p, found, err := t.paymentOf(ctx, exchange.ForOrder, o.ID)
	if err != nil || !found || p.Status == exchange.ChainCancelled {
		return p, err
	}
	object, p, err := t.objectOf(ctx, p.ID)
	if err != nil {
		return p, err
	}
	_, alive, err := t.liveAttempt(ctx, p.ID)
	if err != nil {
		return p, err
	}
	if alive || (p.Status != exchange.ChainParked && p.Status != exchange.ChainApproved) {
		return p, exchange.Errorf(exchange.CodeStateConflict, "The order's crypto may already be on its way, so its payment can't be given up.")
	}
	if err := t.mayGiveUp(ctx, p.ID); err != nil {
		return p, err
	}
	if p.Status == exchange.ChainApproved {
		parked := p
		parked.Status, parked.Detail = exchange.ChainParked, why
		if p, err = t.savePayment(ctx, by, object, p, parked); err != nil {
			return p, err
		}
	}
	cancelled := p
	cancelled.Status, cancelled.Detail = exchange.ChainCancelled, why
	return t.savePayment(ctx, by, object, p, cancelled)
}
