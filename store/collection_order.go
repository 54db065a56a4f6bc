package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Collections of orders that buy crypto.

// orderCollection is an order as an object of collections.
type orderCollection struct {
	o       exchange.Order
	payment exchange.ChainPayment // of the crypto, once it is paid
}

func collectableOrder(o exchange.Order) exchange.Collectable {
	return exchange.Collectable{
		Object: exchange.OrderObject(o.ID), Amount: o.Price.Fiat, Phone: o.PaymentPhone, Reference: o.PaymentReference,
		Status: string(o.Status), Detail: o.StatusDetail, Waits: o.Status == exchange.OrderPending && !o.OffRamp(),
	}
}

func readOrderCollectable(ctx context.Context, s *Store, id uuid.UUID) (exchange.Collectable, error) {
	o, err := s.OrderByID(ctx, id)
	return collectableOrder(o), err
}

func lockOrderCollection(ctx context.Context, t unitTx, id uuid.UUID) (collectionObject, error) {
	o, err := t.lockedOrder(ctx, id)
	return &orderCollection{o: o}, err
}

func (x *orderCollection) parties() (owner, vendor uuid.UUID) { return x.o.CustomerID, x.o.VendorID }

func (x *orderCollection) wants() exchange.Collectable { return collectableOrder(x.o) }

func (x *orderCollection) order() exchange.Order { return x.o }

func (x *orderCollection) wait(ctx context.Context, t unitTx, detail string) error {
	var err error
	x.o, err = t.setDetail(ctx, x.o, detail)
	return err
}

// complete moves the order to processing and approves its chain payment.
func (x *orderCollection) complete(ctx context.Context, t unitTx, a exchange.PaymentAttempt, receipt string) ([]exchange.HoldOp, exchange.AccountRef, error) {
	o := x.o
	o.Status, o.StatusDetail = exchange.OrderProcessing, exchange.WaitSignature
	o.PaymentTxnID, o.MomoReceipt = receipt, receipt
	o.MerchantRequest, o.CheckoutRequest = a.MerchantRequestID, a.CheckoutRequestID
	var err error
	if x.o, err = t.saveOrder(ctx, "order.processing", flow, x.o, o); err == nil {
		x.payment, err = t.approvePayment(ctx, x.o, 1, byPolicy)
	}
	return nil, exchange.House(exchange.AccOrdersInFlight, money.KES), err
}

// underpaid ends the order.
func (x *orderCollection) underpaid(ctx context.Context, t unitTx, receipt string) ([]exchange.HoldOp, error) {
	o := x.o
	o.Status, o.StatusDetail = exchange.OrderFailed, exchange.DetailUnderpaid
	o.PaymentTxnID, o.MomoReceipt = receipt, receipt
	var err error
	if x.o, err = t.saveOrder(ctx, "order.failed", flow, x.o, o); err != nil {
		return nil, err
	}
	back, err := t.returnReservation(ctx, x.o)
	return back.Holds, err
}

// returns is true for what was paid above or below the price, and for money that came after the customer had cancelled the
// order.
func (x *orderCollection) returns(kind exchange.PaymentKind) bool {
	switch kind {
	case exchange.PaidOver, exchange.PaidUnder:
		return true
	case exchange.PaidLate:
		return x.o.Status == exchange.OrderCancelled && x.o.StatusDetail == exchange.DetailCancelled
	case exchange.PaidExact, exchange.PaidDuplicate, exchange.PaidKnown:
	}
	return false
}

func (x *orderCollection) report(ctx context.Context, t unitTx, out *exchange.PaymentOutcome) error {
	var err error
	if out.Kind == exchange.PaidKnown {
		x.payment, _, err = t.paymentOf(ctx, exchange.ForOrder, x.o.ID)
	}
	out.Order, out.ChainPayment = x.o, x.payment
	return err
}
