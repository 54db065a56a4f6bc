package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// StatementFormat is the format of a bank's statement.
type StatementFormat string

// The formats.
const (
	StatementCAMT StatementFormat = "camt053" // ISO 20022 camt.053, any version
	StatementCSV  StatementFormat = "csv"     // as docs/bank-statements.md describes it
)

// StatementFormats lists the formats.
func StatementFormats() []StatementFormat { return []StatementFormat{StatementCAMT, StatementCSV} }

// Limits of statements. Each is part of the contract.
const (
	MaxStatementLines     = 100_000
	MaxStatementReference = 64  // characters
	MaxLineText           = 140 // characters of a name or a reference; longer ones are cut
	MaxLineDescription    = 500
)

// StatementStatus is the state of a bank statement.
type StatementStatus string

// The states. A statement whose storing was interrupted is continued by the same request.
const (
	StatementStoring  StatementStatus = "storing"
	StatementMatching StatementStatus = "matching"
	StatementCompared StatementStatus = "compared"
)

// StatementMachine governs bank statements.
var StatementMachine = Machine[StatementStatus]{
	Name: "bank_statement", Initial: StatementStoring,
	Transitions: []Transition[StatementStatus]{
		{StatementStoring, StatementMatching, RoleTreasuryName, "all of its lines are stored"},
		{StatementMatching, StatementCompared, ByFlow, "each of its lines is matched or set aside, and its balance was compared with the ledger"},
	},
	Final: []StatementStatus{StatementCompared},
}

// RoleTreasuryName is the role of treasury officers in machines.
const RoleTreasuryName = string(RoleTreasury)

// LineStatus is the state of a line of a bank statement.
type LineStatus string

// The states. A correction of the journal entry that a line was matched with frees the line.
const (
	LineNew     LineStatus = "new"
	LineMatched LineStatus = "matched" // with an object that explains it
	LineAside   LineStatus = "aside"   // nothing explains it; a payment exception says so
)

// LineMachine governs lines of bank statements.
var LineMachine = Machine[LineStatus]{
	Name: "bank_line", Initial: LineNew,
	Transitions: []Transition[LineStatus]{
		{LineNew, LineMatched, ByFlow, "one object explains it, by its reference, or by account, side, amount and day"},
		{LineNew, LineMatched, ByOperator, "an officer names the object that explains it"},
		{LineNew, LineAside, ByFlow, "nothing explains it"},
		{LineAside, LineMatched, ByFlow, "an object that explains it came later"},
		{LineAside, LineMatched, ByOperator, "an officer names the object that explains it, and its exception is still open"},
		{LineMatched, LineNew, ByOperator, "the journal entry was a mistake and is corrected, or two officers free it of a payout that an officer named"},
	},
}

// What a line can be matched with.
const (
	LineOfJournal = "journal_entry"
	LineOfPayout  = "bank_payout" // of an order, by the order's id
	LineOfDeposit = "otc_deposit" // by its reference, or by the officer who confirms it
	// By the bank's reference, as an officer entered it.
	LineOfWithdrawal = "otc_withdrawal"
	LineOfRefund     = "bank_refund" // by the refund's id
)

// LineObjects lists the types of object that lines are matched with.
func LineObjects() []string {
	return []string{LineOfJournal, LineOfPayout, LineOfDeposit, LineOfWithdrawal, LineOfRefund}
}

// NamedLineObjects lists the types that an officer may name for a line. A deposit is named by the officer who confirms it.
func NamedLineObjects() []string {
	return []string{LineOfJournal, LineOfPayout, LineOfWithdrawal, LineOfRefund}
}

// BankStatement is a bank's statement of an account of the house, as far as its file says it.
type BankStatement struct {
	ID            uuid.UUID
	BankID        uuid.UUID
	FileID        uuid.UUID
	Format        StatementFormat
	Digest        string // SHA-256 of the file, in hex
	Reference     string // the bank's
	AccountNumber string // in the form of BankReference; checked against the account and not stored
	From, To      time.Time
	Opening       money.Amount // may be below zero
	Closing       money.Amount
	Lines         int // in the file
	Fresh         int // those that no earlier statement had
	Status        StatementStatus
	ImportedBy    uuid.UUID
	CreatedAt     time.Time
	UpdatedAt     time.Time
	// What the ledger had when the balance was compared, and how far the bank's is above it; zero before.
	Ledger      money.Amount
	Difference  money.Amount
	ComparedAt  time.Time
	Unexplained money.Amount // by how much the lines of the account change it that were not explained then and are not booked
	Unmatched   int          // lines that are set aside now
	// Gap is how far the opening balance is above the closing balance of the statement before it, by days. Days are missing where
	// it is not zero. Nil without a statement before it.
	Gap     *money.Amount
	Version int64
}

// StatementLine is a movement of money that a bank has booked.
type StatementLine struct {
	ID            uuid.UUID
	StatementID   uuid.UUID // the first statement that had it
	BankID        uuid.UUID
	Number        int    // in that statement's file, from 1
	Copy          int    // from 1: which one it is of the file's lines with this reference, value date, side and amount
	BankReference string // the bank's own of the movement, in the form of BankReference
	ValueDate     time.Time
	BookedOn      time.Time
	Side          StatementSide
	Amount        money.Amount
	Reference     string // what the payer or we wrote on the payment
	PartyName     string
	PartyAccount  string
	Description   string
	Status        LineStatus
	ObjectType    string // what explains it; "" for nothing
	ObjectID      uuid.UUID
	MatchedBy     uuid.UUID // the officer; zero for a match by rule
	MatchedAt     time.Time
	ExceptionID   uuid.UUID // the open payment exception about it, or zero
	CreatedAt     time.Time
	UpdatedAt     time.Time
	Version       int64
}

// LineKey is what makes a line the same as another one of the account.
type LineKey struct {
	Reference string
	ValueDate string
	Side      StatementSide
	Amount    string
	Copy      int
}

// Key is the line's key.
func (l StatementLine) Key() LineKey {
	return LineKey{l.BankReference, l.ValueDate.Format(time.DateOnly), l.Side, l.Amount.String(), l.Copy}
}

// Signed is the amount as it changes the balance of the account.
func (l StatementLine) Signed() money.Amount {
	if l.Side == SideDebit {
		return l.Amount.Neg()
	}
	return l.Amount
}
