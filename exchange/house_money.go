package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// HouseBankAccount is an account of the house at a bank. Its ledger account is AccBank, owned by its id.
type HouseBankAccount struct {
	ID            uuid.UUID
	BankName      string
	BankCode      string // of Kenya's clearing, or empty
	Branch        string
	SwiftCode     string // a BIC, or empty
	AccountName   string
	AccountNumber string // in the form of BankReference
	Currency      money.Asset
	IsActive      bool
	Balance       money.Amount // by the ledger
	Held          money.Amount // the part of it that is held for payments
	CreatedAt     time.Time
	UpdatedAt     time.Time
	Version       int64
}

// Ledger is the ledger's account of the bank account.
func (a HouseBankAccount) Ledger() AccountRef { return Owned(AccBank, a.ID, a.Currency) }

// Limits of the texts of a house bank account, beside those of a beneficiary's.
const (
	MaxBankName  = 120 // characters
	MaxSwiftCode = 11
)

// JournalKind is what happened to the house's money outside of Kivuko.
type JournalKind string

// The kinds of journal entries. A correction undoes an entry of any other kind.
const (
	JournalCapitalIn       JournalKind = "capital_in"       // the owners paid into the bank; interest counts too
	JournalCapitalOut      JournalKind = "capital_out"      // the owners took money out of the bank
	JournalBankCharge      JournalKind = "bank_charge"      // the bank charged the house
	JournalFloatTopUp      JournalKind = "float_top_up"     // from the bank to the mobile money operator
	JournalFloatWithdrawal JournalKind = "float_withdrawal" // from the operator to the bank
	JournalOperatorCharge  JournalKind = "operator_charge"  // the operator charged the house, beside the tariff of payouts
	JournalCorrection      JournalKind = "correction"
)

// JournalKinds lists the kinds in a fixed order.
func JournalKinds() []JournalKind {
	return []JournalKind{
		JournalCapitalIn, JournalCapitalOut, JournalBankCharge, JournalFloatTopUp, JournalFloatWithdrawal, JournalOperatorCharge, JournalCorrection,
	}
}

// StatementSide is the side of a movement as the bank's statement of the account shows it.
type StatementSide string

// The sides: a credit came in, a debit went out.
const (
	SideCredit StatementSide = "credit"
	SideDebit  StatementSide = "debit"
)

// Opposite is the other side.
func (s StatementSide) Opposite() StatementSide {
	if s == SideCredit {
		return SideDebit
	}
	return SideCredit
}

// Side is the side of the bank account on which an entry of the kind is; "" when it does not touch the bank. That of a
// correction depends on what it corrects.
func (k JournalKind) Side() StatementSide {
	switch k {
	case JournalCapitalIn, JournalFloatWithdrawal:
		return SideCredit
	case JournalCapitalOut, JournalBankCharge, JournalFloatTopUp:
		return SideDebit
	case JournalOperatorCharge, JournalCorrection:
	}
	return ""
}

// MovesFloat reports whether an entry of the kind names one of our accounts at the operator.
func (k JournalKind) MovesFloat() bool {
	return k == JournalFloatTopUp || k == JournalFloatWithdrawal || k == JournalOperatorCharge
}

// FloatAccountKind is the ledger's account of one of our accounts at the operator, FloatWorking or FloatUtility.
func FloatAccountKind(name string) AccountKind {
	if name == FloatUtility {
		return AccMomoPayout
	}
	return AccMomoCollection
}

// JournalEntry books what happened to the house's money outside of Kivuko. One treasury officer proposes it and another
// confirms it. It never changes: a correction is another entry, which names it.
type JournalEntry struct {
	ID           uuid.UUID
	Kind         JournalKind
	BankID       uuid.UUID // the house bank account; zero where the kind does not touch the bank
	FloatAccount string    // FloatWorking or FloatUtility, where the kind moves float
	Amount       money.Amount
	ValueDate    time.Time // the day at midnight UTC
	LineID       uuid.UUID // the statement line that was named as its evidence, or zero
	FileID       uuid.UUID // the file that was
	// Corrects is the entry that a correction undoes, all of it. A correction that names a line is a movement of the bank's own.
	// Without a line the corrected entry was a mistake: nothing moved, and the line that it was matched with is free again.
	Corrects    uuid.UUID
	CorrectedBy uuid.UUID // the correction of it, or zero
	Note        string
	ProposedBy  uuid.UUID
	ConfirmedBy uuid.UUID
	ChangeID    uuid.UUID
	BookedAt    time.Time
}

// Key is the key of its ledger entry.
func (e JournalEntry) Key() string { return "journal:" + e.ID.String() }

// Lines are the lines of its ledger entry. old is the entry that a correction undoes.
func (e JournalEntry) Lines(old JournalEntry) []Line {
	if e.Kind == JournalCorrection {
		lines := old.Lines(JournalEntry{})
		for i, l := range lines {
			lines[i] = Line{l.Account, l.Amount.Neg()}
		}
		return lines
	}
	kes := e.Amount.Asset()
	bank, float, capital := Owned(AccBank, e.BankID, kes), House(FloatAccountKind(e.FloatAccount), kes), House(AccCapital, kes)
	from, to := bank, bank
	switch e.Kind {
	case JournalCapitalIn:
		from = capital
	case JournalCapitalOut:
		to = capital
	case JournalBankCharge:
		to = House(AccBankFees, kes)
	case JournalFloatTopUp:
		to = float
	case JournalFloatWithdrawal:
		from = float
	case JournalOperatorCharge:
		from, to = float, House(AccMomoFees, kes)
	case JournalCorrection:
	}
	return []Line{Debit(to, e.Amount), Credit(from, e.Amount)}
}

// Side is the side of the bank account on which the entry is. old is the entry that a correction undoes.
func (e JournalEntry) Side(old JournalEntry) StatementSide {
	if side := old.Kind.Side(); e.Kind == JournalCorrection && side != "" {
		return side.Opposite()
	}
	return e.Kind.Side()
}

// MaxJournalNote is the most characters of the note of a journal entry.
const MaxJournalNote = 500
