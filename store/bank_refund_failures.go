package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Refunds by bank that end unpaid: two officers agree that the bank did not pay, and the exception is open again.

// bankRefundFailure is a refund by bank that two officers end unpaid, and bankRefundState what they see of it.
type (
	bankRefundFailure struct {
		RefundID uuid.UUID `json:"refund_id"`
		Note     string    `json:"note"`
	}
	bankRefundState struct {
		Status  exchange.RefundStatus `json:"status"`
		Amount  string                `json:"amount"`
		Account string                `json:"account_number"`
		// Weightless are the references of words that don't count and don't stop the end: of officers who may not confirm it any more,
		// and those that were taken back.
		Weightless []string `json:"references_without_weight,omitempty"`
	}
)

// unpaid refuses to end a refund that is over, or that another officer than these or a statement says was paid.
func (w *backWork) unpaid(ctx context.Context, officers ...uuid.UUID) error {
	if w.f.Status != exchange.RefundPending && w.f.Status != exchange.RefundProcessing {
		return exchange.Errorf(exchange.CodeStateConflict, "A refund that is %s can't be ended so.", w.f.Status)
	}
	if _, err := w.Exec(ctx, takeBackRefundWords, w.f.ID, pq.Array(officers), w.s.now()); err != nil {
		return err
	}
	if err := w.takeBackWeightless(ctx, w.f.ID); err != nil {
		return err
	}
	var said []exchange.BankConfirmation
	if err := w.All(ctx, &said, refundConfirmations, pq.Array([]uuid.UUID{w.f.ID})); err != nil {
		return err
	}
	if len(said) > 0 {
		return exchange.Errorf(exchange.CodeConflict, "Another officer has confirmed the payment.")
	}
	var shown string
	if err := w.Get(ctx, &shown, readShown, w.f.ID); err != nil {
		return err
	}
	if shown != "" {
		return exchange.Errorf(exchange.CodeConflict, "A statement of the bank shows this payment under the reference %s. Confirm the refund by that line, or match the line first.", shown)
	}
	return nil
}

const readShown = `SELECT coalesce(refund_shown(f), '') FROM refunds f WHERE f.id = $1`

const takeBackRefundWords = `UPDATE bank_confirmations SET withdrawn_at = $3 WHERE refund_id = $1 AND withdrawn_at IS NULL AND officer_id = ANY ($2::uuid[])`

// ProposeBankRefundFailure proposes to end a refund that the bank did not pay, or that nobody will pay. When a second officer confirms it, its
// money is in suspense again and the exception is open. CodeStateConflict for one that is over.
func (s *Store) ProposeBankRefundFailure(ctx context.Context, id uuid.UUID, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	if err := require(note != "" && len([]rune(note)) <= exchange.MaxBankNote, "/note", "required", "must say how this was found out, in at most 500 characters"); err != nil {
		return proposed, err
	}
	err := s.inTx(ctx, "refund", func(t unitTx) error {
		w, err := t.startBankRefund(ctx, id)
		if err != nil {
			return err
		}
		if w.f.Status != exchange.RefundPending && w.f.Status != exchange.RefundProcessing {
			return exchange.Errorf(exchange.CodeStateConflict, "A refund that is %s can't be ended so.", w.f.Status)
		}
		was, err := w.state(ctx)
		if err != nil {
			return err
		}
		proposed, err = t.propose(ctx, exchange.ControlBankRefundFailure, uuid.Nil, was, bankRefundFailure{id, note}, by)
		return err
	})
	return proposed, err
}

func (w *backWork) state(ctx context.Context) (bankRefundState, error) {
	s := bankRefundState{Status: w.f.Status, Amount: w.f.Amount.String(), Account: w.f.Payee.AccountNumber}
	err := w.All(ctx, &s.Weightless, referencesWeightless, w.f.ID)
	return s, err
}

// applyBankRefundFailure ends a refund that two officers say was not paid. What they themselves said of its payment is taken back.
func (t unitTx) applyBankRefundFailure(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var none exchange.Posting
	terms, err := termsFrom[bankRefundFailure](c)
	if err != nil {
		return none, err
	}
	w, err := t.startBankRefund(ctx, terms.RefundID)
	if err != nil {
		return none, err
	}
	was, err := w.state(ctx)
	if err == nil {
		err = unchanged(c, was)
	}
	if err != nil {
		return none, err
	}
	w.by = by
	if err := w.unpaid(ctx, c.ProposedBy, by.UserID); err != nil {
		return none, err
	}
	before := w.f
	if w.f.BankHoldID != uuid.Nil {
		w.post.Holds = append(w.post.Holds, exchange.HoldOp{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: w.f.BankHoldID}})
	}
	w.book("returned", exchange.Debit(refundsDue(), w.f.Amount), exchange.Credit(exchange.House(exchange.AccSuspense, money.KES), w.f.Amount))
	w.f.Detail = exchange.DetailRefused
	if err := w.move(ctx, before, exchange.RefundFailed, c.ID); err != nil {
		return none, err
	}
	if err := w.endRelease(ctx, exchange.ReleaseRefund, w.f.ID); err != nil {
		return none, err
	}
	w.x, err = w.moveException(ctx, w.x, exchange.ExcOpen, clip(terms.Note, exchange.MaxExceptionReason), by)
	return w.post, err
}
