package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// Refunds by bank: the money of a payment exception that belongs to no order goes back to an account at a bank. Two officers open one by a
// control change; its flow reserves its money; officers pay it and confirm with the bank's reference, as they do for withdrawals; and two end
// one that the bank did not pay, which leaves the exception open.

// bankRefundTerms are a proposed refund by bank as officers and the database's guard read it.
type bankRefundTerms struct {
	ID            uuid.UUID `json:"id"`
	ExceptionID   uuid.UUID `json:"exception_id"`
	BankName      string    `json:"bank_name"`
	BankCode      string    `json:"bank_code"`
	Branch        string    `json:"branch"`
	SwiftCode     string    `json:"swift_code"`
	AccountName   string    `json:"account_name"`
	AccountNumber string    `json:"account_number"`
	PayeeReason   string    `json:"payee_reason"`
	Note          string    `json:"note"`
}

// bankRefundSource is the exception that it is about, and where its money came from as the bank's statement has it.
type bankRefundSource struct {
	exceptionTerms
	LineID        *uuid.UUID `json:"statement_line_id"`
	SenderAccount string     `json:"sender_account"`
	SenderName    string     `json:"sender_name"`
}

// maxRefundNote is how much of the note of a proposal is kept as the reason of the refund.
const maxRefundNote = 200

const notBack = "The money %s, so it can't go back by bank."

const readFault = `SELECT coalesce(bank_refundable(x), '') FROM payment_exceptions x WHERE x.id = $1`

// stillGoesBack checks before the money of a refund by bank is reserved what was checked when officers agreed to it: a source may dispute it by
// now. Officers then have to end the refund.
func (w *backWork) stillGoesBack(ctx context.Context) error {
	var fault string
	if err := w.Get(ctx, &fault, readFault, w.x.ID); err != nil || fault == "" {
		return err
	}
	return exchange.Wrap(exchange.CodeStateConflict, exchange.ErrOfficers, notBack, fault)
}

const readSender = `SELECT s.line_id, s.account, s.name, coalesce(bank_refundable(x), '') AS fault FROM payment_exceptions x, refund_sender(x) s WHERE x.id = $1`

// goesBack checks that the money of a locked exception may go to an account at a bank by an officer's word, and returns what the second officer
// sees of it.
func (t unitTx) goesBack(ctx context.Context, x exchange.PaymentException, to exchange.BankPayee, by exchange.Principal) (bankRefundSource, error) {
	out := bankRefundSource{exceptionTerms: termsOfException(x)}
	from, err := readOne[struct {
		LineID               uuid.NullUUID
		Account, Name, Fault string
	}](ctx, t, "payment exception", readSender, x.ID)
	if err != nil {
		return out, err
	}
	if from.LineID.Valid {
		out.LineID = &from.LineID.UUID
	}
	out.SenderAccount, out.SenderName = from.Account, from.Name
	switch {
	case x.Status != exchange.ExcOpen:
		return out, exchange.Errorf(exchange.CodeStateConflict, "The payment exception is already %s.", x.Status)
	case from.Fault != "":
		return out, exchange.Errorf(exchange.CodeStateConflict, notBack, from.Fault)
	}
	if err := require(to.AccountNumber == from.Account || to.Reason != "", "/payee_reason", "required",
		"is required: the bank's statement does not say that the money came from this account"); err != nil {
		return out, err
	}
	return out, t.notImporter(ctx, from.LineID.UUID, by.UserID)
}

// ProposeBankRefund proposes to send the money of an open exception to an account at a bank. A second officer confirms exactly that. A repeated
// proposal by the same officer returns the waiting one. CodeStateConflict when the money is settled, did not come, belongs to an order, or is
// another object's; CodeInvalid for an account that the money is not known to come from, without a reason; CodeForbidden for an officer who
// brought the statement in that shows the money.
func (s *Store) ProposeBankRefund(ctx context.Context, r exchange.BankRefundRequest, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	if err := require(r.Note != "" && len([]rune(r.Note)) <= exchange.MaxExceptionReason, "/note", "required", "must say why, in at most 500 characters"); err != nil {
		return proposed, err
	}
	err := s.inTx(ctx, "payment exception", func(t unitTx) error {
		x, err := t.lockedException(ctx, r.ExceptionID)
		if err != nil {
			return err
		}
		was, err := t.goesBack(ctx, x, r.Payee, by)
		if err != nil {
			return err
		}
		// A repeated request finds its proposal: its id follows from what it says.
		p := r.Payee
		terms := bankRefundTerms{
			ID:          uuid.NewSHA1(x.ID, []byte(by.UserID.String()+p.BankName+"\n"+p.BankCode+"\n"+p.Branch+"\n"+p.SwiftCode+"\n"+p.AccountName+"\n"+p.AccountNumber+"\n"+p.Reason+"\n"+r.Note+"\n"+x.UpdatedAt.UTC().Format(time.RFC3339Nano))),
			ExceptionID: x.ID, BankName: p.BankName, BankCode: p.BankCode, Branch: p.Branch, SwiftCode: p.SwiftCode, AccountName: p.AccountName,
			AccountNumber: p.AccountNumber, PayeeReason: p.Reason, Note: r.Note,
		}
		proposed, err = t.propose(ctx, exchange.ControlBankRefund, uuid.Nil, was, terms, by)
		return err
	})
	return proposed, err
}

const insertBankRefund = `
INSERT INTO refunds (id, rail, exception_id, asset, amount, reason, status, bank_name, bank_code, branch, swift_code, account_name, account_number, payee_reason, requested_by, change_id,
    created_at, updated_at)
VALUES ($1, 'bank', $2, $3, $4, $5, 'pending', $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15) RETURNING ` + refundColumns

// applyBankRefund opens the refund that two officers agreed on: its money leaves suspense. CodeStateConflict when the exception was settled
// meanwhile, or its money proved to be another object's.
func (t unitTx) applyBankRefund(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var none exchange.Posting
	r, err := termsFrom[bankRefundTerms](c)
	if err != nil {
		return none, err
	}
	x, err := t.lockedException(ctx, r.ExceptionID)
	if err != nil {
		return none, err
	}
	now, err := t.goesBack(ctx, x, exchange.BankPayee{AccountNumber: r.AccountNumber, Reason: r.PayeeReason}, by)
	if err == nil {
		err = unchanged(c, now)
	}
	if err != nil {
		return none, err
	}
	if x, err = t.moveException(ctx, x, exchange.ExcRefunding, "", by); err != nil {
		return none, err
	}
	w := &backWork{unitTx: t, x: x, by: by}
	err = t.Get(ctx, &w.f, insertBankRefund, r.ID, x.ID, x.Amount.Asset(), x.Amount.Decimal(), clip(r.Note, maxRefundNote), r.BankName, r.BankCode, r.Branch, r.SwiftCode, r.AccountName,
		r.AccountNumber, r.PayeeReason, c.ProposedBy, c.ID, t.s.now())
	if err != nil {
		return none, err
	}
	w.book("due", exchange.Debit(exchange.House(exchange.AccSuspense, money.KES), x.Amount), exchange.Credit(refundsDue(), x.Amount))
	return w.post, w.event(ctx, "refund.pending", nil)
}

func refundsDue() exchange.AccountRef { return exchange.House(exchange.AccRefundsDue, money.KES) }

// backWork is one change of a refund by bank within its transaction. The exception is locked first, then the refund.
type backWork struct {
	unitTx
	f    exchange.Refund
	x    exchange.PaymentException
	by   exchange.Principal
	post exchange.Posting
}

const exceptionOfRefund = `SELECT exception_id FROM refunds WHERE id = $1 AND rail = 'bank'`

// workBankRefund runs a change of a refund by bank under its lock.
func (s *Store) workBankRefund(ctx context.Context, id uuid.UUID, do func(context.Context, *backWork) error) (exchange.Refund, error) {
	return change(ctx, s, "refund", id, func(ctx context.Context, t unitTx) (exchange.Refund, exchange.Posting, error) {
		w, err := t.startBankRefund(ctx, id)
		if err == nil {
			err = do(ctx, w)
		}
		if err != nil {
			return exchange.Refund{}, exchange.Posting{}, err
		}
		return w.f, w.post, nil
	})
}

func (t unitTx) startBankRefund(ctx context.Context, id uuid.UUID) (*backWork, error) {
	exception, err := readOne[uuid.UUID](ctx, t, "refund", exceptionOfRefund, id)
	if err != nil {
		return nil, err
	}
	w := &backWork{unitTx: t, by: flow}
	if w.x, err = t.lockedException(ctx, exception); err == nil {
		w.f, err = readOne[exchange.Refund](ctx, t, "refund", lockRefund, id)
	}
	return w, err
}

// book adds an entry of the ledger about the refund.
func (w *backWork) book(what string, lines ...exchange.Line) {
	w.post.Entries = append(w.post.Entries, exchange.Entry{
		Key: "refund:" + w.f.ID.String() + ":" + what, Kind: "bank_refund." + what, ObjectType: "refund", ObjectID: w.f.ID, Lines: lines,
	})
}

// event notes a change of the refund for the owner of its exception.
func (w *backWork) event(ctx context.Context, name string, before *exchange.Refund) error {
	owner, err := w.ownerOfException(ctx, w.x)
	if err != nil {
		return err
	}
	noted := auditEvent{by: w.by, object: "refund", id: w.f.ID, name: name, owner: owner, after: refundSnapshot(w.f, w.f.Detail)}
	if before != nil {
		noted.before = refundSnapshot(*before, before.Detail)
	}
	return w.record(ctx, noted)
}

const saveBankRefund = `
UPDATE refunds SET status = $3, detail = $4, receipt = $5, bank_hold_id = $6, begun_at = $7, statement_line_id = $8, failure_id = $9, completed_at = $10, updated_at = $11, version = version + 1
WHERE id = $1 AND version = $2 RETURNING ` + refundColumns

// move stores the refund in a status, which may be the one that it has.
func (w *backWork) move(ctx context.Context, before exchange.Refund, to exchange.RefundStatus, failure uuid.UUID) error {
	if to != before.Status {
		if err := exchange.RefundMachine.Allow(before.Status, to); err != nil {
			return err
		}
	}
	f := w.f
	var done time.Time
	if to == exchange.RefundCompleted {
		done = w.s.now()
	}
	var rows []exchange.Refund
	err := w.All(ctx, &rows, saveBankRefund, f.ID, before.Version, to, f.Detail, f.Receipt, nullID(f.BankHoldID), nullTime(f.BegunAt), nullID(f.LineID), nullID(failure), nullTime(done), w.s.now())
	if err == nil && len(rows) == 0 {
		err = pg.ErrChangedMeanwhile
	}
	if err != nil {
		return err
	}
	w.f = rows[0]
	name := "refund." + string(to)
	if to == before.Status {
		name = "refund.changed"
	}
	return w.event(ctx, name, &before)
}

// BeginBankRefund reserves the money of a refund at an account of the house, from which an officer pays it. A repeated call changes nothing.
// CodeInsufficientFunds when no account has enough, CodeForbidden with the cause ErrOfficers when the two officers who opened it may not decide
// any more, CodeStateConflict with that cause when the money may not go back any more, as when a source disputes it, CodeSuspended while payouts
// are frozen or the database is not released.
func (s *Store) BeginBankRefund(ctx context.Context, id uuid.UUID) (exchange.Refund, error) {
	return s.workBankRefund(ctx, id, func(ctx context.Context, w *backWork) error {
		if w.f.Status != exchange.RefundPending {
			return nil
		}
		if err := w.stillGoesBack(ctx); err != nil {
			return err
		}
		if err := w.mayLeave(ctx, exchange.RefundObject(id)); err != nil {
			return err
		}
		bank, err := w.bankWith(ctx, w.f.Amount)
		if err != nil {
			return err
		}
		hold, err := uuid.NewV7()
		if err != nil {
			return err
		}
		w.post.Holds = append(w.post.Holds, exchange.HoldOp{Verb: exchange.HoldPlace, Hold: exchange.Hold{
			ID: hold, Key: "bank_refund:" + id.String(), Account: bank, Amount: w.f.Amount, ObjectType: "refund", ObjectID: id,
		}})
		before := w.f
		w.f.BankHoldID, w.f.BegunAt, w.f.Detail = hold, w.s.now(), ""
		err = w.move(ctx, before, exchange.RefundProcessing, uuid.Nil)
		w.f.BankID = bank.Owner // the hold is written last
		return err
	})
}

// MarkBankRefund stores what a refund by bank that is not over waits for.
func (s *Store) MarkBankRefund(ctx context.Context, id uuid.UUID, detail string) (exchange.Refund, error) {
	return s.workBankRefund(ctx, id, func(ctx context.Context, w *backWork) error {
		if w.f.Status != exchange.RefundPending && w.f.Status != exchange.RefundProcessing || w.f.Detail == detail {
			return nil
		}
		before := w.f
		w.f.Detail = detail
		return w.move(ctx, before, before.Status, uuid.Nil)
	})
}

const (
	refundConfirmations = `SELECT ` + confirmationColumns + ` FROM bank_confirmations c
WHERE c.refund_id = ANY ($1::uuid[]) AND c.withdrawn_at IS NULL ORDER BY c.created_at, c.id`
	insertRefundConfirmation = `
INSERT INTO bank_confirmations (id, refund_id, officer_id, reference, paid_on, amount, note, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	// The row does not name the line yet that an officer names now.
	enoughForRefund = `SELECT refund_confirmed(jsonb_populate_record(f, jsonb_build_object('statement_line_id', $2::uuid))) FROM refunds f WHERE f.id = $1`
)

// RefundConfirmations reads what officers say of the payment of refunds by bank, by their ids, the oldest first.
func (s *Store) RefundConfirmations(ctx context.Context, all []exchange.Refund) (map[uuid.UUID][]exchange.BankConfirmation, error) {
	var ids []uuid.UUID
	for _, f := range all {
		if f.Rail == exchange.RefundByBank {
			ids = append(ids, f.ID)
		}
	}
	said := map[uuid.UUID][]exchange.BankConfirmation{}
	if len(ids) == 0 {
		return said, nil
	}
	rows, err := readAll[exchange.BankConfirmation](ctx, s.db, "confirmation", refundConfirmations, pq.Array(ids))
	for _, c := range rows {
		said[c.RefundID] = append(said[c.RefundID], c)
	}
	return said, err
}

// ConfirmBankRefund keeps what an officer says of the payment of a refund by bank, by the officer's intent, and completes the refund when that
// is enough: another officer says the same, a line of the bank's statement shows it, or the amount needs no more. A repeated call returns the
// refund as it is. The errors of useIntent come first; then CodeInvalid for an amount or a day that are not the payment's, CodeConflict for
// another reference than other officers gave, CodeStateConflict for a refund that waits for no payment, CodeForbidden for who proposed it.
func (s *Store) ConfirmBankRefund(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Refund, error) {
	return s.workBankRefund(ctx, id, func(ctx context.Context, w *backWork) error {
		i, used, err := w.useIntent(ctx, a, exchange.IntendRefundPaid)
		if err == nil && i.ObjectID != id {
			err = exchange.Errorf(exchange.CodeNotFound, "There is no such intent for this object.")
		}
		if err != nil || used {
			return err
		}
		w.by = i.By
		if err := w.stillMay(ctx, i.By); err != nil {
			return err
		}
		step, err := exchange.WithdrawalStepOf(i)
		if err == nil {
			err = step.Check(i.Kind)
		}
		if err != nil {
			return err
		}
		return w.confirm(ctx, i.ID, step)
	})
}

func (w *backWork) confirm(ctx context.Context, id uuid.UUID, step exchange.WithdrawalStep) error {
	switch {
	case w.f.Status != exchange.RefundProcessing:
		return exchange.Errorf(exchange.CodeStateConflict, "The refund is %s. It does not wait for a payment by bank.", w.f.Status)
	case w.f.RequestedBy == w.by.UserID:
		return exchange.Errorf(exchange.CodeForbidden, "Who proposed a refund can't confirm that it was paid. Another officer has to.")
	}
	if err := require(step.Amount.Equal(w.f.Amount), "/amount", "mismatch", "must be the amount of the refund"); err != nil {
		return err
	}
	if err := require(!step.PaidOn.Before(exchange.DateOf(w.f.BegunAt)) && !step.PaidOn.After(exchange.DateOf(w.s.now())), "/paid_on", "range",
		"must be between the day on which its money was reserved and today"); err != nil {
		return err
	}
	if err := w.agreeOn(ctx, w.f.ID, refundConfirmations, step, w.by); err != nil {
		return err
	}
	if err := w.witnessed(ctx, exchange.LineOfRefund, w.f.ID, w.f.Amount, w.f.BankHoldID, step, w.by); err != nil {
		return err
	}
	reference := exchange.BankReference(step.Reference)
	if err := w.One(ctx, insertRefundConfirmation, id, w.f.ID, w.by.UserID, reference, step.PaidOn, step.Amount.Decimal(), step.Text, w.s.now()); err != nil {
		return err
	}
	if err := w.record(ctx, auditEvent{by: w.by, object: "bank_confirmation", id: id, name: "bank_confirmation.saved", after: map[string]any{
		"id": id, "order_id": nil, "refund_id": w.f.ID, "officer_id": w.by.UserID, "amount": step.Amount.String(), "currency": step.Amount.Asset(),
		"reference": reference, "paid_on": step.PaidOn.Format(time.DateOnly),
	}}); err != nil {
		return err
	}
	var enough bool
	if err := w.Get(ctx, &enough, enoughForRefund, w.f.ID, nullID(step.LineID)); err != nil {
		return err
	}
	before := w.f
	if !enough {
		w.f.Detail = exchange.WaitBankSecond
		return w.move(ctx, before, before.Status, uuid.Nil)
	}
	w.f.Detail, w.f.Receipt, w.f.LineID = "", reference, step.LineID
	return w.paid(ctx, before)
}

// paid completes a refund that left a bank account of the house, and its exception.
func (w *backWork) paid(ctx context.Context, before exchange.Refund) error {
	bank, err := w.bankOf(ctx, w.f.BankHoldID, money.KES)
	if err != nil {
		return err
	}
	w.post.Holds = append(w.post.Holds, exchange.HoldOp{Verb: exchange.HoldCapture, Hold: exchange.Hold{ID: w.f.BankHoldID}})
	w.book("paid", exchange.Debit(refundsDue(), w.f.Amount), exchange.Credit(bank, w.f.Amount))
	if err := w.move(ctx, before, exchange.RefundCompleted, uuid.Nil); err != nil {
		return err
	}
	if w.x, err = w.moveException(ctx, w.x, exchange.ExcRefunded, w.x.Note, w.by); err != nil || w.f.LineID == uuid.Nil {
		return err
	}
	posting, err := w.matchLine(ctx, w.f.LineID, exchange.LineOfRefund, w.f.ID, w.by)
	w.post.Entries = append(w.post.Entries, posting.Entries...)
	return err
}

// A refund that was paid by bank is found by the bank's reference, whether the bank's statement has it as its own or as ours.
const findBankRefunds = `
SELECT DISTINCT ON (f.id) l.id AS line_id, f.id AS object_id
FROM refunds f JOIN holds h ON h.id = f.bank_hold_id JOIN ledger_accounts a ON a.id = h.account_id
    JOIN bank_lines l ON l.bank_account_id = a.owner_id AND f.receipt IN (l.bank_reference, l.reference_code) AND l.amount = f.amount
WHERE f.rail = 'bank' AND f.receipt <> '' AND f.status = 'completed' AND l.asset = 'KES' AND l.status <> 'matched' AND l.side = 'debit' AND line_in_time(l, 'bank_refund', f.id) AND ` + undecidedLine + `
    AND NOT EXISTS (SELECT FROM bank_lines o WHERE o.object_type = 'bank_refund' AND o.object_id = f.id)
ORDER BY f.id, l.value_date, l.id LIMIT $1`
