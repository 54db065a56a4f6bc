package activities

import (
	"context"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// Signer makes signatures for approved payments and stores the transaction before it returns it.
// keys.PaymentSigner is one.
type Signer interface {
	SignPayment(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, error)
}

// SigningStore is what signing needs of the database.
type SigningStore interface {
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	ParkChainPayment(ctx context.Context, id uuid.UUID, detail string) error
	SetOrderDetail(ctx context.Context, id uuid.UUID, detail string) error
}

// Signing signs. It is registered on signer queues only, whose processes hold the keys.
type Signing struct {
	Signer Signer
	Store  SigningStore
}

// PaymentInput names a chain payment.
type PaymentInput struct {
	PaymentID uuid.UUID `json:"payment_id"`
}

// SignedPayment is what came of signing: a stored transaction, the knowledge that the payment is
// over, or the reason why none can be built.
type SignedPayment struct {
	AttemptID uuid.UUID `json:"attempt_id,omitzero"`
	TxID      string    `json:"tx_id,omitempty"`
	Completed bool      `json:"completed,omitempty"`
	Parked    string    `json:"parked,omitempty"` // a chain reason
}

// SignPayment gives the live transaction of a payment, signing one if there is none. A transaction that
// can't be built parks the payment: nothing was signed, so nothing is on its way.
func (s *Signing) SignPayment(ctx context.Context, in PaymentInput) (SignedPayment, error) {
	attempt, err := s.Signer.SignPayment(ctx, in.PaymentID)
	if err == nil {
		return SignedPayment{AttemptID: attempt.ID, TxID: attempt.TxID}, nil
	}
	if exchange.CodeOf(err) == exchange.CodeStateConflict {
		return s.settled(ctx, in.PaymentID, err)
	}
	if reason, final := buildRefusal(err); final {
		return s.park(ctx, in.PaymentID, reason)
	}
	return SignedPayment{}, Failure(ctx, err)
}

// settled answers for a payment that is not to be signed any more, which happens when a step runs
// again after it was done.
func (s *Signing) settled(ctx context.Context, id uuid.UUID, cause error) (SignedPayment, error) {
	p, err := s.Store.ChainPayment(ctx, id)
	if err != nil {
		return SignedPayment{}, Failure(ctx, err)
	}
	switch p.Status {
	case exchange.ChainCompleted:
		return SignedPayment{Completed: true, TxID: p.TxID}, nil
	case exchange.ChainParked:
		return SignedPayment{Parked: p.Detail}, nil
	case exchange.ChainApproved, exchange.ChainSigned, exchange.ChainBroadcast, exchange.ChainIncluded, exchange.ChainCancelled: // these are refused for another reason
	}
	return SignedPayment{}, Failure(ctx, cause)
}

func (s *Signing) park(ctx context.Context, id uuid.UUID, reason chain.Reason) (SignedPayment, error) {
	if err := s.Store.ParkChainPayment(ctx, id, string(reason)); err != nil {
		return SignedPayment{}, Failure(ctx, err)
	}
	return SignedPayment{Parked: string(reason)}, nil
}

// buildRefusal tells errors that no repetition mends, because the network or our own state says why
// the transfer can't succeed, from those that pass.
func buildRefusal(err error) (chain.Reason, bool) {
	reason := chainReason(err)
	switch reason {
	case chain.ReasonAddress, chain.ReasonUnsupported, chain.ReasonFunds, chain.ReasonGas, chain.ReasonBlocked,
		chain.ReasonPaused, chain.ReasonReverts, chain.ReasonFeeTooHigh:
		return reason, true
	case chain.ReasonUnavailable, chain.ReasonProtocol: // these may pass
	}
	return "", false
}
