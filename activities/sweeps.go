package activities

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// SweepStore approves what comes to escrow addresses from our custody, and what leaves them. Every method is one transaction and may be called again.
type SweepStore interface {
	ApproveSweep(ctx context.Context, orderID uuid.UUID) (exchange.ChainPayment, error)
	ApproveKeptSweep(ctx context.Context, exceptionID uuid.UUID) (exchange.ChainPayment, error)
	ApproveFunding(ctx context.Context, orderID uuid.UUID) (exchange.ChainPayment, error)
	CancelFunding(ctx context.Context, orderID uuid.UUID, by exchange.Principal) error
}

// Sweeps moves crypto to and off escrow addresses.
type Sweeps struct {
	Store SweepStore
}

// PaymentApproved names a chain payment that is to be carried out.
type PaymentApproved struct {
	PaymentID uuid.UUID        `json:"payment_id,omitzero"`
	Network   exchange.Network `json:"network,omitempty"`
}

// ApproveSweep has the crypto of an order that is paid out go to who bought it.
func (s *Sweeps) ApproveSweep(ctx context.Context, in OrderInput) (PaymentApproved, error) {
	p, err := s.Store.ApproveSweep(ctx, in.OrderID)
	return PaymentApproved{PaymentID: p.ID, Network: p.Network}, Failure(ctx, err)
}

// ApproveKeptSweep has crypto that the house keeps go from an escrow address to the treasury. Where nothing lies on
// one, no payment is named.
func (s *Sweeps) ApproveKeptSweep(ctx context.Context, in ExceptionInput) (PaymentApproved, error) {
	p, err := s.Store.ApproveKeptSweep(ctx, in.ExceptionID)
	return PaymentApproved{PaymentID: p.ID, Network: p.Network}, Failure(ctx, err)
}

// ApproveFunding has an order paid out of the wallet in our custody that its customer named. It is refused with
// CodeInsufficientFunds when that has too little, and with CodeStateConflict when the order is over.
func (s *Sweeps) ApproveFunding(ctx context.Context, in OrderInput) (PaymentApproved, error) {
	p, err := s.Store.ApproveFunding(ctx, in.OrderID)
	return PaymentApproved{PaymentID: p.ID, Network: p.Network}, Failure(ctx, err)
}

// CancelFundingInput gives the payment up that is to fund an order.
type CancelFundingInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Actor   Actor     `json:"actor,omitzero"`
}

// CancelFunding gives it up before anything is signed; CodeStateConflict after that.
func (s *Sweeps) CancelFunding(ctx context.Context, in CancelFundingInput) error {
	return Failure(ctx, s.Store.CancelFunding(ctx, in.OrderID, in.Actor.Principal()))
}
