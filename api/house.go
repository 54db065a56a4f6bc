package api

import (
	"regexp"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

const treasuryPath = "/api/v1/auth/treasury"

func (s *server) houseRoutes() []route {
	const accounts, entries = treasuryPath + "/bank-accounts", treasuryPath + "/journal-entries"
	return []route{
		{method: get, path: accounts, action: exchange.ActReadBankAccounts, limit: limitGeneral, handle: s.listBankAccounts},
		{method: post, path: accounts, action: exchange.ActWriteBankAccounts, limit: limitGeneral, key: keyRequired, handle: s.proposeBankAccount},
		{method: get, path: accounts + "/{id}", action: exchange.ActReadBankAccounts, limit: limitGeneral, handle: s.getBankAccount},
		{method: patch, path: accounts + "/{id}", action: exchange.ActWriteBankAccounts, limit: limitGeneral, handle: s.patchBankAccount},
		{method: get, path: entries, action: exchange.ActReadJournal, limit: limitGeneral, handle: s.listJournalEntries},
		{method: post, path: entries, action: exchange.ActBookJournal, limit: limitGeneral, key: keyRequired, handle: s.proposeJournalEntry},
		{method: get, path: entries + "/{id}", action: exchange.ActReadJournal, limit: limitGeneral, handle: showOne(s.Store.JournalEntry, journalWire)},
	}
}

// wireBankAccount is an account of the house at a bank. What it holds is for staff.
type wireBankAccount struct {
	ID            uuid.UUID `json:"id"`
	BankName      string    `json:"bank_name"`
	BankCode      *string   `json:"bank_code"`
	Branch        *string   `json:"branch"`
	SwiftCode     *string   `json:"swift_code"`
	AccountName   string    `json:"account_name"`
	AccountNumber string    `json:"account_number"`
	Currency      string    `json:"currency"`
	IsActive      bool      `json:"is_active"`
	Balance       *string   `json:"balance"`
	Held          *string   `json:"held"`
	CreatedAt     timestamp `json:"created_at"`
	UpdatedAt     timestamp `json:"updated_at"`
}

// bankAccountWire returns how a caller sees an account of the house.
func (c *call) bankAccountWire(b exchange.HouseBankAccount) wireBankAccount {
	w := wireBankAccount{
		ID: b.ID, BankName: b.BankName, BankCode: optText(b.BankCode), Branch: optText(b.Branch), SwiftCode: optText(b.SwiftCode), AccountName: b.AccountName,
		AccountNumber: b.AccountNumber, Currency: string(b.Currency), IsActive: b.IsActive, CreatedAt: stamp(b.CreatedAt), UpdatedAt: stamp(b.UpdatedAt),
	}
	if c.who.Role.Staff() {
		balance, held := b.Balance.String(), b.Held.String()
		w.Balance, w.Held = &balance, &held
	}
	return w
}

// listBankAccounts lists the house's accounts at banks: to merchants the active ones of a currency, to which they pay.
func (s *server) listBankAccounts(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.BankAccountFilter{Currency: money.Asset(q.oneOf("currency", string(money.KES))), ActiveOnly: !c.who.Role.Staff()}
	if active := q.oneOf("is_active", "true", "false"); active == "true" {
		filter.ActiveOnly = true
	}
	if filter.Currency == "" && !c.who.Role.Staff() {
		q.fail("currency", "required", "is required")
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "bank_accounts", page, c.bankAccountWire)(s.Store.BankAccounts(c.ctx, filter, page))
}

func (s *server) getBankAccount(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	b, err := s.Store.BankAccount(c.ctx, id)
	if err == nil && !b.IsActive && !c.who.Role.Staff() {
		err = exchange.Errorf(exchange.CodeNotFound, "There is no such bank account.")
	}
	if err != nil {
		return hideAbsence(err)
	}
	return c.tagged(b.Version, c.bankAccountWire(b))
}

var (
	bankCodeForm  = regexp.MustCompile(`^[0-9A-Z]*$`)
	swiftCodeForm = regexp.MustCompile(`^[0-9A-Z]{8}([0-9A-Z]{3})?$`)
)

// bankText reads a code in capitals and digits.
func (f *form) bankText(name string, required bool, limit int, is *regexp.Regexp, message string) string {
	s := f.line(name, required, limit)
	if s != "" && !is.MatchString(s) {
		f.fail(name, "format", message)
	}
	return s
}

func (f *form) bankCode() string {
	return f.bankText("bank_code", false, exchange.MaxBankCode, bankCodeForm, "must be capitals and digits")
}

func (f *form) swiftCode() string {
	return f.bankText("swift_code", false, exchange.MaxSwiftCode, swiftCodeForm, "must be eight or eleven capitals and digits")
}

// proposeBankAccount proposes another account of the house at a bank.
func (s *server) proposeBankAccount(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	b := exchange.HouseBankAccount{
		ID: c.objectID, BankName: f.line("bank_name", true, exchange.MaxBankName), BankCode: f.bankCode(), Branch: f.line("branch", false, exchange.MaxBankName),
		SwiftCode: f.swiftCode(), AccountName: f.line("account_name", true, exchange.MaxBankName), Currency: money.Asset(f.oneOf("currency", true, string(money.KES))),
		IsActive: true,
	}
	number := f.line("account_number", true, exchange.MaxAccountNumber)
	if b.AccountNumber = exchange.BankReference(number); number != "" && b.AccountNumber == "" {
		f.fail("account_number", "format", "must have letters or digits")
	}
	if err := f.done(); err != nil {
		return err
	}
	waits, err := s.Store.ProposeBankAccount(c.ctx, b, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}

// patchBankAccount switches an account off at once; any other change waits for a second officer.
func (s *server) patchBankAccount(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	optional := func(name, value string) *string {
		if _, given := f.values[name]; !given {
			return nil
		}
		return &value
	}
	p := store.BankAccountPatch{
		BankName: optional("bank_name", f.line("bank_name", f.given("bank_name"), exchange.MaxBankName)), BankCode: optional("bank_code", f.bankCode()),
		Branch: optional("branch", f.line("branch", false, exchange.MaxBankName)), SwiftCode: optional("swift_code", f.swiftCode()),
		AccountName: optional("account_name", f.line("account_name", f.given("account_name"), exchange.MaxBankName)), IsActive: f.boolean("is_active", false),
		Versions: c.ifVersions,
	}
	if err := f.done(); err != nil {
		return err
	}
	b, waits, err := s.Store.PatchBankAccount(c.ctx, id, p, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	if waits.ID != uuid.Nil {
		return answerPending(c, waits)
	}
	return c.tagged(b.Version, c.bankAccountWire(b))
}

// given reports whether a field is in the request, even as null.
func (f *form) given(name string) bool {
	_, there := f.values[name]
	return there
}

// wireJournalEntry is a journal entry.
type wireJournalEntry struct {
	ID           uuid.UUID  `json:"id"`
	Kind         string     `json:"kind"`
	BankID       *uuid.UUID `json:"bank_account_id"`
	FloatAccount *string    `json:"float_account"`
	Amount       string     `json:"amount"`
	Currency     string     `json:"currency"`
	ValueDate    string     `json:"value_date"`
	LineID       *uuid.UUID `json:"statement_line_id"`
	FileID       *uuid.UUID `json:"file_id"`
	Corrects     *uuid.UUID `json:"corrects"`
	CorrectedBy  *uuid.UUID `json:"corrected_by"`
	Note         *string    `json:"note"`
	ProposedBy   uuid.UUID  `json:"proposed_by"`
	ConfirmedBy  uuid.UUID  `json:"confirmed_by"`
	ChangeID     uuid.UUID  `json:"change_id"`
	BookedAt     timestamp  `json:"booked_at"`
}

func journalWire(e exchange.JournalEntry) wireJournalEntry {
	return wireJournalEntry{
		ID: e.ID, Kind: string(e.Kind), BankID: optID(e.BankID), FloatAccount: optText(e.FloatAccount), Amount: e.Amount.String(), Currency: string(e.Amount.Asset()),
		ValueDate: e.ValueDate.Format(time.DateOnly), LineID: optID(e.LineID), FileID: optID(e.FileID), Corrects: optID(e.Corrects), CorrectedBy: optID(e.CorrectedBy), Note: optText(e.Note),
		ProposedBy: e.ProposedBy, ConfirmedBy: e.ConfirmedBy, ChangeID: e.ChangeID, BookedAt: stamp(e.BookedAt),
	}
}

var (
	journalKinds  = names(exchange.JournalKinds())
	floatAccounts = []string{exchange.FloatWorking, exchange.FloatUtility}
)

func (s *server) listJournalEntries(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.JournalFilter{
		Kind: exchange.JournalKind(q.oneOf("kind", journalKinds...)), BankID: q.id("bank_account_id"), FromDay: q.day("from_day"), ToDay: q.day("to_day"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "journal_entries", page, journalWire)(s.Store.JournalEntries(c.ctx, filter, page))
}

// proposeJournalEntry proposes an entry, which another treasury officer confirms. A correction takes the money of the entry
// that it undoes.
func (s *server) proposeJournalEntry(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	e := exchange.JournalEntry{ID: c.objectID, Kind: exchange.JournalKind(f.oneOf("kind", true, journalKinds...)), ValueDate: f.date("value_date")}
	correction := e.Kind == exchange.JournalCorrection
	e.BankID = f.needed("bank_account_id", e.Kind.Side() != "", correction)
	e.Corrects = f.needed("corrects", correction, !correction)
	if e.Kind.MovesFloat() || f.has("float_account") {
		e.FloatAccount = f.oneOf("float_account", e.Kind.MovesFloat(), floatAccounts...)
	}
	if e.FloatAccount != "" && !e.Kind.MovesFloat() {
		f.fail("float_account", "forbidden", "must be left out: the entry does not move float")
	}
	if correction && f.has("amount") {
		f.fail("amount", "forbidden", "must be left out: a correction undoes all of the entry")
	}
	e.Amount = f.amount("amount", money.KES, !correction)
	if e.LineID = f.id("statement_line_id", false); e.LineID != uuid.Nil && e.Kind == exchange.JournalOperatorCharge {
		f.fail("statement_line_id", "forbidden", "must be left out: the entry does not move money at a bank")
	}
	e.FileID = f.id("file_id", false)
	e.Note = f.line("note", e.LineID == uuid.Nil && e.FileID == uuid.Nil, exchange.MaxJournalNote)
	if err := f.done(); err != nil {
		return err
	}
	waits, err := s.Store.ProposeJournalEntry(c.ctx, e, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}

// needed reads an id that an entry of this kind needs, or that it must not have.
func (f *form) needed(name string, required, forbidden bool) uuid.UUID {
	id := f.id(name, required)
	if id != uuid.Nil && !required || forbidden && f.has(name) {
		f.fail(name, "forbidden", "must be left out for an entry of this kind")
	}
	return id
}
