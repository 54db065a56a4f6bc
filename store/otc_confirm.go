package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// What proves a deposit's money: a bank's line and the officer who holds the deposit, or that officer and another one who typed the same.

const otcSaid = `id, deposit_id, officer_id, amount||' KES' AS amount, value_date, bank_account_id AS bank_id, reference, line_id, at`

const (
	readSaid     = `SELECT ` + otcSaid + ` FROM otc_confirmations WHERE deposit_id = $1 AND withdrawn_at IS NULL ORDER BY at, id`
	withdrawSaid = `UPDATE otc_confirmations SET withdrawn_at = $2 WHERE deposit_id = $1 AND withdrawn_at IS NULL`
	insertSaid   = `
INSERT INTO otc_confirmations (id, deposit_id, officer_id, amount, value_date, bank_account_id, reference, line_id, first, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
)

// OTCSecondLife is how long a claim waits for a second officer.
const OTCSecondLife = 24 * time.Hour

func (w *otcWork) withdrawSaid(ctx context.Context) error {
	_, err := w.Exec(ctx, withdrawSaid, w.d.ID, w.now)
	return err
}

// confirmOTC takes what an officer says of a deposit's money. With a line, or for money that the operator proved, one officer who holds
// the deposit confirms it. Without one the first officer's words wait, and a second officer's same words confirm them.
func confirmOTC(ctx context.Context, w *otcWork) error {
	said, err := readAll[exchange.OTCConfirmation](ctx, w, "confirmation", readSaid, w.d.ID)
	if err != nil {
		return err
	}
	if len(said) > 0 && said[0].OfficerID != w.by.UserID {
		return w.agreeOTC(ctx, said[0])
	}
	if err := w.holds(); err != nil {
		return err
	}
	if w.d.TookPart(w.by.UserID) {
		return exchange.Errorf(exchange.CodeForbidden, "Who created a deposit can't confirm it.")
	}
	if w.step.ValueDate.After(exchange.DateOf(w.now)) {
		return unproven("/value_date", "must not be in the future")
	}
	if err := w.withdrawSaid(ctx); err != nil { // the officer's own earlier words
		return err
	}
	w.noted()
	switch {
	case w.d.Method != exchange.OTCByBank:
		return w.confirmProven(ctx)
	case w.step.LineID != uuid.Nil || w.d.LineID != uuid.Nil:
		return w.confirmLine(ctx)
	}
	return w.sayFirst(ctx)
}

// unproven refuses a field of a confirmation.
func unproven(pointer, message string) error {
	return require(false, pointer, "mismatch", message)
}

// confirmProven confirms money that two sources of the operator prove.
func (w *otcWork) confirmProven(ctx context.Context) error {
	if !w.d.HasMoney() {
		return exchange.Errorf(exchange.CodeStateConflict, "No payment of the deposit is proven yet.")
	}
	if err := w.asReceived(w.d.Received, w.d.ValueDate); err != nil {
		return err
	}
	return w.confirmed(ctx, w.by.UserID, uuid.Nil)
}

// asReceived compares an officer's words with what is known.
func (w *otcWork) asReceived(amount money.Amount, value time.Time) error {
	if !amount.Equal(w.step.Received) {
		return unproven("/received_amount", "must be what came, "+amount.String())
	}
	if !value.Equal(w.step.ValueDate) {
		return unproven("/value_date", "must be the value date of the payment, "+value.Format(time.DateOnly))
	}
	return nil
}

const namesAnother = `SELECT EXISTS (SELECT FROM bank_lines l JOIN otc_deposits d ON d.payment_reference = substring(l.reference_code FROM 'KVD[0-9A-Z]{9}')
WHERE l.id = $1 AND d.merchant_id <> $2)`

// confirmLine confirms a deposit by the line that is matched with it, or that the officer names.
func (w *otcWork) confirmLine(ctx context.Context) error {
	id := w.step.LineID
	if err := require(id != uuid.Nil, "/statement_line_id", "required", "is required: the statement shows the payment"); err != nil {
		return err
	}
	if w.d.HasMoney() && w.d.LineID == uuid.Nil {
		return unproven("/statement_line_id", "must be left out: the money is booked by its reference, and its line is matched with it when it comes")
	}
	if w.d.LineID != uuid.Nil && id != w.d.LineID {
		return unproven("/statement_line_id", "must be the line that is matched with the deposit, "+w.d.LineID.String())
	}
	l, err := readOne[exchange.StatementLine](ctx, w, "statement line", lockLine, id)
	if err != nil {
		if exchange.CodeOf(translate(err, "")) == exchange.CodeNotFound {
			return unproven("/statement_line_id", "must be a line of a bank's statement")
		}
		return err
	}
	if err := require(l.Side == exchange.SideCredit && l.Amount.Asset() == w.d.Fiat.Asset(), "/statement_line_id", "mismatch", "must be money that came in"); err != nil {
		return err
	}
	if err := w.asReceived(l.Amount, l.ValueDate); err != nil {
		return err
	}
	var theirs bool
	if err := w.Get(ctx, &theirs, namesAnother, l.ID, w.d.MerchantID); err != nil {
		return err
	}
	if theirs {
		return unproven("/statement_line_id", "must not name the deposit of another merchant")
	}
	if err := w.notImporter(ctx, l.ID, w.by.UserID); err != nil {
		return err
	}
	if err := w.say(ctx, l.BankID, l.BankReference, l.ID, true); err != nil {
		return err
	}
	if w.d.LineID == uuid.Nil {
		if err := w.receiveLine(ctx, l); err != nil {
			return err
		}
	}
	return w.confirmed(ctx, w.by.UserID, uuid.Nil)
}

// notImporter refuses an officer who brought the statement of a line in: alone nobody turns a line into somebody's money.
func (t unitTx) notImporter(ctx context.Context, line, officer uuid.UUID) error {
	if line == uuid.Nil {
		return nil
	}
	var l struct {
		Side                   exchange.StatementSide
		ImportedBy, UploadedBy uuid.UUID
	}
	if err := t.Get(ctx, &l, readImporters, line); err != nil {
		return err
	}
	if l.ImportedBy == officer || l.UploadedBy == officer {
		return exchange.Errorf(exchange.CodeForbidden, "You brought the bank's statement in. Another officer has to do this.")
	}
	return nil
}

// say keeps what the officer said.
func (w *otcWork) say(ctx context.Context, bank uuid.UUID, reference string, line uuid.UUID, first bool) error {
	err := w.One(ctx, insertSaid, w.intent.ID, w.d.ID, w.by.UserID, w.step.Received.Decimal(), w.step.ValueDate, nullID(bank), reference, nullID(line), first, w.now)
	if pg.Broke(err, "otc_confirmations_reference_key") {
		return exchange.Wrap(exchange.CodeConflict, err, "The reference belongs to the payment of another deposit.")
	}
	return err
}

// Money that two officers typed, whose line has still to come. Its reference is spent, also when the deposit has ended since.
const spentReference = `SELECT EXISTS (SELECT FROM otc_deposits WHERE method = 'bank' AND received_at IS NOT NULL AND statement_line_id IS NULL AND bank_account_id = $2
    AND bank_reference = $3 AND id <> $1)`

// sayFirst keeps the words of the officer who holds the deposit, until another officer has said the same.
func (w *otcWork) sayFirst(ctx context.Context) error {
	bank, reference := w.step.BankID, exchange.BankReference(w.step.Reference)
	if err := require(reference != "", "/bank_reference", "required", "or statement_line_id is required"); err != nil {
		return err
	}
	if bank == uuid.Nil {
		bank = w.d.BankID
	}
	b, known, err := readFound[exchange.HouseBankAccount](ctx, w, readBankAccount, bank)
	if err != nil {
		return err
	}
	if err := require(known && b.Currency == w.d.Fiat.Asset(), "/bank_account_id", "not_found", "must be a bank account of the house"); err != nil {
		return err
	}
	if w.d.HasMoney() { // confirmed before by an officer who is gone
		if err := w.asReceived(w.d.Received, w.d.ValueDate); err != nil {
			return err
		}
		if bank != w.d.BankID || reference != w.d.BankRef {
			return unproven("/bank_reference", "must be that of the payment which is booked")
		}
	}
	var spent bool
	if err := w.Get(ctx, &spent, spentReference, w.d.ID, bank, reference); err != nil {
		return err
	}
	if spent {
		return exchange.Errorf(exchange.CodeConflict, "The reference belongs to the payment of another deposit.")
	}
	if err := w.flagSame(ctx, exchange.FlagSameReference, sameReference, reference); err != nil {
		return err
	}
	if err := w.say(ctx, bank, reference, uuid.Nil, true); err != nil {
		return err
	}
	w.d.ClaimEndsAt = w.now.Add(OTCSecondLife)
	return w.move(ctx, exchange.OTCClaimed, exchange.WaitSecond)
}

// agreeOTC is a second officer's word about money that no line shows. It must be the first one's.
func (w *otcWork) agreeOTC(ctx context.Context, first exchange.OTCConfirmation) error {
	if w.d.TookPart(w.by.UserID) {
		return exchange.Errorf(exchange.CodeForbidden, "Who created a deposit can't confirm it.")
	}
	if !w.d.Held(first.OfficerID, w.now) {
		return exchange.Errorf(exchange.CodeConflict, "The first officer's claim has ended. Claim the deposit to confirm it.")
	}
	bank := w.step.BankID
	if bank == uuid.Nil {
		bank = w.d.BankID
	}
	same := w.step.LineID == uuid.Nil && first.LineID == uuid.Nil && first.Amount.Equal(w.step.Received) && first.ValueDate.Equal(w.step.ValueDate) &&
		first.BankID == bank && first.Reference == exchange.BankReference(w.step.Reference)
	if !same {
		return exchange.Errorf(exchange.CodeConflict, "Another officer has said otherwise. Agree on what is right; who was wrong confirms again, or releases the deposit.")
	}
	if err := w.say(ctx, first.BankID, first.Reference, uuid.Nil, false); err != nil {
		return err
	}
	if !w.d.HasMoney() {
		w.d.Received, w.d.ValueDate, w.d.BankID, w.d.BankRef = first.Amount, first.ValueDate, first.BankID, first.Reference
		if err := w.receive(ctx); err != nil {
			return err
		}
	}
	return w.confirmed(ctx, first.OfficerID, w.by.UserID)
}

// confirmed moves a deposit whose money is proven: to its settlement where its price covers what came, and otherwise back to the
// merchant.
func (w *otcWork) confirmed(ctx context.Context, by, agreed uuid.UUID) error {
	w.d.ConfirmedBy, w.d.AgreedBy, w.d.ConfirmedAt = by, agreed, w.now
	w.d.ClaimedBy, w.d.ClaimEndsAt = uuid.Nil, time.Time{}
	return w.priceReceived(ctx)
}

// priceReceived prices what came. Within the quote's bounds that is done at its rate; the value date decides whether it holds.
func (w *otcWork) priceReceived(ctx context.Context) error {
	covered := w.d.QuoteHolds(w.d.Received, w.d.ValueDate, exchange.DateOf(w.d.QuoteEndsAt))
	if covered {
		err := w.price(ctx, w.d.Received)
		if exchange.CodeOf(err) == exchange.CodeInvalid {
			covered, err = false, nil // less than the fee
		}
		if err != nil {
			return err
		}
	}
	if !covered {
		w.d.InfoRequest, w.d.InfoReply = "", ""
		return w.move(ctx, exchange.OTCInfo, exchange.WaitRequote)
	}
	return w.move(ctx, exchange.OTCConfirmed, exchange.WaitSettle)
}
