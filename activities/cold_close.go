package activities

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// This file ends issued drafts, and handles transactions that a nonce account keeps valid.

// draftDurable issues a draft that the wallet's nonce account keeps valid. It first opens the account if that does not exist,
// and withdraws an earlier draft that can't be included any more.
func (c *Cold) draftDurable(ctx context.Context, p exchange.ChainPayment, way coldWay, by exchange.Principal) (ColdDraft, error) {
	before, err := c.approved(ctx, p)
	if err != nil {
		return ColdDraft{}, err
	}
	account, err := way.durable.NonceAccount(p.FeePayer, exchange.NonceSeed(p.WalletID))
	if err != nil {
		return ColdDraft{}, err
	}
	if len(before) > 0 && (before[0].Status == exchange.ColdOpen || before[0].Status == exchange.ColdClosing) {
		return c.again(ctx, way.durable, before[0], by)
	}
	n, err := way.durable.DurableNonce(ctx, account, 0)
	if err != nil {
		return ColdDraft{}, err
	}
	if n.Value == "" {
		rent, err := way.durable.NonceRent(ctx)
		if err != nil {
			return ColdDraft{}, err
		}
		opening, err := c.Store.ApproveNonceAccount(ctx, p.ID, account, rent)
		return ColdDraft{NoncePaymentID: opening.ID}, err
	}
	if n.Authority != p.FeePayer {
		return ColdDraft{}, chain.Errorf(chain.ReasonForeign, "another key is the authority of the nonce account %s", account)
	}
	d, err := c.handOut(ctx, p, way, chain.Draft{
		Transfer: chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}, FeePayer: p.FeePayer, NonceAccount: account,
	}, by)
	return ColdDraft{DraftID: d.ID}, err
}

// again returns the issued draft again, unless its nonce account has advanced: then the draft can't be sent any more.
func (c *Cold) again(ctx context.Context, client chain.Durable, d exchange.ColdDraft, by exchange.Principal) (ColdDraft, error) {
	n, err := client.DurableNonce(ctx, d.NonceAccount, d.NonceBlock)
	if err != nil {
		return ColdDraft{}, err
	}
	if d.Status == exchange.ColdOpen && n.Value == d.RefBlock {
		return ColdDraft{DraftID: d.ID}, nil
	}
	closing, err := c.Store.WithdrawColdDraft(ctx, d.ID, by)
	return ColdDraft{NoncePaymentID: closing.ID}, err
}

// takePart stores the owner's signature. The signer adds the fee payer's, see Signing.CompleteColdPayment.
func (c *Cold) takePart(ctx context.Context, p exchange.ChainPayment, client chain.Durable, drafts []exchange.ColdDraft, in coldImport) (SignedPayment, error) {
	d, part, err := match(p, drafts, in.raw, client.TakePart)
	if err != nil {
		return SignedPayment{}, err
	}
	live, alive, err := c.Store.LiveAttempt(ctx, p.ID)
	switch {
	case err != nil:
		return SignedPayment{}, err
	case alive && live.ID == d.AttemptID:
		return SignedPayment{AttemptID: live.ID, TxID: live.TxID}, nil
	case alive || d.Status == exchange.ColdSigned:
		return SignedPayment{}, exchange.Errorf(exchange.CodeStateConflict, "The payment already has a signed transaction.")
	case d.Status != exchange.ColdOpen:
		return SignedPayment{}, invalidImport("withdrawn", "was withdrawn and can never be included; request a new payload")
	}
	if err := c.Store.SaveColdPart(ctx, d.ID, part, in.by); err != nil {
		return SignedPayment{}, err
	}
	return SignedPayment{Incomplete: true}, nil
}

// ColdClosed is the result of closing a draft.
type ColdClosed struct {
	// NoncePaymentID is a payment that must be completed for it; empty when no issued draft can be used any more.
	NoncePaymentID uuid.UUID `json:"nonce_payment_id,omitzero"`
}

// CloseColdPayment makes sure that no issued draft of a payment can be included any more, so that the payment may be
// cancelled. Our own clock is not accepted as proof. It returns CodeStateConflict while a draft may still be included.
func (c *Cold) CloseColdPayment(ctx context.Context, in ColdInput) (ColdClosed, error) {
	out, err := c.closeDraft(ctx, in)
	return out, coldFailure(ctx, err)
}

func (c *Cold) closeDraft(ctx context.Context, in ColdInput) (ColdClosed, error) {
	drafts, err := c.Store.ColdDrafts(ctx, in.PaymentID)
	if err != nil || len(drafts) == 0 {
		return ColdClosed{}, err
	}
	d := drafts[0]
	if d.Status != exchange.ColdOpen && d.Status != exchange.ColdClosing {
		return ColdClosed{}, nil
	}
	p, way, err := c.payment(ctx, in.PaymentID)
	if err != nil {
		return ColdClosed{}, err
	}
	by, err := actor(ctx, c.Store, in.Behalf)
	if err != nil {
		return ColdClosed{}, err
	}
	if way.durable != nil {
		advance, err := c.Store.WithdrawColdDraft(ctx, d.ID, by)
		return ColdClosed{NoncePaymentID: advance.ID}, err
	}
	if err := c.unsent(ctx, way, drafts); err != nil {
		return ColdClosed{}, err
	}
	return ColdClosed{}, c.over(ctx, p, way, d, by)
}

// over ends a draft that its network can't include any more: a transaction with its nonce is final, or the final chain has
// passed its expiry and no node has it. It returns CodeStateConflict while the draft may be included.
func (c *Cold) over(ctx context.Context, p exchange.ChainPayment, way coldWay, d exchange.ColdDraft, by exchange.Principal) error {
	evidence, err := c.Store.DraftSpent(ctx, d)
	if err != nil {
		return err
	}
	if evidence == "" && d.TxID != "" {
		facts, err := chain.Inquire(ctx, way.Client, exchange.ChainAttempt{TxID: d.TxID, ExpiresAt: d.ExpiresAt},
			chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount})
		if err != nil {
			return err
		}
		if chain.Judge(facts) == chain.VerdictRebuild {
			evidence = "absent from every node after final block " + facts.Location.Head.Final.ID
		}
	}
	if evidence == "" {
		return exchange.Errorf(exchange.CodeStateConflict, "A payload was issued and may still be signed and sent. %s", possible(d))
	}
	return c.Store.LapseColdDraft(ctx, d.ID, evidence, by)
}

// possible describes when an issued draft can't be included any more.
func possible(d exchange.ColdDraft) string {
	if d.NonceWallet != uuid.Nil {
		return "It never expires: it becomes invalid when another transaction of the wallet with its nonce is final. Sign and import it, or send another payment from the wallet."
	}
	return "It becomes invalid when the network's final block is newer than " + d.ExpiresAt.Format(time.RFC3339) + "."
}
