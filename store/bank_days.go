package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// The days on which banks in Kenya settle. The holidays with fixed dates came with the schema; those that follow the moon, and what
// the government declares, are entered by two officers.

const bankDayColumns = `d.day, d.entry, d.is_open, d.name, d.change_id, d.entered_at`

// BankDayFilter narrows a list of bank days.
type BankDayFilter struct {
	From, To time.Time // dates, from the first to before the second; zero: open
}

// BankDays pages through the entries of days that are not as their day of the week, in their order, with their number. Only the
// latest entry of a day is listed.
func (s *Store) BankDays(ctx context.Context, f BankDayFilter, p Page) ([]exchange.BankDay, int, error) {
	var w where
	w.add(`NOT EXISTS (SELECT FROM bank_days n WHERE n.day = d.day AND n.entry > d.entry)`)
	if !f.From.IsZero() {
		w.add(`d.day >= ?`, f.From)
	}
	if !f.To.IsZero() {
		w.add(`d.day < ?`, f.To)
	}
	return readPage[exchange.BankDay](ctx, s, "bank day", list{columns: bankDayColumns, from: "bank_days d", where: w, order: "d.day"}, p)
}

const bankCutoff = `SELECT bank_cutoff($1)`

// BankCutoff is the moment until which a price that was locked at another holds: 18:00 in Kenya on the next bank day.
// CodeStateConflict when the calendar has no bank day within a month.
func (s *Store) BankCutoff(ctx context.Context, at time.Time) (time.Time, error) {
	var cutoff time.Time
	err := s.inTx(ctx, "bank day", func(t unitTx) error {
		var err error
		cutoff, err = t.bankCutoff(ctx, at)
		return err
	})
	return cutoff, err
}

func (t unitTx) bankCutoff(ctx context.Context, at time.Time) (time.Time, error) {
	var cutoff time.Time
	if err := t.Get(ctx, &cutoff, bankCutoff, at); err != nil {
		return cutoff, err
	}
	if cutoff.IsZero() {
		return cutoff, exchange.Errorf(exchange.CodeStateConflict, "The calendar has no bank day within a month.")
	}
	return cutoff, nil
}

// bankDayTerms is an entry that two officers agree on, or the day as it was.
type bankDayTerms struct {
	Day    string `json:"day"` // YYYY-MM-DD
	IsOpen bool   `json:"is_open"`
	Name   string `json:"name"`
}

func termsOfBankDay(d exchange.BankDay) bankDayTerms {
	return bankDayTerms{d.Day.Format(time.DateOnly), d.IsOpen, d.Name}
}

const dayBefore = `SELECT is_bank_day($1::date) AS is_open, coalesce((SELECT d.name FROM bank_days d WHERE d.day = $1::date ORDER BY d.entry DESC LIMIT 1), '') AS name,
    $1::date::text AS day`

// ProposeBankDay proposes that banks settle on a day, or don't. CodeInvalid names the wrong field; CodeStateConflict when it is so
// already.
func (s *Store) ProposeBankDay(ctx context.Context, d exchange.BankDay, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "bank day", func(t unitTx) error {
		if err := d.Validate(t.s.now()); err != nil {
			return err
		}
		var was bankDayTerms
		if err := t.Get(ctx, &was, dayBefore, d.Day.Format(time.DateOnly)); err != nil {
			return err
		}
		terms := termsOfBankDay(d)
		if was == terms {
			return exchange.Errorf(exchange.CodeStateConflict, "The calendar has %s so already.", terms.Day)
		}
		var err error
		proposed, err = t.propose(ctx, exchange.ControlBankDay, uuid.Nil, was, terms, by)
		return err
	})
	return proposed, err
}

const insertBankDay = `
INSERT INTO bank_days (day, entry, is_open, name, change_id, entered_at)
SELECT $1::date, coalesce(max(d.entry), 0) + 1, $2, $3, $4, $5 FROM bank_days d WHERE d.day = $1::date`

// applyBankDay stores an entry that two officers agreed. Quotes keep the end that they were promised.
func (t unitTx) applyBankDay(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[bankDayTerms](c)
	if err != nil {
		return err
	}
	if _, err := t.Exec(ctx, lockBankDays); err != nil {
		return err
	}
	if err := t.One(ctx, insertBankDay, terms.Day, terms.IsOpen, terms.Name, c.ID, t.s.now()); err != nil {
		return err
	}
	after := map[string]any{"id": c.ID, "day": terms.Day, "is_open": terms.IsOpen, "name": terms.Name}
	return t.record(ctx, auditEvent{by: by, object: "bank_day", id: c.ID, name: "bank_day.entered", after: after})
}

// Serialises the entries; check_bank_day takes the same lock.
const lockBankDays = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko bank days', 0))`
