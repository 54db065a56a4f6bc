package activities

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// SweepStore approves payments to escrow addresses from our custody, and payments out of them. Every method is one
// transaction and may be called again.
type SweepStore interface {
	ApproveSweep(ctx context.Context, orderID uuid.UUID) (exchange.ChainPayment, error)
	ApproveKeptSweep(ctx context.Context, exceptionID uuid.UUID) (exchange.ChainPayment, error)
	// ChainPaymentOf reads the latest payment of an object.
	ChainPaymentOf(ctx context.Context, purpose exchange.ChainPurpose, objectID uuid.UUID) (exchange.ChainPayment, error)
	CancelFunding(ctx context.Context, orderID uuid.UUID, by exchange.Principal) error
	// ReleaseSale lets the crypto of a sale leave the custodial wallet that its customer named, or says what it waits for.
	ReleaseSale(ctx context.Context, orderID uuid.UUID) (exchange.SaleRelease, error)
	actingStore

	// ApproveFeeSweep approves the payment of earned fees, or says why not.
	ApproveFeeSweep(ctx context.Context, id uuid.UUID) (exchange.ApprovedFeeSweep, error)
	GiveUpFeeSweep(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.FeeSweep, error)
	FeeSweepRules(ctx context.Context) ([]exchange.FeeSweepRule, error)
	OpenScheduledFeeSweeps(ctx context.Context, n exchange.Network, asset money.Asset) ([]uuid.UUID, error)
}

// Sweeps moves crypto to and from escrow addresses, and earned fees to the treasury.
type Sweeps struct {
	Store SweepStore
}

// PaymentApproved names a chain payment to carry out.
type PaymentApproved struct {
	PaymentID uuid.UUID        `json:"payment_id,omitzero"`
	Network   exchange.Network `json:"network,omitempty"`
}

// ApproveSweep approves the payment of a completed order's crypto to its buyer.
func (s *Sweeps) ApproveSweep(ctx context.Context, in OrderInput) (PaymentApproved, error) {
	p, err := s.Store.ApproveSweep(ctx, in.OrderID)
	return PaymentApproved{PaymentID: p.ID, Network: p.Network}, Failure(ctx, err)
}

// ApproveKeptSweep approves the payment of crypto that we keep from an escrow address to the treasury. It returns no payment
// if no escrow address holds any of it.
func (s *Sweeps) ApproveKeptSweep(ctx context.Context, in ExceptionInput) (PaymentApproved, error) {
	p, err := s.Store.ApproveKeptSweep(ctx, in.ExceptionID)
	return PaymentApproved{PaymentID: p.ID, Network: p.Network}, Failure(ctx, err)
}

// ApproveFunding finds the payment of an order's crypto from the custodial wallet that its customer named, which was approved
// when the order was opened.
func (s *Sweeps) ApproveFunding(ctx context.Context, in OrderInput) (PaymentApproved, error) {
	p, err := s.Store.ChainPaymentOf(ctx, exchange.ForFunding, in.OrderID)
	return PaymentApproved{PaymentID: p.ID, Network: p.Network}, Failure(ctx, err)
}

// SaleReleaseState is what a sale from a custodial wallet waits for before its crypto may leave.
type SaleReleaseState struct {
	OrderState
	Passed     bool      `json:"passed,omitempty"`
	GivenUp    bool      `json:"given_up,omitempty"` // an officer refused it, or it was cancelled
	RestsUntil time.Time `json:"rests_until,omitzero"`
	Needed     int       `json:"needed,omitempty"`
	Agreed     int       `json:"agreed,omitempty"`
}

func saleRelease(r exchange.SaleRelease) SaleReleaseState {
	return SaleReleaseState{OrderState: stateOf(r.Order), Passed: r.Passed, GivenUp: r.GivenUp, RestsUntil: r.Until, Needed: r.Needed, Agreed: r.Approvals}
}

// ReleaseFunding lets the crypto of a sale leave the custodial wallet that its customer named, when the rule about all that
// leaves allows it, or returns what the sale waits for.
func (s *Sweeps) ReleaseFunding(ctx context.Context, in OrderInput) (SaleReleaseState, error) {
	r, err := s.Store.ReleaseSale(ctx, in.OrderID)
	return saleRelease(r), Failure(ctx, err)
}

// CancelFundingInput cancels the payment from the customer's wallet.
type CancelFundingInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Behalf  Behalf    `json:"behalf,omitzero"`
}

// CancelFunding cancels the payment before anything is signed; CodeStateConflict after that.
func (s *Sweeps) CancelFunding(ctx context.Context, in CancelFundingInput) error {
	by, err := actor(ctx, s.Store, in.Behalf)
	if err == nil {
		err = s.Store.CancelFunding(ctx, in.OrderID, by)
	}
	return Failure(ctx, err)
}
