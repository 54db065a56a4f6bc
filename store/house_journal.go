package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// Journal entries: what happened to the house's money outside of Kivuko. One treasury officer proposes an entry and another
// confirms it; the transaction of the confirmation books it.

const journalColumns = `j.id, j.kind, j.bank_account_id AS bank_id, coalesce(j.float_account, '') AS float_account, j.amount||' '||j.asset AS amount, j.value_date,
	j.line_id, j.file_id, j.corrects, (SELECT c.id FROM journal_entries c WHERE c.corrects = j.id) AS corrected_by, j.note, j.proposed_by, j.confirmed_by, j.change_id, j.booked_at`

const readJournalEntry = `SELECT ` + journalColumns + ` FROM journal_entries j WHERE j.id = $1`

// journalTerms are an entry as its control change has it.
type journalTerms struct {
	ID            uuid.UUID            `json:"id"`
	Kind          exchange.JournalKind `json:"journal_kind"`
	BankAccountID *uuid.UUID           `json:"bank_account_id"`
	FloatAccount  *string              `json:"float_account"`
	Amount        string               `json:"amount"`
	Currency      money.Asset          `json:"currency"`
	ValueDate     string               `json:"value_date"`
	LineID        *uuid.UUID           `json:"statement_line_id"`
	FileID        *uuid.UUID           `json:"file_id"`
	Corrects      *uuid.UUID           `json:"corrects"`
	Note          string               `json:"note"`
}

func termsOfJournal(e exchange.JournalEntry) journalTerms {
	terms := journalTerms{
		ID: e.ID, Kind: e.Kind, BankAccountID: pointerTo(e.BankID), Amount: plain(e.Amount), Currency: e.Amount.Asset(), ValueDate: e.ValueDate.Format(time.DateOnly),
		LineID: pointerTo(e.LineID), FileID: pointerTo(e.FileID), Corrects: pointerTo(e.Corrects), Note: e.Note,
	}
	if e.FloatAccount != "" {
		terms.FloatAccount = &e.FloatAccount
	}
	return terms
}

func (j journalTerms) entry() (exchange.JournalEntry, error) {
	e := exchange.JournalEntry{ID: j.ID, Kind: j.Kind, BankID: idAt(j.BankAccountID), LineID: idAt(j.LineID), FileID: idAt(j.FileID), Corrects: idAt(j.Corrects), Note: j.Note}
	if j.FloatAccount != nil {
		e.FloatAccount = *j.FloatAccount
	}
	var err error
	if e.Amount, err = money.Parse(j.Currency, j.Amount); err != nil {
		return e, err
	}
	e.ValueDate, err = time.Parse(time.DateOnly, j.ValueDate)
	return e, err
}

// idAt is the id that a pointer has, or the zero id.
func idAt(p *uuid.UUID) uuid.UUID {
	if p == nil {
		return uuid.Nil
	}
	return *p
}

func journalSnapshot(e exchange.JournalEntry) map[string]any {
	terms := termsOfJournal(e)
	return map[string]any{
		"id": e.ID, "kind": e.Kind, "bank_account_id": terms.BankAccountID, "float_account": terms.FloatAccount, "amount": e.Amount.String(),
		"currency": terms.Currency, "value_date": terms.ValueDate, "statement_line_id": terms.LineID, "file_id": terms.FileID, "corrects": terms.Corrects, "note": e.Note, "proposed_by": e.ProposedBy, "confirmed_by": e.ConfirmedBy,
	}
}

// ProposeJournalEntry proposes an entry, which another treasury officer confirms. Of a correction only the id, the corrected
// entry, the value date and the evidence count; the rest is that of the entry which it undoes. A repeated proposal returns the
// waiting one. CodeInvalid names what is wrong, CodeConflict when it is booked already. Whether the account has enough is asked
// when it is confirmed.
func (s *Store) ProposeJournalEntry(ctx context.Context, e exchange.JournalEntry, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "journal entry", func(t unitTx) error {
		if _, known, err := readFound[exchange.JournalEntry](ctx, t, readJournalEntry, e.ID); err != nil || known {
			if err == nil {
				err = exchange.Errorf(exchange.CodeConflict, "The entry is booked already.")
			}
			return err
		}
		full, old, err := t.checkJournal(ctx, e, by)
		if err != nil {
			return err
		}
		var was any = struct{}{}
		if old.ID != uuid.Nil {
			was = termsOfJournal(old)
		}
		proposed, err = t.propose(ctx, exchange.ControlJournalEntry, uuid.Nil, was, termsOfJournal(full), by)
		return err
	})
	return proposed, err
}

// checkJournal checks an entry against what it names, and fills in what a correction takes over from the entry that it undoes.
func (t unitTx) checkJournal(ctx context.Context, e exchange.JournalEntry, by exchange.Principal) (full, old exchange.JournalEntry, err error) {
	if e.Kind == exchange.JournalCorrection {
		if old, err = t.correctedEntry(ctx, e.Corrects); err != nil {
			return e, old, err
		}
		e.BankID, e.FloatAccount, e.Amount = old.BankID, old.FloatAccount, old.Amount
	}
	if e.ValueDate.After(exchange.KenyanDay(t.s.now())) {
		return e, old, exchange.Invalid(exchange.FieldError{Pointer: "/value_date", Code: "range", Message: "must not be in the future"})
	}
	if e.BankID != uuid.Nil {
		b, known, err := readFound[exchange.HouseBankAccount](ctx, t, readBankAccount, e.BankID)
		if err != nil {
			return e, old, err
		}
		if err := require(known && b.Currency == e.Amount.Asset(), "/bank_account_id", "not_found", "must be a bank account of the house in this currency"); err != nil {
			return e, old, err
		}
	}
	if e.FileID != uuid.Nil {
		if err := t.checkEvidence(ctx, e.FileID, by); err != nil {
			return e, old, err
		}
	}
	if e.LineID != uuid.Nil {
		return e, old, t.checkShown(ctx, e, old)
	}
	return e, old, nil
}

// checkEvidence checks the file that an entry names.
func (t unitTx) checkEvidence(ctx context.Context, id uuid.UUID, by exchange.Principal) error {
	f, err := t.visibleFile(ctx, ViewOf(by, exchange.ActReadFiles), id)
	if code := exchange.CodeOf(err); code == exchange.CodeNotFound || code == exchange.CodeExpired {
		return require(false, "/file_id", "not_found", "must be a file")
	}
	if err != nil {
		return err
	}
	return require(f.Purpose == exchange.FileExceptionEvidence && f.Type == exchange.FilePDF, "/file_id", "purpose", "must be a PDF uploaded for the purpose exception_evidence")
}

// checkShown checks the statement line that an entry names.
func (t unitTx) checkShown(ctx context.Context, e, old exchange.JournalEntry) error {
	l, known, err := readFound[exchange.StatementLine](ctx, t, readLine, e.LineID)
	if err != nil {
		return err
	}
	refuse := func(ok bool, code, message string) {
		if err == nil {
			err = require(ok, "/statement_line_id", code, message)
		}
	}
	refuse(known, "not_found", "must be a line of a bank's statement")
	refuse(l.BankID == e.BankID, "mismatch", "must be a line of the entry's bank account")
	refuse(l.Side == e.Side(old), "mismatch", "must be on the side of the account on which the entry is")
	refuse(err != nil || l.Amount.Equal(e.Amount), "mismatch", "must have the amount of the entry")
	refuse(l.ValueDate.Equal(e.ValueDate), "mismatch", "must have the value date of the entry")
	if err == nil && (l.Status == exchange.LineMatched || l.Status == exchange.LineAside && l.ExceptionID == uuid.Nil) {
		err = exchange.Errorf(exchange.CodeStateConflict, "The statement line is explained or decided already.")
	}
	return err
}

// correctedEntry reads an entry that can be corrected.
func (t unitTx) correctedEntry(ctx context.Context, id uuid.UUID) (exchange.JournalEntry, error) {
	old, known, err := readFound[exchange.JournalEntry](ctx, t, readJournalEntry, id)
	switch {
	case err != nil:
	case !known:
		err = require(false, "/corrects", "not_found", "must be a journal entry")
	case old.Kind == exchange.JournalCorrection:
		err = require(false, "/corrects", "kind", "must not be a correction; book the right entry anew")
	case old.CorrectedBy != uuid.Nil:
		err = exchange.Errorf(exchange.CodeStateConflict, "The entry was corrected already.")
	}
	return old, err
}

const insertJournalEntry = `
INSERT INTO journal_entries (id, kind, bank_account_id, float_account, asset, amount, value_date, line_id, corrects, note, proposed_by, confirmed_by, change_id, booked_at,
    file_id)
VALUES ($1, $2, $3, nullif($4, ''), $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

// applyJournal books a confirmed entry.
func (t unitTx) applyJournal(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var none exchange.Posting
	terms, err := termsFrom[journalTerms](c)
	if err != nil {
		return none, err
	}
	e, err := terms.entry()
	if err != nil {
		return none, exchange.Wrap(exchange.CodeInternal, err, "a stored journal entry can't be read")
	}
	e, old, err := t.checkJournal(ctx, e, by)
	if err != nil {
		return none, err
	}
	e.ProposedBy, e.ConfirmedBy, e.ChangeID = c.ProposedBy, by.UserID, c.ID
	err = t.One(ctx, insertJournalEntry, e.ID, e.Kind, nullID(e.BankID), e.FloatAccount, e.Amount.Asset(), e.Amount.Decimal(), e.ValueDate, nullID(e.LineID), nullID(e.Corrects), e.Note,
		e.ProposedBy, e.ConfirmedBy, e.ChangeID, t.s.now(), nullID(e.FileID))
	if err == nil && e.FileID != uuid.Nil {
		err = t.useFile(ctx, exchange.FileUse{FileID: e.FileID, ObjectType: "journal_entry", ObjectID: e.ID}, by)
	}
	if pg.Broke(err, "journal_entries_corrects_key") {
		err = exchange.Wrap(exchange.CodeStateConflict, err, "The entry was corrected already.")
	}
	if err != nil {
		return none, err
	}
	posting := exchange.Posting{}
	if e.LineID != uuid.Nil {
		posting, err = t.matchLine(ctx, e.LineID, exchange.LineOfJournal, e.ID, by)
	} else if e.Corrects != uuid.Nil {
		err = t.freeLine(ctx, e.Corrects, by)
	}
	if err != nil {
		return none, err
	}
	posting.Entries = append(posting.Entries, exchange.Entry{
		Key: e.Key(), Kind: "journal." + string(e.Kind), ObjectType: "journal_entry", ObjectID: e.ID, Lines: e.Lines(old),
	})
	return posting, t.record(ctx, auditEvent{by: by, object: "journal_entry", id: e.ID, name: "journal_entry.booked", after: journalSnapshot(e)})
}

// JournalFilter narrows a list of journal entries: value dates from FromDay on, before ToDay.
type JournalFilter struct {
	Kind           exchange.JournalKind
	BankID         uuid.UUID
	FromDay, ToDay time.Time
}

// JournalEntries pages through the journal entries, the newest first, with their number.
func (s *Store) JournalEntries(ctx context.Context, f JournalFilter, p Page) ([]exchange.JournalEntry, int, error) {
	var w where
	w.eq("j.kind", string(f.Kind))
	w.id("j.bank_account_id", f.BankID)
	w.between("j.value_date", f.FromDay, f.ToDay)
	return readPage[exchange.JournalEntry](ctx, s, "journal entry", list{columns: journalColumns, from: "journal_entries j", where: w, order: "j.booked_at DESC, j.id DESC"}, p)
}

// JournalEntry reads a journal entry.
func (s *Store) JournalEntry(ctx context.Context, id uuid.UUID) (exchange.JournalEntry, error) {
	return readOne[exchange.JournalEntry](ctx, s.db, "journal entry", readJournalEntry, id)
}
