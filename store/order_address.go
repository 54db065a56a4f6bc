package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// The corrected address of a purchase whose crypto can't be sent to the order's. One officer proposes it and another
// confirms it, as a kind of control change. The confirmation gives the parked payment up and approves another one, out
// of the same hold.

// addressTerms is a proposed address as officers and the database's guard read it.
type addressTerms struct {
	OrderID       uuid.UUID `json:"order_id"`
	WalletAddress string    `json:"wallet_address"`
	Note          string    `json:"note"`
}

// addressWas is what a proposed address replaces.
type addressWas struct {
	WalletAddress string    `json:"wallet_address"`
	PaymentID     uuid.UUID `json:"payment_id"`
}

// ProposeOrderAddress proposes another address for the crypto of a purchase. It takes effect when a second officer
// confirms it. CodeInvalid for an address that no order could have, CodeStateConflict while the order's payment is not
// parked.
func (s *Store) ProposeOrderAddress(ctx context.Context, orderID uuid.UUID, address, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "order", func(t unitTx) error {
		_, was, err := t.correctable(ctx, orderID, address)
		if err != nil {
			return err
		}
		proposed, err = t.propose(ctx, exchange.ControlOrderAddress, uuid.Nil, was, addressTerms{OrderID: orderID, WalletAddress: address, Note: note}, by)
		return err
	})
	return proposed, err
}

// correctable locks an order whose crypto may go to another address, and returns it with what the address replaces.
func (t unitTx) correctable(ctx context.Context, orderID uuid.UUID, address string) (exchange.Order, addressWas, error) {
	o, err := t.lockedOrder(ctx, orderID)
	if err != nil {
		return o, addressWas{}, err
	}
	p, found, err := t.paymentOf(ctx, exchange.ForOrder, orderID)
	if err != nil {
		return o, addressWas{}, err
	}
	if !found || p.Status != exchange.ChainParked {
		return o, addressWas{}, exchange.Errorf(exchange.CodeStateConflict, "Only a purchase whose crypto payment is parked can get another address.")
	}
	if err := require(address != o.WalletAddress, "/wallet_address", "unchanged", "must be another address than the order's"); err != nil {
		return o, addressWas{}, err
	}
	to := o
	to.WalletAddress = address
	return o, addressWas{WalletAddress: o.WalletAddress, PaymentID: p.ID}, t.checkDestination(ctx, &to)
}

// applyOrderAddress gives the parked payment of an order up and approves one to the confirmed address.
// CodeStateConflict when the payment went on meanwhile, or money may have left by it.
func (t unitTx) applyOrderAddress(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	var terms addressTerms
	if err := json.Unmarshal(c.Change, &terms); err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "a stored address of an order can't be read")
	}
	before, was, err := t.correctable(ctx, terms.OrderID, terms.WalletAddress)
	if err != nil {
		return err
	}
	if err := unchanged(c, was); err != nil {
		return err
	}
	old, err := t.cancelPayment(ctx, before, "address", by)
	if err != nil {
		return err
	}
	o := before
	o.WalletAddress, o.Status, o.StatusDetail, o.TxHash = terms.WalletAddress, exchange.OrderProcessing, exchange.WaitSignature, ""
	if o, err = t.saveOrder(ctx, "order.address_corrected", by, before, o); err != nil {
		return err
	}
	_, err = t.approvePayment(ctx, o, old.N+1, by.UserID.String())
	return err
}
