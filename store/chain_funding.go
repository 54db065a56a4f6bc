package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// fundingPayment funds an order from a wallet in our custody. Until it is given up, its order is neither closed nor
// funded otherwise, so that the crypto always has an order to go to.
type fundingPayment struct{ order exchange.Order }

func (f *fundingPayment) parties() (owner, vendor uuid.UUID) {
	return f.order.CustomerID, f.order.VendorID
}

func (f *fundingPayment) follow(context.Context, unitTx, paymentStage, string) error { return nil }

// spend moves the crypto to the escrow wallet, holds all of it there for the order, and moves the order on. Deposits
// do this in a separate step. Other objects change no row in spend; this one has to know the amount to hold.
func (f *fundingPayment) spend(ctx context.Context, t unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	posting, lines, err := t.spendReserved(ctx, p)
	if err != nil {
		return posting, lines, err
	}
	o, held, err := t.takePaid(ctx, f.order, p)
	f.order = o
	posting.Holds = append(posting.Holds, held.Holds...)
	return posting, lines, err
}

// approveFunding approves, while its order is opened, the payment that funds the order from the wallet in our custody
// that its customer chose. It returns the hold that reserves the crypto there from now on; CancelFunding releases it.
func (t unitTx) approveFunding(ctx context.Context, o exchange.Order) (exchange.HoldOp, error) {
	hold, err := uuid.NewV7()
	if err != nil {
		return exchange.HoldOp{}, err
	}
	_, err = t.addPayment(ctx, flow, &fundingPayment{order: o}, exchange.ChainPayment{
		Purpose: exchange.ForFunding, ObjectID: o.ID, Network: o.Network, Amount: o.Price.Crypto, WalletID: o.FundWalletID, ToAddress: o.EscrowAddress,
		HoldID: hold, ApprovedBy: byPolicy,
	})
	return exchange.HoldOp{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: hold, Key: "funding:" + o.ID.String(), Account: exchange.Owned(exchange.AccWalletBalance, o.FundWalletID, o.Asset), Amount: o.Price.Crypto,
		ObjectType: "order", ObjectID: o.ID,
	}}, err
}

// CancelFunding gives up the payment that funds an order, and frees its reservation. CodeStateConflict when a
// transaction of it may move or has moved the crypto. An order without an open funding payment is left as it is.
func (s *Store) CancelFunding(ctx context.Context, orderID uuid.UUID, by exchange.Principal) error {
	_, err := change(ctx, s, "funding", orderID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		var none exchange.Posting
		if _, err := t.lockedOrder(ctx, orderID); err != nil {
			return struct{}{}, none, err
		}
		free, err := t.cancelFunding(ctx, orderID, by)
		return struct{}{}, free, err
	})
	return err
}

// cancelFunding does so for a locked order.
func (t unitTx) cancelFunding(ctx context.Context, orderID uuid.UUID, by exchange.Principal) (exchange.Posting, error) {
	p, found, err := t.paymentOf(ctx, exchange.ForFunding, orderID)
	if err != nil || !found || p.Status == exchange.ChainCancelled {
		return exchange.Posting{}, err
	}
	if err := t.abandonPayment(ctx, p.ID, "cancelled", by); err != nil {
		return exchange.Posting{}, err
	}
	if err := t.endRelease(ctx, exchange.ReleaseFunding, orderID); err != nil {
		return exchange.Posting{}, err
	}
	return exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: p.HoldID}}}}, nil
}

// abandonPayment ends a payment that has no live transaction, so that it never moves anything.
func (t unitTx) abandonPayment(ctx context.Context, id uuid.UUID, detail string, by exchange.Principal) error {
	object, p, err := t.objectOf(ctx, id)
	if err != nil {
		return err
	}
	_, alive, err := t.liveAttempt(ctx, p.ID)
	if err != nil {
		return err
	}
	if alive || (p.Status != exchange.ChainParked && p.Status != exchange.ChainApproved) {
		return exchange.Errorf(exchange.CodeStateConflict, "The crypto may already be on its way.")
	}
	if err := t.mayGiveUp(ctx, p.ID); err != nil {
		return err
	}
	if p.Status == exchange.ChainApproved {
		parked := p
		parked.Status, parked.Detail = exchange.ChainParked, detail
		if p, err = t.savePayment(ctx, by, object, p, parked); err != nil {
			return err
		}
	}
	cancelled := p
	cancelled.Status = exchange.ChainCancelled
	_, err = t.savePayment(ctx, by, object, p, cancelled)
	return err
}
