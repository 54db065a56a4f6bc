package store

import (
	"context"
	"database/sql"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// decidableWithdrawal is a withdrawal as officers decide about it.
func decidableWithdrawal(w exchange.Withdrawal, d exchange.Destination) decidable {
	return decidable{
		object: exchange.ApproveWithdrawal, id: w.ID, requester: w.RequestedBy, amount: w.Payout, digest: w.Digest, intent: w.Intent(d.Recipient()),
		involved: func(_ context.Context, officer uuid.UUID) error {
			switch officer {
			case w.RequestedBy, w.MerchantID:
				return exchange.Errorf(exchange.CodeForbidden, "The requester of a withdrawal can't decide about it.")
			case w.ExecutedBy:
				return exchange.Errorf(exchange.CodeForbidden, "Who executes a withdrawal can't decide about it.")
			}
			return nil
		},
		open: func() error {
			if !w.Decidable() {
				return exchange.Errorf(exchange.CodeStateConflict, "A withdrawal that is %s can't be decided.", w.Status)
			}
			return nil
		},
	}
}

func (w *outWork) decidable(ctx context.Context) (decidable, error) {
	d, err := readOne[exchange.Destination](ctx, w, "destination", readDestination, w.w.DestinationID)
	return decidableWithdrawal(w.w, d), err
}

// IssueWithdrawalTicket gives an officer the right to one decision about one withdrawal, see issueTicket.
func (s *Store) IssueWithdrawalTicket(ctx context.Context, k exchange.ApprovalTicket, by exchange.Principal) (exchange.Withdrawal, error) {
	var about exchange.Withdrawal
	err := s.inTx(ctx, "withdrawal", func(t unitTx) error {
		found, err := readOne[exchange.Withdrawal](ctx, t, "withdrawal", readWithdrawal, k.ObjectID)
		if err != nil {
			return err
		}
		about = found
		d, err := t.workOn(found).decidable(ctx)
		if err != nil {
			return err
		}
		return t.issueTicket(ctx, d, k, by)
	})
	return about, err
}

// DecideWithdrawal proves a token, applies its decision in one transaction, and moves the withdrawal when that was the last decision
// needed. The token alone identifies the officer. One rejection ends a withdrawal that was not executed. A repeated call with a counted
// token returns what the withdrawal needs. The codes are those of provenTicket.
func (s *Store) DecideWithdrawal(ctx context.Context, id uuid.UUID, token string, action exchange.ApprovalAction) (exchange.WithdrawalStanding, error) {
	var out exchange.WithdrawalStanding
	_, err := s.workWithdrawal(ctx, id, func(ctx context.Context, w *outWork) error {
		out = exchange.WithdrawalStanding{Withdrawal: w.w}
		d, err := w.decidable(ctx)
		if err != nil {
			return err
		}
		k, counted, err := w.provenTicket(ctx, d, token, action)
		if err != nil {
			return err
		}
		if !counted {
			if action == exchange.Reject && w.w.ExecutedBy != uuid.Nil {
				return exchange.Errorf(exchange.CodeStateConflict, "A withdrawal that was executed can't be rejected.")
			}
			if w.by, err = w.countTicket(ctx, d, k); err != nil {
				return err
			}
			if action == exchange.Reject {
				w.w.EndedBy, w.w.Reason, out.Rejected = w.by.UserID, k.Note, true
				err = w.end(ctx, exchange.WithdrawalRejected, exchange.DetailRejected)
				out.Withdrawal = w.w
				return err
			}
		}
		if w.w.Over() {
			return nil
		}
		if out, err = w.advance(ctx); err != nil || w.w.ExecutedBy == uuid.Nil {
			return err
		}
		out, err = w.standing(ctx)
		return err
	})
	return out, err
}

const pendingWithdrawals = `SELECT ` + withdrawalColumns + ` FROM ` + fromWithdrawals + `
WHERE (w.status = 'pending_approval' OR w.status IN ('executing', 'needs_review') AND w.status_detail IN ('approval', 'second_approval', 'destination_rest'))
    AND $1 NOT IN (w.requested_by, w.merchant_id) AND w.executed_by IS DISTINCT FROM $1
    AND NOT EXISTS (SELECT FROM approvals a WHERE a.object_type = 'otc_withdrawal' AND a.object_id = w.id AND a.officer_id = $1)
ORDER BY w.created_at, w.id LIMIT $2`

// PendingWithdrawals lists the withdrawals that the officer may decide about, the oldest first, at most a hundred.
func (s *Store) PendingWithdrawals(ctx context.Context, officer uuid.UUID) ([]exchange.Withdrawal, error) {
	return readAll[exchange.Withdrawal](ctx, s.db, "withdrawal", pendingWithdrawals, officer, maxPendingSales)
}

// failureTerms are a withdrawal that two officers end unpaid.
type failureTerms struct {
	WithdrawalID uuid.UUID `json:"withdrawal_id"`
	Note         string    `json:"note"`
}

// withdrawalTerms is what they see of it.
type withdrawalTerms struct {
	Status exchange.WithdrawalStatus `json:"status"`
	Method exchange.WithdrawalMethod `json:"payout_method"`
	Amount string                    `json:"payout_amount"`
	Asset  money.Asset               `json:"payout_asset"`
	// Weightless are the references of words that don't count and don't stop the end: of officers who may not confirm it any more,
	// and those that were taken back.
	Weightless []string `json:"references_without_weight,omitempty"`
}

func (w *outWork) terms(ctx context.Context) (withdrawalTerms, error) {
	out := withdrawalTerms{Status: w.w.Status, Method: w.w.Method, Amount: w.w.Payout.String(), Asset: w.w.Payout.Asset()}
	err := w.All(ctx, &out.Weightless, referencesWeightless, w.w.ID)
	return out, err
}

const withdrawalAlive = `SELECT withdrawal_alive(w) FROM otc_withdrawals w WHERE w.id = $1`

// ProposeWithdrawalFailure proposes to end an executed withdrawal that was not paid and can't be. Its money is free when a second officer
// confirms it. CodeStateConflict while it may have been paid, or may still be.
func (s *Store) ProposeWithdrawalFailure(ctx context.Context, id uuid.UUID, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	if err := require(note != "" && len([]rune(note)) <= exchange.MaxWithdrawalText, "/note", "required", "must say how this was found out, in at most 500 characters"); err != nil {
		return proposed, err
	}
	err := s.inTx(ctx, "withdrawal", func(t unitTx) error {
		w, err := t.startWithdrawal(ctx, id)
		if err != nil {
			return err
		}
		if err := w.unpaid(ctx); err != nil {
			return err
		}
		was, err := w.terms(ctx)
		if err != nil {
			return err
		}
		proposed, err = t.propose(ctx, exchange.ControlWithdrawalFailure, uuid.Nil, was, failureTerms{id, note}, by)
		return err
	})
	return proposed, err
}

// unpaid refuses a withdrawal that was not executed, or that may have been paid. What officers said of a payment by bank, and a payment of
// sold crypto that is not on its way, are taken back when it ends.
func (w *outWork) unpaid(ctx context.Context) error {
	if w.w.ExecutedBy == uuid.Nil || w.w.Over() {
		return exchange.Errorf(exchange.CodeStateConflict, "A withdrawal that is %s can't be ended so.", w.w.Status)
	}
	if w.w.Method == exchange.WithdrawByBank || !w.w.Sold() {
		return nil
	}
	return w.dead(ctx)
}

// dead refuses a withdrawal that may have been paid, or may still be.
func (w *outWork) dead(ctx context.Context) error {
	why, err := readOne[sql.NullString](ctx, w, "withdrawal", withdrawalAlive, w.w.ID)
	if err == nil && why.Valid {
		err = exchange.Errorf(exchange.CodeStateConflict, "The withdrawal %s.", why.String)
	}
	return err
}

const takeBackConfirmations = `UPDATE bank_confirmations SET withdrawn_at = $3 WHERE withdrawal_id = $1 AND withdrawn_at IS NULL AND officer_id = ANY ($2::uuid[])`

// applyWithdrawalFailure ends a withdrawal that two officers say was not paid.
func (t unitTx) applyWithdrawalFailure(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var none exchange.Posting
	terms, err := termsFrom[failureTerms](c)
	if err != nil {
		return none, err
	}
	w, err := t.startWithdrawal(ctx, terms.WithdrawalID)
	if err != nil {
		return none, err
	}
	was, err := w.terms(ctx)
	if err == nil {
		err = unchanged(c, was)
	}
	if err != nil {
		return none, err
	}
	w.by, w.failure, w.step.Text = by, c.ID, terms.Note
	if err := w.unpaid(ctx); err != nil {
		return none, err
	}
	if _, err := t.Exec(ctx, takeBackConfirmations, w.w.ID, pq.Array([]uuid.UUID{c.ProposedBy, by.UserID}), w.now); err != nil {
		return none, err
	}
	if err := t.takeBackWeightless(ctx, w.w.ID); err != nil {
		return none, err
	}
	if err := w.fail(ctx); err != nil {
		return none, err
	}
	return w.post, nil
}

// fail ends a withdrawal unpaid. Shillings of crypto that was sold stay in the merchant's balance.
func (w *outWork) fail(ctx context.Context) error {
	if err := w.giveUpSale(ctx); err != nil {
		return err
	}
	if err := w.dead(ctx); err != nil {
		return err
	}
	detail := exchange.DetailReleased
	if w.w.Sells() && w.w.Sold() {
		detail = exchange.DetailKept
	}
	return w.end(ctx, exchange.WithdrawalFailed, detail)
}

// FailWithdrawal ends a withdrawal whose payee can't be paid by mobile money, or of which two officers declared that it was not, as the
// class of its last attempt says; another one stays as it is.
func (s *Store) FailWithdrawal(ctx context.Context, id uuid.UUID) (exchange.Withdrawal, error) {
	return s.workWithdrawal(ctx, id, func(ctx context.Context, w *outWork) error {
		if w.w.Status != exchange.WithdrawalReview || w.w.Method != exchange.WithdrawByMomo {
			return nil
		}
		class, found, err := readFound[exchange.OutcomeClass](ctx, w, lastClass, id)
		if err != nil || !found || class != exchange.ClassPayee && class != exchange.ClassDeclared {
			return err
		}
		return w.fail(ctx)
	})
}

const lastClass = `
SELECT result_class FROM payment_attempts WHERE object_type = 'otc_withdrawal' AND object_id = $1 AND direction = 'payout' ORDER BY created_at DESC, id DESC LIMIT 1`
