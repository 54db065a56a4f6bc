package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Withdrawals that are paid by bank. An officer pays and confirms with the bank's reference; above a value another officer confirms the same,
// or a line of the bank's statement shows it.

// BeginWithdrawalBank reserves the money of an executed withdrawal at an account of the house, from which an officer pays it. A repeated call
// changes nothing. CodeInsufficientFunds when no account has enough, CodeForbidden with the cause ErrOfficers when more officers have to
// approve by now.
func (s *Store) BeginWithdrawalBank(ctx context.Context, id uuid.UUID) (exchange.Withdrawal, error) {
	return s.workWithdrawal(ctx, id, func(ctx context.Context, w *outWork) error {
		if w.w.Method != exchange.WithdrawByBank || w.w.Status != exchange.WithdrawalExecuting || !w.w.Sold() {
			return nil
		}
		if err := w.mayLeave(ctx, exchange.WithdrawalObject(id)); err != nil {
			return err
		}
		bank, err := w.bankWith(ctx, w.w.Payout)
		if err != nil {
			return err
		}
		if w.w.BankHoldID, err = w.hold("bank", bank, w.w.Payout); err != nil {
			return err
		}
		return w.move(ctx, exchange.WithdrawalConfirming, exchange.WaitBank)
	})
}

const (
	withdrawalConfirmations = `SELECT ` + confirmationColumns + ` FROM bank_confirmations c
WHERE c.withdrawal_id = ANY ($1::uuid[]) AND c.withdrawn_at IS NULL ORDER BY c.created_at, c.id`
	insertWithdrawalConfirmation = `
INSERT INTO bank_confirmations (id, withdrawal_id, officer_id, reference, paid_on, amount, note, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	referenceTaken  = `SELECT EXISTS (SELECT FROM bank_confirmations WHERE reference = $1 AND coalesce(order_id, withdrawal_id, refund_id) <> $2 AND withdrawn_at IS NULL)`
	enoughWitnesses = `SELECT withdrawal_confirmed(w) FROM otc_withdrawals w WHERE w.id = $1`
)

// confirmWithdrawal keeps what an officer says of a payment by bank, and completes the withdrawal when that is enough.
func confirmWithdrawal(ctx context.Context, w *outWork) error {
	reference := exchange.BankReference(w.step.Reference)
	if err := require(w.step.Amount.Equal(w.w.Payout), "/amount", "mismatch", "must be the amount that the withdrawal pays out"); err != nil {
		return err
	}
	on := w.step.PaidOn
	if err := require(!on.Before(exchange.DateOf(w.w.ExecutedAt)) && !on.After(exchange.DateOf(w.now)), "/paid_on", "range", "must be between the day of the execution and today"); err != nil {
		return err
	}
	if err := w.agreeOn(ctx, w.w.ID, withdrawalConfirmations, w.step, w.by); err != nil {
		return err
	}
	if err := w.witnessed(ctx, exchange.LineOfWithdrawal, w.w.ID, w.w.Payout, w.w.BankHoldID, w.step, w.by); err != nil {
		return err
	}
	w.w.LineID = w.step.LineID
	err := w.One(ctx, insertWithdrawalConfirmation, w.intent.ID, w.w.ID, w.by.UserID, reference, on, w.step.Amount.Decimal(), w.step.Text, w.now)
	if err != nil {
		return err
	}
	if err := w.record(ctx, auditEvent{by: w.by, object: "bank_confirmation", id: w.intent.ID, name: "bank_confirmation.saved", after: map[string]any{
		"id": w.intent.ID, "order_id": nil, "withdrawal_id": w.w.ID, "officer_id": w.by.UserID, "amount": w.step.Amount.String(), "currency": w.step.Amount.Asset(),
		"reference": reference, "paid_on": on.Format("2006-01-02"),
	}}); err != nil {
		return err
	}
	if err := w.move(ctx, exchange.WithdrawalConfirming, exchange.WaitBankSecond); err != nil {
		return err
	}
	return w.paidByBank(ctx, reference)
}

const (
	wordsAbout = ` FROM bank_confirmations c WHERE $1 IN (c.order_id, c.withdrawal_id, c.refund_id)`
	// weightless is a word of an officer who may not confirm a payment by bank any more.
	weightless         = ` NOT EXISTS (SELECT FROM users u WHERE u.id = c.officer_id AND u.is_active AND u.role IN ('admin', 'treasury'))`
	withdrawWeightless = `UPDATE bank_confirmations SET withdrawn_at = $2 WHERE id IN (SELECT c.id` + wordsAbout + ` AND c.withdrawn_at IS NULL AND` + weightless + `)`
	// Words that were taken back are among them: otherwise one officer could hide another's by saying something else first.
	referencesWeightless = `SELECT DISTINCT c.reference` + wordsAbout + ` AND (c.withdrawn_at IS NOT NULL OR` + weightless + `) ORDER BY c.reference`
)

// takeBackWeightless takes back what officers said of a payment by bank who may not confirm one any more. Their words don't count, and nobody
// else could replace them.
func (t unitTx) takeBackWeightless(ctx context.Context, about uuid.UUID) error {
	_, err := t.Exec(ctx, withdrawWeightless, about, t.s.now())
	return err
}

// agreeOn refuses what an officer says of a payment by bank where it contradicts other officers, whose words the query reads, or was said
// before. The officer's own other confirmation is replaced.
func (t unitTx) agreeOn(ctx context.Context, about uuid.UUID, words string, step exchange.WithdrawalStep, by exchange.Principal) error {
	if err := t.takeBackWeightless(ctx, about); err != nil {
		return err
	}
	var said []exchange.BankConfirmation
	if err := t.All(ctx, &said, words, pq.Array([]uuid.UUID{about})); err != nil {
		return err
	}
	reference := exchange.BankReference(step.Reference)
	for _, c := range said {
		switch {
		case c.OfficerID == by.UserID && c.Reference == reference && c.PaidOn.Equal(step.PaidOn) && step.LineID == uuid.Nil:
			return exchange.Errorf(exchange.CodeConflict, "You have already confirmed this payment. Another officer has to confirm it.")
		case c.OfficerID == by.UserID:
			if err := t.One(ctx, withdrawConfirmation, c.ID, t.s.now()); err != nil {
				return err
			}
		case c.Reference != reference || !c.PaidOn.Equal(step.PaidOn):
			return exchange.Errorf(exchange.CodeConflict, "Another officer has given another reference or day. Agree on the right one; the officer who was wrong then confirms again.")
		}
	}
	var taken bool
	if err := t.Get(ctx, &taken, referenceTaken, reference, about); err != nil {
		return err
	}
	if taken {
		return exchange.Errorf(exchange.CodeConflict, "The reference belongs to another payment.")
	}
	return nil
}

const lineWitness = `
SELECT l.side = 'debit' AND l.amount = $2 AND l.asset = 'KES' AND $3 IN (l.bank_reference, l.reference_code) AND l.status <> 'matched' AND line_in_time(l, $5, $6)
    AND l.bank_account_id = (SELECT a.owner_id FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = $4) AS fits
FROM bank_lines l WHERE l.id = $1`

// witnessed checks a line of the bank's statement as the second witness of a payment, if one is named: it shows exactly this payment, and the
// officer did not bring the statement in.
func (t unitTx) witnessed(ctx context.Context, object string, id uuid.UUID, m money.Amount, hold uuid.UUID, step exchange.WithdrawalStep, by exchange.Principal) error {
	if step.LineID == uuid.Nil {
		return nil
	}
	fits, found, err := readFound[bool](ctx, t, lineWitness, step.LineID, m.Decimal(), exchange.BankReference(step.Reference), hold, object, id)
	if err != nil {
		return err
	}
	if err := require(found && fits, "/statement_line_id", "mismatch", "must be a line that shows exactly this payment, and explains nothing else"); err != nil {
		return err
	}
	return t.notImporter(ctx, step.LineID, by.UserID)
}

// paidByBank completes a withdrawal whose payment by bank enough officers confirmed.
func (w *outWork) paidByBank(ctx context.Context, reference string) error {
	var enough bool
	if err := w.Get(ctx, &enough, enoughWitnesses, w.w.ID); err != nil || !enough {
		return err
	}
	bank, err := w.bankOf(ctx, w.w.BankHoldID, money.KES)
	if err != nil {
		return err
	}
	w.settle(exchange.HoldCapture, w.w.BankHoldID)
	if err := w.paid(ctx, reference, bank); err != nil || w.w.LineID == uuid.Nil {
		return err
	}
	posting, err := w.matchLine(ctx, w.w.LineID, exchange.LineOfWithdrawal, w.w.ID, w.by)
	w.post.Entries, w.post.Holds = append(w.post.Entries, posting.Entries...), append(w.post.Holds, posting.Holds...)
	return err
}

// A withdrawal that was paid by bank is found by the bank's reference, whether the bank's statement has it as its own or as ours.
const findWithdrawals = `
SELECT DISTINCT ON (w.id) l.id AS line_id, w.id AS object_id
FROM otc_withdrawals w JOIN holds h ON h.id = w.bank_hold_id JOIN ledger_accounts a ON a.id = h.account_id
    JOIN bank_lines l ON l.bank_account_id = a.owner_id AND w.receipt IN (l.bank_reference, l.reference_code) AND l.amount = w.payout_amount
WHERE w.receipt <> '' AND w.method = 'bank' AND w.status = 'completed' AND l.asset = 'KES' AND l.status <> 'matched' AND l.side = 'debit' AND line_in_time(l, 'otc_withdrawal', w.id) AND ` + undecidedLine + `
    AND NOT EXISTS (SELECT FROM bank_lines o WHERE o.object_type = 'otc_withdrawal' AND o.object_id = w.id)
ORDER BY w.id, l.value_date, l.id LIMIT $1`
