package activities

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// Signer signs approved payments and stores each transaction before it returns it. keys.PaymentSigner implements it.
type Signer interface {
	SignPayment(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, error)
	BumpPaymentFee(ctx context.Context, paymentID uuid.UUID, n int) (exchange.ChainAttempt, error)
}

// SigningStore is the database interface of signing.
type SigningStore interface {
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	ParkChainPayment(ctx context.Context, id uuid.UUID, detail string) (exchange.ChainPayment, error)
	SetOrderDetail(ctx context.Context, id uuid.UUID, detail string) error
	// SigningHold returns why no further transaction of a payment may be signed.
	SigningHold(ctx context.Context, paymentID uuid.UUID) (exchange.SigningHold, error)
	// AwaitSignature shows that a payment's signature waits for the deposit watch or for the end of a freeze.
	AwaitSignature(ctx context.Context, paymentID uuid.UUID, hold exchange.SigningHold) error
}

// Signing signs payments. It is registered on signer queues only, whose processes hold the keys.
type Signing struct {
	Signer Signer
	Store  SigningStore
	Cold   ColdSigner // nil if no transactions of cold wallets are completed
	// Recipients screens the recipient before anything is signed. Without it no recipient is cleared, and the database refuses
	// signatures of payments that leave our custody.
	Recipients *Recipients
}

// ColdSigner adds the fee payer's signature to that of a cold wallet's owner, and stores the transaction before it returns
// it. keys.PaymentSigner implements it.
type ColdSigner interface {
	CompletePayment(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, error)
}

// CompleteColdPayment completes a draft that a cold wallet's owner signed offline, by the fee payer's signature. Called again
// it returns the same transaction.
func (s *Signing) CompleteColdPayment(ctx context.Context, in SignInput) (SignedPayment, error) {
	if s.Cold == nil {
		return SignedPayment{}, Failure(ctx, exchange.Errorf(exchange.CodeUnsupported, "This signer does not complete transactions of cold wallets."))
	}
	switch hold, err := s.Store.SigningHold(ctx, in.PaymentID); {
	case err != nil:
		return SignedPayment{}, Failure(ctx, err)
	case hold == exchange.HoldFrozen:
		return SignedPayment{}, Failure(ctx, exchange.Wrap(exchange.CodeSuspended, exchange.ErrFrozen, "Outgoing payments are frozen."))
	case hold == exchange.HoldPutBack:
		return SignedPayment{}, Failure(ctx, exchange.Errorf(exchange.CodeSuspended, "The database was put back. Nothing is signed before two officers have released it."))
	case hold == exchange.HoldWatch:
		return SignedPayment{}, Failure(ctx, exchange.Errorf(exchange.CodeUnavailable, "The deposit watch is behind. Nothing is signed until it has caught up."))
	case hold != exchange.HoldNone:
		return SignedPayment{}, Failure(ctx, exchange.Errorf(exchange.CodeStateConflict, "The payment can't be signed until an officer has settled the unaccounted movement out of its wallet (%s).", hold))
	}
	if err := s.allowed(ctx, in.PaymentID); err != nil {
		return SignedPayment{}, coldFailure(ctx, err)
	}
	attempt, err := s.Cold.CompletePayment(ctx, in.PaymentID)
	if err != nil {
		return SignedPayment{}, coldFailure(ctx, err)
	}
	return SignedPayment{AttemptID: attempt.ID, TxID: attempt.TxID}, nil
}

// allowed refuses to complete a payment whose recipient is on the deny list by now.
func (s *Signing) allowed(ctx context.Context, id uuid.UUID) error {
	if s.Recipients == nil {
		return nil
	}
	terms, err := s.Recipients.Store.SigningTerms(ctx, id)
	if err != nil {
		return err
	}
	denied, err := s.Recipients.denied(ctx, terms)
	if denied {
		return exchange.Errorf(exchange.CodeForbidden, "The recipient of payment %s is on the deny list.", id)
	}
	return err
}

// SignInput names a payment to sign.
type SignInput struct {
	PaymentID uuid.UUID `json:"payment_id"`
	// ReportGas asks to return missing native coin for the fee, instead of parking the payment.
	ReportGas bool `json:"report_gas,omitempty"`
	// GasReason is the detail to park with when native coin is missing; empty means the chain's own reason.
	GasReason string `json:"gas_reason,omitempty"`
}

// SignedPayment is the result of signing: a stored transaction, or that the payment is completed, or why no transaction can
// be built.
type SignedPayment struct {
	AttemptID uuid.UUID `json:"attempt_id,omitzero"`
	TxID      string    `json:"tx_id,omitempty"`
	Completed bool      `json:"completed,omitempty"`
	Parked    string    `json:"parked,omitempty"` // a chain reason
	Gas       *NeedGas  `json:"gas,omitempty"`    // the payment waits for gas and is not parked
	// Incomplete is set while the fee payer's signature of a cold wallet's transaction is missing.
	Incomplete bool `json:"incomplete,omitempty"`
	// Waits is what the signature waits for; the wait ends by itself, so the payment is not parked.
	Waits string `json:"waits,omitempty"`
}

// NeedGas is how much native coin a sending wallet lacks for a fee.
type NeedGas struct {
	Missing string `json:"missing,omitempty"` // a decimal; empty when the network does not say
}

// SignPayment returns the pending transaction of a payment, or signs one. The payment is parked, with nothing signed, if the
// recipient is not cleared, if the transaction can't be built, or if money left the wallet unaccounted. While the deposit
// watch is behind, that is unknown, so nothing is signed.
func (s *Signing) SignPayment(ctx context.Context, in SignInput) (SignedPayment, error) {
	if out, held, err := s.held(ctx, in.PaymentID); held || err != nil {
		return out, Failure(ctx, err)
	}
	if s.Recipients != nil {
		reason, err := s.Recipients.obstacle(ctx, in.PaymentID)
		if err != nil {
			return SignedPayment{}, Failure(ctx, err)
		}
		if reason != "" {
			return s.park(ctx, in.PaymentID, reason)
		}
	}
	attempt, err := s.Signer.SignPayment(ctx, in.PaymentID)
	if err == nil {
		return SignedPayment{AttemptID: attempt.ID, TxID: attempt.TxID}, nil
	}
	if exchange.CodeOf(err) == exchange.CodeStateConflict {
		if out, held, holdErr := s.held(ctx, in.PaymentID); held || holdErr != nil { // the hold came meanwhile
			return out, Failure(ctx, holdErr)
		}
		return s.settled(ctx, in.PaymentID, err)
	}
	reason, final := buildRefusal(err)
	if !final {
		return SignedPayment{}, Failure(ctx, err)
	}
	if reason == chain.ReasonGas {
		return s.needGas(ctx, in, err)
	}
	return s.park(ctx, in.PaymentID, string(reason))
}

// held parks a payment that may not be signed until an officer has decided, or lets it wait for the deposit watch or for the
// end of a freeze. Only payments that are about to be signed are held.
func (s *Signing) held(ctx context.Context, id uuid.UUID) (SignedPayment, bool, error) {
	hold, err := s.Store.SigningHold(ctx, id)
	if err != nil || hold == exchange.HoldNone {
		return SignedPayment{}, false, err
	}
	p, err := s.Store.ChainPayment(ctx, id)
	if err != nil || p.Status != exchange.ChainApproved {
		return SignedPayment{}, false, err
	}
	if hold.Passes() {
		return SignedPayment{Waits: string(hold)}, true, s.Store.AwaitSignature(ctx, id, hold)
	}
	out, err := s.park(ctx, id, string(hold))
	return out, true, err
}

// needGas returns the missing native coin, or parks the payment because of it. A payment of gas is never topped up, and where
// our gas wallet pays the fees, it is that wallet that has too little.
func (s *Signing) needGas(ctx context.Context, in SignInput, cause error) (SignedPayment, error) {
	reason := string(chain.ReasonGas)
	if in.GasReason != "" {
		reason = in.GasReason
	}
	if !in.ReportGas {
		return s.park(ctx, in.PaymentID, reason)
	}
	p, err := s.Store.ChainPayment(ctx, in.PaymentID)
	if err != nil {
		return SignedPayment{}, Failure(ctx, err)
	}
	if p.FeePayer != "" {
		return s.park(ctx, in.PaymentID, GasWalletShort)
	}
	if p.Purpose == exchange.ForGas || p.Network.Sponsored() {
		return s.park(ctx, in.PaymentID, reason)
	}
	return SignedPayment{Gas: missingGas(p.Network, cause)}, nil
}

// missingGas is what a sender lacks by the driver's refusal.
func missingGas(n exchange.Network, cause error) *NeedGas {
	need := &NeedGas{}
	if e, ok := errors.AsType[*chain.Error](cause); ok && e.Missing.Asset() == n.NativeCoin() && e.Missing.Positive() {
		need.Missing = e.Missing.String()
	}
	return need
}

// BumpInput names the transaction of a payment that waits too long.
type BumpInput struct {
	PaymentID uuid.UUID `json:"payment_id"`
	N         int       `json:"n"` // of the attempt
}

// Bump is the result of a replacement with a higher fee.
type Bump struct {
	TxID string `json:"tx_id,omitempty"` // of the transaction that leads now
	N    int    `json:"n,omitempty"`
	Kept string `json:"kept,omitempty"` // the chain reason why there is no higher fee: the existing transaction is broadcast further
	Over bool   `json:"over,omitempty"` // the payment has no pending transaction any more
}

// BumpPaymentFee signs a transaction with the nonce of the waiting one and a higher fee. Called again for the same one it
// returns the same result. When no higher fee is possible, nothing changes.
func (s *Signing) BumpPaymentFee(ctx context.Context, in BumpInput) (Bump, error) {
	attempt, err := s.Signer.BumpPaymentFee(ctx, in.PaymentID, in.N)
	if err == nil {
		return Bump{TxID: attempt.TxID, N: attempt.N}, nil
	}
	if exchange.CodeOf(err) == exchange.CodeStateConflict {
		return Bump{Over: true}, nil
	}
	if reason, final := buildRefusal(err); final {
		return Bump{Kept: string(reason)}, nil
	}
	return Bump{}, Failure(ctx, err)
}

// settled returns the state of a payment that needs no signature any more, as when a step is repeated.
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

// park parks a payment. One that owners signed is only refused: whatever is parked, their signatures can be sent, by us or another tool.
func (s *Signing) park(ctx context.Context, id uuid.UUID, reason string) (SignedPayment, error) {
	p, err := s.Store.ChainPayment(ctx, id)
	if err != nil {
		return SignedPayment{}, Failure(ctx, err)
	}
	if p.Purpose == exchange.ForProposal {
		return SignedPayment{Parked: reason}, nil
	}
	if _, err := s.Store.ParkChainPayment(ctx, id, reason); err != nil {
		return SignedPayment{}, Failure(ctx, err)
	}
	return SignedPayment{Parked: reason}, nil
}

// buildRefusal returns the reason of an error that a retry can't solve, because the network or our own state refuses the
// transfer; false for temporary errors.
func buildRefusal(err error) (chain.Reason, bool) {
	reason := chainReason(err)
	switch reason {
	case chain.ReasonAddress, chain.ReasonUnsupported, chain.ReasonFunds, chain.ReasonGas, chain.ReasonBlocked,
		chain.ReasonPaused, chain.ReasonReverts, chain.ReasonFeeTooHigh, chain.ReasonBudget, chain.ReasonForeign:
		return reason, true
	case chain.ReasonUnavailable, chain.ReasonProtocol: // these may be temporary
	}
	return "", false
}
