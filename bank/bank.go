// Package bank reads what banks send about accounts of the house: statements in CAMT.053 (ISO 20022) and in a CSV of our own
// (docs/bank-statements.md). A file is read as a stream; of its lines only their keys stay in memory.
package bank

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Take is called with each line of a statement, in the order of the file. An error of it ends the reading.
type Take func(exchange.StatementLine) error

// Read reads a file with statements of one account, one after the other, and hands out their lines. The result has what the file
// says of all of them together: the first one's opening balance, the last one's closing balance.
//
// CodeInvalid names the line, the field and the rule of the first fault. So a file is read twice: first to check it, and then to
// store its lines.
func Read(r io.Reader, format exchange.StatementFormat, take Take) (exchange.BankStatement, error) {
	s := &statement{take: take, copies: map[exchange.LineKey]int{}}
	var err error
	if format == exchange.StatementCAMT {
		err = s.readCAMT(r)
	} else {
		err = s.readCSV(r)
	}
	if err == nil {
		err = s.end()
	}
	s.all.Format, s.all.Lines = format, s.lines
	return s.all, err
}

// statement is the reading of a file.
type statement struct {
	take  Take
	all   exchange.BankStatement // what was read so far
	head  head                   // of the present statement
	open  bool
	many  int // statements so far
	lines int
	sum   money.Amount // the balance after the present line
	// copies counts the lines of each key. The balances say that all of them are movements.
	copies map[exchange.LineKey]int
}

// head is what a statement says before its lines, as texts.
type head struct {
	reference, account, currency string
	from, to                     string
	opening, closing             string
}

// fault is a broken rule of a part of the file.
func fault(pointer, rule, format string, args ...any) error {
	return exchange.Invalid(exchange.FieldError{Pointer: pointer, Code: rule, Message: fmt.Sprintf(format, args...)})
}

// at is the pointer of a field: of the present line, or of the statement before its first line.
func (s *statement) at(field string) string {
	return fmt.Sprintf("/lines/%d/%s", s.lines, field)
}

func headAt(field string) string { return "/statement/" + field }

// begin checks what a statement says before its lines.
func (s *statement) begin(h head) error {
	s.head, s.open = h, true
	s.many++
	asset := money.Asset(h.currency)
	if !asset.Valid() || !asset.Fiat() {
		return fault(headAt("currency"), "enum", "must be a currency of the books")
	}
	number := exchange.BankReference(h.account)
	from, err := day(headAt("from"), h.from)
	if err != nil {
		return err
	}
	to, err := day(headAt("to"), h.to)
	if err != nil {
		return err
	}
	opening, err := signed(headAt("opening_balance"), asset, h.opening)
	if err != nil {
		return err
	}
	closing, err := signed(headAt("closing_balance"), asset, h.closing)
	if err != nil {
		return err
	}
	reference := plain(h.reference, exchange.MaxStatementReference)
	switch {
	case number == "":
		return fault(headAt("account"), "required", "must have letters or digits")
	case reference == "":
		return fault(headAt("reference"), "required", "is required")
	case to.Before(from):
		return fault(headAt("to"), "range", "must not be before the first day")
	case s.many > 1 && (number != s.all.AccountNumber || asset != s.all.Opening.Asset()):
		return fault(headAt("account"), "mismatch", "must be that of the first statement in the file: a file has statements of one account")
	case s.many > 1 && from.Before(s.all.To):
		return fault(headAt("from"), "range", "must not be before the last day of the statement before it, %s", s.all.To.Format(time.DateOnly))
	case s.many > 1 && !opening.Equal(s.all.Closing):
		return fault(headAt("opening_balance"), "balance", "must be the closing balance of the statement before it, %s", s.all.Closing)
	}
	if s.many == 1 {
		s.all.Reference, s.all.AccountNumber, s.all.From, s.all.Opening = reference, number, from, opening
	}
	s.all.To, s.all.Closing, s.sum = to, closing, opening
	return nil
}

// end checks that the lines of the present statement lead to its closing balance.
func (s *statement) end() error {
	switch {
	case !s.open && s.many == 0:
		return fault("/statement", "required", "the file has no statement")
	case s.open && !s.sum.Equal(s.all.Closing):
		return fault(headAt("closing_balance"), "balance", "is %s, but the opening balance and the lines make %s", s.all.Closing, s.sum)
	}
	s.open = false
	return nil
}

// raw is a line as texts.
type raw struct {
	bankReference, valueDate, bookedOn, side, amount, currency string
	reference, partyName, partyAccount, description            string
}

// line checks a line and hands it out. Lines of nothing are left out.
func (s *statement) line(r raw) error {
	if s.lines++; s.lines > exchange.MaxStatementLines {
		return fault("/lines", "too_many", "a file may have at most %d lines", exchange.MaxStatementLines)
	}
	asset := s.sum.Asset()
	if r.currency != "" && r.currency != string(asset) {
		return fault(s.at("currency"), "mismatch", "must be %s, the currency of the account", asset)
	}
	amount, err := money.Parse(asset, r.amount)
	if err != nil || amount.Sign() < 0 {
		return fault(s.at("amount"), ruleOf(err), "must be an amount such as 10.50, without a sign")
	}
	if amount.IsZero() {
		return nil
	}
	l := exchange.StatementLine{
		Number: s.lines, BankReference: exchange.BankReference(r.bankReference), Amount: amount, Side: exchange.StatementSide(r.side),
		Reference: plain(r.reference, exchange.MaxLineText), PartyName: plain(r.partyName, exchange.MaxLineText),
		PartyAccount: plain(r.partyAccount, exchange.MaxAccountNumber), Description: plain(r.description, exchange.MaxLineDescription),
	}
	switch {
	case l.BankReference == "":
		return fault(s.at("bank_reference"), "required", "must have letters or digits: the bank's own reference of the movement")
	case len(l.BankReference) > exchange.MaxBankReference:
		return fault(s.at("bank_reference"), "too_long", "must have at most %d letters and digits", exchange.MaxBankReference)
	case l.Side != exchange.SideCredit && l.Side != exchange.SideDebit:
		return fault(s.at("side"), "enum", "must be credit or debit")
	}
	if l.ValueDate, err = day(s.at("value_date"), r.valueDate); err != nil {
		return err
	}
	if l.BookedOn = l.ValueDate; r.bookedOn != "" {
		if l.BookedOn, err = day(s.at("booked_on"), r.bookedOn); err != nil {
			return err
		}
	}
	key := l.Key()
	s.copies[key]++
	l.Copy, s.sum = s.copies[key], s.sum.Add(l.Signed())
	return s.take(l)
}

func ruleOf(err error) string {
	switch {
	case errors.Is(err, money.ErrPrecision):
		return "precision"
	case errors.Is(err, money.ErrTooLarge):
		return "out_of_range"
	case errors.Is(err, money.ErrEmpty):
		return "required"
	}
	return "format"
}

// day reads a date, or the date of a moment as the bank wrote it, at midnight UTC.
func day(pointer, text string) (time.Time, error) {
	if len(text) > len(time.DateOnly) && text[len(time.DateOnly)] == 'T' {
		text = text[:len(time.DateOnly)]
	}
	d, err := time.Parse(time.DateOnly, text)
	if text == "" {
		return d, fault(pointer, "required", "is required")
	}
	if err != nil || d.Year() < 2000 || d.Year() > 2199 {
		return d, fault(pointer, "format", "must be a date such as 2026-01-31")
	}
	return d, nil
}

// signed reads a balance, which may be below zero.
func signed(pointer string, asset money.Asset, text string) (money.Amount, error) {
	bare, below := strings.CutPrefix(text, "-")
	m, err := money.Parse(asset, bare)
	if err != nil {
		return m, fault(pointer, ruleOf(err), "must be an amount such as 10.50 or -10.50")
	}
	if below {
		m = m.Neg()
	}
	return m, nil
}

// plain is a text without control characters and invisible ones, and without space at its ends, cut to a length.
func plain(text string, limit int) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r): // those that turn or hide text too
			return -1
		}
		return r
	}, text))
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit])
	}
	return text
}

// narrow refuses a file with a part that is too long, so that no part of it fills the memory. A parser buffers a part as a whole
// before it hands it out; then the next one begins.
type narrow struct {
	in    io.Reader
	limit int
	run   int // bytes of the present part
}

func (n *narrow) next() { n.run = 0 }

func (n *narrow) Read(b []byte) (int, error) {
	size, err := n.in.Read(b)
	if n.run += size; n.run > n.limit {
		return 0, fault("/file", "too_long", "a part of the file is longer than %d bytes", n.limit)
	}
	return size, err
}

// own is the error of our own rules in an error of a parser, or nil.
func own(err error) error {
	if e, ok := errors.AsType[*exchange.Error](err); ok {
		return e
	}
	return nil
}

var csvColumns = []string{"bank_reference", "value_date", "booked_on", "side", "amount", "reference", "party_name", "party_account", "description"}

// needed are the columns that a CSV must have.
var needed = []string{"bank_reference", "value_date", "side", "amount"}

func known(column string) bool { return slices.Contains(csvColumns, column) }
