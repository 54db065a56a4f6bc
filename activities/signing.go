package activities

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// Signer makes signatures for approved payments and stores the transaction before it returns it.
// keys.PaymentSigner is one.
type Signer interface {
	SignPayment(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, error)
	OutbidPayment(ctx context.Context, paymentID uuid.UUID, n int) (exchange.ChainAttempt, error)
}

// SigningStore is what signing needs of the database.
type SigningStore interface {
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	ParkChainPayment(ctx context.Context, id uuid.UUID, detail string) error
	SetOrderDetail(ctx context.Context, id uuid.UUID, detail string) error
	// SigningHold says what speaks against signing another transaction of a payment.
	SigningHold(ctx context.Context, paymentID uuid.UUID) (exchange.SigningHold, error)
	// WaitForWatch shows that a payment's signature waits for the watch over the chain.
	WaitForWatch(ctx context.Context, paymentID uuid.UUID) error
}

// Signing signs. It is registered on signer queues only, whose processes hold the keys.
type Signing struct {
	Signer Signer
	Store  SigningStore
	Cold   ColdSigner // nil where no cold wallet's transaction is completed
	// Recipients looks at who is paid before anything is signed. Without it nobody is cleared, and the database
	// keeps no signature of a payment that leaves our custody.
	Recipients *Recipients
}

// ColdSigner adds the fee payer's signature to that of a cold wallet's owner, and stores the transaction before it
// returns it. keys.PaymentSigner is one.
type ColdSigner interface {
	CompletePayment(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, error)
}

// CompleteColdPayment makes a transaction of what a cold wallet's owner signed elsewhere. The bytes are those that
// were handed out; the key that signs here is the fee payer's. Called again it gives the same transaction.
func (s *Signing) CompleteColdPayment(ctx context.Context, in SignInput) (SignedPayment, error) {
	if s.Cold == nil {
		return SignedPayment{}, Failure(ctx, exchange.Errorf(exchange.CodeUnsupported, "Transactions of cold wallets are not completed here."))
	}
	switch hold, err := s.Store.SigningHold(ctx, in.PaymentID); {
	case err != nil:
		return SignedPayment{}, Failure(ctx, err)
	case hold == exchange.HoldWatch:
		return SignedPayment{}, Failure(ctx, exchange.Errorf(exchange.CodeUnavailable, "The watch over the chain is behind; nothing is signed until it has caught up."))
	case hold != exchange.HoldNone:
		return SignedPayment{}, Failure(ctx, exchange.Errorf(exchange.CodeStateConflict, "Nothing is signed for the payment until an officer has settled what left its wallet (%s).", hold))
	}
	attempt, err := s.Cold.CompletePayment(ctx, in.PaymentID)
	if err != nil {
		return SignedPayment{}, coldFailure(ctx, err)
	}
	return SignedPayment{AttemptID: attempt.ID, TxID: attempt.TxID}, nil
}

// SignInput names a payment to sign.
type SignInput struct {
	PaymentID uuid.UUID `json:"payment_id"`
	// ReportGas asks to be told when the sending wallet lacks native coin for the fee, instead of having
	// the payment parked.
	ReportGas bool `json:"report_gas,omitempty"`
	// GasWord is the detail to park with when the native coin is missing; empty is the chain's own reason.
	GasWord string `json:"gas_word,omitempty"`
}

// SignedPayment is what came of signing: a stored transaction, the knowledge that the payment is
// over, or the reason why none can be built.
type SignedPayment struct {
	AttemptID uuid.UUID `json:"attempt_id,omitzero"`
	TxID      string    `json:"tx_id,omitempty"`
	Completed bool      `json:"completed,omitempty"`
	Parked    string    `json:"parked,omitempty"` // a chain reason
	Gas       *NeedGas  `json:"gas,omitempty"`    // the payment waits for gas and is not parked
	// Incomplete is set where the fee payer signs a transaction of a cold wallet after its owner, and has not yet.
	Incomplete bool `json:"incomplete,omitempty"`
	// Waits is what the signature waits for, which passes by itself; the payment is not parked.
	Waits string `json:"waits,omitempty"`
}

// NeedGas says how much native coin a sending wallet lacks for a fee.
type NeedGas struct {
	Missing string `json:"missing,omitempty"` // a decimal; empty when the network does not say
}

// SignPayment gives the live transaction of a payment, signing one if there is none. A recipient whom no screening
// clears parks the payment, and so does a transaction that can't be built: nothing was signed, so nothing is on its
// way. So does what left the wallet and is not accounted for. While the watch over the chain is behind, nobody knows that, and nothing is signed.
func (s *Signing) SignPayment(ctx context.Context, in SignInput) (SignedPayment, error) {
	if out, held, err := s.held(ctx, in.PaymentID); held || err != nil {
		return out, Failure(ctx, err)
	}
	if s.Recipients != nil {
		word, err := s.Recipients.obstacle(ctx, in.PaymentID)
		if err != nil {
			return SignedPayment{}, Failure(ctx, err)
		}
		if word != "" {
			return s.park(ctx, in.PaymentID, word)
		}
	}
	attempt, err := s.Signer.SignPayment(ctx, in.PaymentID)
	if err == nil {
		return SignedPayment{AttemptID: attempt.ID, TxID: attempt.TxID}, nil
	}
	if exchange.CodeOf(err) == exchange.CodeStateConflict {
		if out, held, holdErr := s.held(ctx, in.PaymentID); held || holdErr != nil { // it came while the transaction was made
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

// held parks a payment for which nothing may be signed until a person has decided, or has it wait for the watch. A
// payment that is not to be signed anyway is not held.
func (s *Signing) held(ctx context.Context, id uuid.UUID) (SignedPayment, bool, error) {
	hold, err := s.Store.SigningHold(ctx, id)
	if err != nil || hold == exchange.HoldNone {
		return SignedPayment{}, false, err
	}
	p, err := s.Store.ChainPayment(ctx, id)
	if err != nil || p.Status != exchange.ChainApproved {
		return SignedPayment{}, false, err
	}
	if hold == exchange.HoldWatch {
		return SignedPayment{Waits: string(hold)}, true, s.Store.WaitForWatch(ctx, id)
	}
	return SignedPayment{Parked: string(hold)}, true, s.Store.ParkChainPayment(ctx, id, string(hold))
}

// needGas reports the missing native coin, or parks the payment because of it. Gas itself is never topped
// up, and where the house pays the fees anyway it is the house's wallet that is short.
func (s *Signing) needGas(ctx context.Context, in SignInput, cause error) (SignedPayment, error) {
	word := string(chain.ReasonGas)
	if in.GasWord != "" {
		word = in.GasWord
	}
	if !in.ReportGas {
		return s.park(ctx, in.PaymentID, word)
	}
	p, err := s.Store.ChainPayment(ctx, in.PaymentID)
	if err != nil {
		return SignedPayment{}, Failure(ctx, err)
	}
	if p.FeePayer != "" {
		return s.park(ctx, in.PaymentID, GasWalletShort)
	}
	if p.Purpose == exchange.ForGas || p.Network.Sponsored() {
		return s.park(ctx, in.PaymentID, word)
	}
	need := &NeedGas{}
	if e, ok := errors.AsType[*chain.Error](cause); ok && e.Missing.Asset() == p.Network.NativeCoin() && e.Missing.Positive() {
		need.Missing = e.Missing.String()
	}
	return SignedPayment{Gas: need}, nil
}

// OutbidInput names the transaction of a payment that waits too long.
type OutbidInput struct {
	PaymentID uuid.UUID `json:"payment_id"`
	N         int       `json:"n"` // of the attempt
}

// Outbid is what came of a higher bid.
type Outbid struct {
	TxID string `json:"tx_id,omitempty"` // of the transaction that leads now
	N    int    `json:"n,omitempty"`
	Kept string `json:"kept,omitempty"` // the chain reason why there is no higher bid: what exists goes on being offered
	Over bool   `json:"over,omitempty"` // no transaction of the payment waits any more
}

// OutbidPayment makes a transaction with the number of the one that waits, and a higher bid. Called again
// for the same one it gives what it gave. When no higher bid can be had, nothing changes.
func (s *Signing) OutbidPayment(ctx context.Context, in OutbidInput) (Outbid, error) {
	attempt, err := s.Signer.OutbidPayment(ctx, in.PaymentID, in.N)
	if err == nil {
		return Outbid{TxID: attempt.TxID, N: attempt.N}, nil
	}
	if exchange.CodeOf(err) == exchange.CodeStateConflict {
		return Outbid{Over: true}, nil
	}
	if reason, final := buildRefusal(err); final {
		return Outbid{Kept: string(reason)}, nil
	}
	return Outbid{}, Failure(ctx, err)
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

func (s *Signing) park(ctx context.Context, id uuid.UUID, word string) (SignedPayment, error) {
	if err := s.Store.ParkChainPayment(ctx, id, word); err != nil {
		return SignedPayment{}, Failure(ctx, err)
	}
	return SignedPayment{Parked: word}, nil
}

// buildRefusal tells errors that no repetition mends, because the network or our own state says why
// the transfer can't succeed, from those that pass.
func buildRefusal(err error) (chain.Reason, bool) {
	reason := chainReason(err)
	switch reason {
	case chain.ReasonAddress, chain.ReasonUnsupported, chain.ReasonFunds, chain.ReasonGas, chain.ReasonBlocked,
		chain.ReasonPaused, chain.ReasonReverts, chain.ReasonFeeTooHigh, chain.ReasonBudget, chain.ReasonForeign:
		return reason, true
	case chain.ReasonUnavailable, chain.ReasonProtocol: // these may pass
	}
	return "", false
}
