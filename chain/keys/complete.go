package keys

import (
	"context"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// ColdStore stores transactions that the owner of a cold wallet signed elsewhere.
type ColdStore interface {
	// LiveAttempt returns the payment's leading transaction that may still move money, if there is one.
	LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error)
	// ColdForCompletion reads a payment, its draft with the owner's imported signature, and the sealed key of the wallet
	// that pays the fee.
	ColdForCompletion(ctx context.Context, paymentID uuid.UUID) (exchange.ChainPayment, exchange.ColdDraft, Sealed, error)
	// SaveColdAttempt stores the signed bytes of a draft. If the payment already has a live transaction, that one is
	// returned and nothing is stored.
	SaveColdAttempt(ctx context.Context, draftID uuid.UUID, a exchange.ChainAttempt, by exchange.Principal) (exchange.ChainAttempt, error)
}

// CompletePayment adds the fee payer's signature to a transaction that the owner of a cold wallet signed elsewhere, and
// stores it. It signs only the bytes that were handed out, which the driver again checks against the approved transfer. It
// is safe to call again: the same keys make the same signatures, and unstored bytes have not left the process.
func (s *PaymentSigner) CompletePayment(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, error) {
	if s.cold == nil {
		return exchange.ChainAttempt{}, refuse(paymentID, exchange.CodeUnsupported, "this signer has no store of cold transactions")
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
		return exchange.ChainAttempt{}, refuse(paymentID, exchange.CodeUnsupported, "it has no fee payer to sign after its owner")
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
