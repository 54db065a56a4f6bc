package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// What one person may not decide about money that does not fit, a second one confirms. The proposal is a change of
// the controls of its own kind: it waits, expires, is listed and confirmed like the others, and what it decides is
// written in the transaction of the confirmation.

// decisionTerms is a proposed decision as officers and the database's guard read it.
type decisionTerms struct {
	ID          uuid.UUID                `json:"id"`
	ExceptionID uuid.UUID                `json:"exception_id"`
	Verdict     exchange.ExceptionStatus `json:"verdict"`
	WalletID    *uuid.UUID               `json:"wallet_id"`
	MerchantID  *uuid.UUID               `json:"merchant_id"`
	Note        string                   `json:"note"`
}

// exceptionTerms is what the decision is about.
type exceptionTerms struct {
	ExceptionID uuid.UUID                `json:"exception_id"`
	Kind        exchange.ExceptionKind   `json:"kind"`
	Status      exchange.ExceptionStatus `json:"status"`
	Asset       string                   `json:"asset"`
	Amount      string                   `json:"amount"`
}

func termsOfException(x exchange.PaymentException) exceptionTerms {
	return exceptionTerms{ExceptionID: x.ID, Kind: x.Kind, Status: x.Status, Asset: string(x.Amount.Asset()), Amount: x.Amount.String()}
}

// ProposeDecision writes a decision down that a second person has to confirm. Proposed again by the same person it is
// the one that waits already. What DecideException refuses is refused here too, except for the amount.
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
			return exchange.Errorf(exchange.CodeStateConflict, "The exception is %s already.", x.Status)
		}
		if _, err := t.settling(ctx, x, d); err != nil {
			return err
		}
		// One exception waits for one decision by a person, so that its id follows from theirs and asking again finds it.
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

// applyDecision carries a confirmed decision out. CodeStateConflict when the exception was settled meanwhile.
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
	books, err := t.settling(ctx, x, d.ExceptionDecision)
	if err != nil {
		return exchange.Posting{}, err
	}
	_, p, err := t.decide(ctx, x, d, books)
	return p, err
}
