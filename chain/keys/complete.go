package keys

import (
	"context"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// ColdStore is where transactions are kept that the owner of a cold wallet signed elsewhere.
type ColdStore interface {
	// LiveAttempt reads the payment's leading transaction that may still move money, if there is one.
	LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error)
	// ColdForCompletion reads a payment, the draft of which the owner's signature came back, and the sealed key of
	// the wallet that pays the fee.
	ColdForCompletion(ctx context.Context, paymentID uuid.UUID) (exchange.ChainPayment, exchange.ColdDraft, Sealed, error)
	// SaveColdAttempt stores the signed bytes of a draft. If the payment has a live transaction already, that one
	// is returned and nothing is stored.
	SaveColdAttempt(ctx context.Context, draftID uuid.UUID, a exchange.ChainAttempt, by exchange.Principal) (exchange.ChainAttempt, error)
}

// CompletePayment adds the fee payer's signature to what the owner of a cold wallet signed elsewhere, and stores the
// transaction. It signs no bytes but those that were handed out, which the driver proves once more to be the
// approved transfer. Calling it again is harmless: the same keys make the same signatures, and what is not stored
// was seen by nobody.
func (s *PaymentSigner) CompletePayment(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, error) {
	if s.cold == nil {
		return exchange.ChainAttempt{}, refuse(paymentID, exchange.CodeUnsupported, "this signer completes nothing")
	}
	live, ok, err := s.cold.LiveAttempt(ctx, paymentID)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if ok {
		return live, mine(live, paymentID)
	}
	p, d, sealed, err := s.cold.ColdForCompletion(ctx, paymentID)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	o, err := s.approved(p, paymentID, exchange.ChainApproved)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	client, durable := o.client.(chain.Durable)
	if !durable || p.FeePayer == "" || p.FeeWalletID == uuid.Nil || d.PaymentID != p.ID || d.NonceAccount == "" {
		return exchange.ChainAttempt{}, refuse(paymentID, exchange.CodeUnsupported, "nobody signs it after its owner")
	}
	if err := holds(client, paymentID, sealed, p.FeePayer); err != nil {
		return exchange.ChainAttempt{}, err
	}
	u := chain.Unsigned{
		Transfer: o.draft().Transfer, FeePayer: p.FeePayer, Payload: d.Payload, Body: d.Body, RefBlock: d.RefBlock,
		NonceAccount: d.NonceAccount, NonceBlock: d.NonceBlock, FeeLimit: d.FeeLimit,
	}
	var signed chain.Signed
	err = s.vault.Use(ctx, sealed, Ref{WalletID: p.FeeWalletID, Network: p.Network}, func(payer chain.Key) error {
		var signErr error
		signed, signErr = client.Complete(u, d.Part, &onceKey{Key: payer})
		return signErr
	})
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	stored, err := s.cold.SaveColdAttempt(ctx, d.ID, s.attempt(o, signed), exchange.System("signer"))
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	return stored, mine(stored, paymentID)
}
