package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// The house's accounts at banks. Others pay to them, so their data are those that two officers agreed on.

const bankAccountColumns = `b.id, b.bank_name, b.bank_code, b.branch, b.swift_code, b.account_name, b.account_number, b.currency, b.is_active,
	coalesce(a.posted, 0)||' '||b.currency AS balance, coalesce(a.held, 0)||' '||b.currency AS held, b.created_at, b.updated_at, b.version`

const fromBankAccounts = `bank_accounts b LEFT JOIN ledger_accounts a ON a.kind = 'bank' AND a.owner_id = b.id AND a.asset = b.currency`

const readBankAccount = `SELECT ` + bankAccountColumns + ` FROM ` + fromBankAccounts + ` WHERE b.id = $1`

// bankAccountTerms are the data of a house bank account as a control change has them.
type bankAccountTerms struct {
	ID            uuid.UUID   `json:"id"`
	BankName      string      `json:"bank_name"`
	BankCode      string      `json:"bank_code"`
	Branch        string      `json:"branch"`
	SwiftCode     string      `json:"swift_code"`
	AccountName   string      `json:"account_name"`
	AccountNumber string      `json:"account_number"`
	Currency      money.Asset `json:"currency"`
	IsActive      bool        `json:"is_active"`
}

func termsOfBankAccount(b exchange.HouseBankAccount) bankAccountTerms {
	return bankAccountTerms{b.ID, b.BankName, b.BankCode, b.Branch, b.SwiftCode, b.AccountName, b.AccountNumber, b.Currency, b.IsActive}
}

// BankAccountFilter narrows a list of house bank accounts.
type BankAccountFilter struct {
	Currency   money.Asset
	ActiveOnly bool
}

// BankAccounts pages through the house's accounts at banks, the oldest first, with their number.
func (s *Store) BankAccounts(ctx context.Context, f BankAccountFilter, p Page) ([]exchange.HouseBankAccount, int, error) {
	var w where
	w.eq("b.currency", string(f.Currency))
	if f.ActiveOnly {
		w.add("b.is_active")
	}
	return readPage[exchange.HouseBankAccount](ctx, s, "bank account", list{columns: bankAccountColumns, from: fromBankAccounts, where: w, order: "b.created_at, b.id"}, p)
}

// BankAccount reads one of the house's accounts at banks.
func (s *Store) BankAccount(ctx context.Context, id uuid.UUID) (exchange.HouseBankAccount, error) {
	return readOne[exchange.HouseBankAccount](ctx, s.db, "bank account", readBankAccount, id)
}

const bankAccountTaken = `SELECT EXISTS (SELECT FROM bank_accounts WHERE id = $1 OR (bank_code = $2 AND account_number = $3))`

// ProposeBankAccount proposes another account of the house at a bank, which a second officer confirms. CodeConflict when the
// house has it already.
func (s *Store) ProposeBankAccount(ctx context.Context, b exchange.HouseBankAccount, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "bank account", func(t unitTx) error {
		var taken bool
		if err := t.Get(ctx, &taken, bankAccountTaken, b.ID, b.BankCode, b.AccountNumber); err != nil {
			return err
		}
		if taken {
			return exchange.Errorf(exchange.CodeConflict, "The house has this bank account already.")
		}
		var err error
		proposed, err = t.propose(ctx, exchange.ControlBankAccount, uuid.Nil, struct{}{}, termsOfBankAccount(b), by)
		return err
	})
	return proposed, err
}

// BankAccountPatch changes data of a house bank account; nil leaves a field as it is.
type BankAccountPatch struct {
	BankName, BankCode, Branch, SwiftCode, AccountName *string
	IsActive                                           *bool
	Versions                                           []int64 // expected; see expect
}

func (p BankAccountPatch) apply(b exchange.HouseBankAccount) exchange.HouseBankAccount {
	for to, from := range map[*string]*string{
		&b.BankName: p.BankName, &b.BankCode: p.BankCode, &b.Branch: p.Branch, &b.SwiftCode: p.SwiftCode, &b.AccountName: p.AccountName,
	} {
		if from != nil {
			*to = *from
		}
	}
	if p.IsActive != nil {
		b.IsActive = *p.IsActive
	}
	return b
}

// The data of an account are read with a lock of its row alone, for which the ledger's account is not needed.
const lockBankAccount = `SELECT b.id, b.bank_name, b.bank_code, b.branch, b.swift_code, b.account_name, b.account_number, b.currency, b.is_active,
	'0 '||b.currency AS balance, '0 '||b.currency AS held, b.created_at, b.updated_at, b.version FROM bank_accounts b WHERE b.id = $1 FOR NO KEY UPDATE`

// PatchBankAccount switches an account off at once, and proposes any other change, which a second officer confirms: the
// change's id is then not zero.
func (s *Store) PatchBankAccount(ctx context.Context, id uuid.UUID, p BankAccountPatch, by exchange.Principal) (exchange.HouseBankAccount, exchange.ControlChange, error) {
	var now exchange.HouseBankAccount
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "bank account", func(t unitTx) error {
		now, proposed = exchange.HouseBankAccount{}, exchange.ControlChange{}
		var before exchange.HouseBankAccount
		if err := t.Get(ctx, &before, lockBankAccount, id); err != nil {
			return err
		}
		if err := expect(p.Versions, before.Version); err != nil {
			return err
		}
		after := p.apply(before)
		off := before
		off.IsActive = false
		switch termsOfBankAccount(after) {
		case termsOfBankAccount(before):
		case termsOfBankAccount(off):
			if err := t.saveBankAccount(ctx, &before, after, by); err != nil {
				return err
			}
		default:
			var err error
			if proposed, err = t.propose(ctx, exchange.ControlBankAccount, uuid.Nil, termsOfBankAccount(before), termsOfBankAccount(after), by); err != nil {
				return err
			}
		}
		return t.Get(ctx, &now, readBankAccount, id)
	})
	return now, proposed, err
}

const insertBankAccount = `
INSERT INTO bank_accounts (id, bank_name, bank_code, branch, swift_code, account_name, is_active, account_number, currency, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)`

const updateBankAccount = `
UPDATE bank_accounts SET bank_name = $2, bank_code = $3, branch = $4, swift_code = $5, account_name = $6, is_active = $7, updated_at = $8,
    version = version + 1 WHERE id = $1`

// saveBankAccount writes an account as it was agreed on: a new one without before.
func (t unitTx) saveBankAccount(ctx context.Context, before *exchange.HouseBankAccount, b exchange.HouseBankAccount, by exchange.Principal) error {
	event := auditEvent{by: by, object: "bank_account", id: b.ID, name: "bank_account.created", after: termsOfBankAccount(b)}
	args := []any{b.ID, b.BankName, b.BankCode, b.Branch, b.SwiftCode, b.AccountName, b.IsActive}
	var err error
	if before == nil {
		err = t.One(ctx, insertBankAccount, append(args, b.AccountNumber, b.Currency, t.s.now())...)
	} else {
		event.name, event.before = "bank_account.changed", termsOfBankAccount(*before)
		err = t.One(ctx, updateBankAccount, append(args, t.s.now())...)
	}
	if pg.Broke(err, "bank_accounts_number_key") {
		err = exchange.Wrap(exchange.CodeConflict, err, "The house has this bank account already.")
	}
	if err != nil {
		return err
	}
	return t.record(ctx, event)
}

// applyBankAccount writes a confirmed account, or other data of one.
func (t unitTx) applyBankAccount(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[bankAccountTerms](c)
	if err != nil {
		return err
	}
	b := exchange.HouseBankAccount{
		ID: terms.ID, BankName: terms.BankName, BankCode: terms.BankCode, Branch: terms.Branch, SwiftCode: terms.SwiftCode,
		AccountName: terms.AccountName, AccountNumber: terms.AccountNumber, Currency: terms.Currency, IsActive: terms.IsActive,
	}
	before, known, err := readFound[exchange.HouseBankAccount](ctx, t, lockBankAccount, b.ID)
	if err != nil {
		return err
	}
	if !known {
		if err := unchanged(c, struct{}{}); err != nil {
			return err
		}
		return t.saveBankAccount(ctx, nil, b, by)
	}
	if err := unchanged(c, termsOfBankAccount(before)); err != nil {
		return err
	}
	return t.saveBankAccount(ctx, &before, b, by)
}

// The active account with the most that is not held. A payment reserves its money there.
const readRoomiestBank = `
SELECT b.id FROM bank_accounts b JOIN ledger_accounts a ON a.kind = 'bank' AND a.owner_id = b.id
WHERE b.is_active AND b.currency = $1 AND a.posted - a.held >= $2 ORDER BY a.posted - a.held DESC, b.id LIMIT 1`

// bankWith names the ledger's account of the bank account that a payment is made from. CodeInsufficientFunds when no active
// account has enough.
func (t unitTx) bankWith(ctx context.Context, m money.Amount) (exchange.AccountRef, error) {
	id, found, err := readFound[uuid.UUID](ctx, t, readRoomiestBank, m.Asset(), m.Decimal())
	if err == nil && !found {
		err = exchange.Errorf(exchange.CodeInsufficientFunds, "No bank account of the house has enough available.")
	}
	return exchange.Owned(exchange.AccBank, id, m.Asset()), err
}

const bankOfHold = `SELECT a.owner_id FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = $1 AND a.kind = 'bank'`

// bankOf names the ledger's account at a bank that a hold reserves money of.
func (t unitTx) bankOf(ctx context.Context, hold uuid.UUID, asset money.Asset) (exchange.AccountRef, error) {
	var id uuid.UUID
	err := t.Get(ctx, &id, bankOfHold, hold)
	return exchange.Owned(exchange.AccBank, id, asset), translate(err, "hold")
}
