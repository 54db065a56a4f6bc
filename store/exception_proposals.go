package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// A second officer confirms decisions about exceptions above one officer's limit. The proposal is a kind of control
// change: it waits, expires, is listed and confirmed like the others, and its decision is written in the transaction
// of the confirmation.

// decisionTerms is a proposed decision as officers and the database's guard read it.
type decisionTerms struct {
	ID          uuid.UUID                `json:"id"`
	ExceptionID uuid.UUID                `json:"exception_id"`
	Verdict     exchange.ExceptionStatus `json:"verdict"`
	WalletID    *uuid.UUID               `json:"wallet_id"`
	MerchantID  *uuid.UUID               `json:"merchant_id"`
	Note        string                   `json:"note"`
}

// exceptionTerms is the exception that the decision is about. Version binds what is proposed to its state: one that is open again after a refund
// by bank that failed is not the one that officers saw before.
type exceptionTerms struct {
	ExceptionID uuid.UUID                `json:"exception_id"`
	Kind        exchange.ExceptionKind   `json:"kind"`
	Status      exchange.ExceptionStatus `json:"status"`
	Asset       string                   `json:"asset"`
	Amount      string                   `json:"amount"`
	Version     int64                    `json:"version"`
}

func termsOfException(x exchange.PaymentException) exceptionTerms {
	return exceptionTerms{ExceptionID: x.ID, Kind: x.Kind, Status: x.Status, Asset: string(x.Amount.Asset()), Amount: x.Amount.String(), Version: x.Version}
}

// ProposeDecision proposes a decision that a second officer has to confirm. A repeated proposal by the same officer
// returns the waiting one. The checks of DecideException apply here too, except for the amount.
func (s *Store) ProposeDecision(ctx context.Context, d exchange.ExceptionDecision, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	if err := checkDecision(d); err != nil {
		return proposed, err
	}
	err := s.inTx(ctx, "payment exception", func(t unitTx) error {
		x, err := t.lockedException(ctx, d.ExceptionID)
		if err != nil {
			return err
		}
		if x.Status != exchange.ExcOpen {
			return exchange.Errorf(exchange.CodeStateConflict, "The payment exception is already %s.", x.Status)
		}
		if err := t.decidableLine(ctx, x, by.UserID); err != nil {
			return err
		}
		if _, err := t.settling(ctx, x, d); err != nil {
			return err
		}
		// An exception waits for one officer's decision at a time. The id derives from both, so a repeated call finds
		// it.
		terms := decisionTerms{
			ID:          uuid.NewSHA1(x.ID, []byte(by.UserID.String()+string(d.Verdict)+d.WalletID.String()+d.MerchantID.String()+d.Reason)),
			ExceptionID: x.ID, Verdict: d.Verdict, WalletID: pointerTo(d.WalletID), MerchantID: pointerTo(d.MerchantID), Note: d.Reason,
		}
		proposed, err = t.propose(ctx, exchange.ControlExceptionDecision, uuid.Nil, termsOfException(x), terms, by)
		return err
	})
	return proposed, err
}

func pointerTo(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// applyDecision applies a confirmed decision. CodeStateConflict when the exception was settled meanwhile.
func (t unitTx) applyDecision(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var terms decisionTerms
	if err := json.Unmarshal(c.Change, &terms); err != nil {
		return exchange.Posting{}, exchange.Wrap(exchange.CodeInternal, err, "a stored decision can't be read")
	}
	x, err := t.lockedException(ctx, terms.ExceptionID)
	if err != nil {
		return exchange.Posting{}, err
	}
	if err := unchanged(c, termsOfException(x)); err != nil {
		return exchange.Posting{}, err
	}
	d := decided{by: c.ProposedBy, at: by, change: c.ID, ExceptionDecision: exchange.ExceptionDecision{
		ID: terms.ID, ExceptionID: x.ID, Verdict: terms.Verdict, Reason: terms.Note,
	}}
	if terms.WalletID != nil {
		d.WalletID = *terms.WalletID
	}
	if terms.MerchantID != nil {
		d.MerchantID = *terms.MerchantID
	}
	if err := t.decidableLine(ctx, x, by.UserID); err != nil {
		return exchange.Posting{}, err
	}
	books, err := t.settling(ctx, x, d.ExceptionDecision)
	if err != nil {
		return exchange.Posting{}, err
	}
	_, p, err := t.decide(ctx, x, d, books)
	return p, err
}
