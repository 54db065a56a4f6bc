package exchange

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// OTCMethod is how the money of an OTC deposit comes.
type OTCMethod string

// The methods.
const (
	OTCByBank OTCMethod = "bank"
	OTCByMomo OTCMethod = "momo" // the house prompts the merchant's phone
	OTCByC2B  OTCMethod = "c2b"  // the merchant pays the house's number with the reference as account
)

// OTCMethods lists the methods.
func OTCMethods() []OTCMethod { return []OTCMethod{OTCByBank, OTCByMomo, OTCByC2B} }

// Limits of OTC deposits. Each is part of the contract.
const (
	OTCDraftLife    = 7 * 24 * time.Hour  // without an edit
	OTCMoneyLife    = 72 * time.Hour      // from submission, or from the end of its quote, without any evidence of money, for bank and c2b
	OTCPromptLife   = 15 * time.Minute    // for momo, by the operator's proof only
	OTCLease        = 30 * time.Minute    // of a claim
	OTCOldValue     = 30 * 24 * time.Hour // an older value date is flagged
	OTCBounds       = 1000                // basis points by which money may differ from the quoted amount
	MaxOTCText      = 500                 // characters of questions, answers, reasons and notes
	MaxOTCFiles     = 20                  // files of one deposit
	MaxOpenDeposits = 500                 // of one merchant that have not ended
)

// OTCFlag is something about a deposit that an officer should look at. A flag is never taken away.
type OTCFlag string

// The flags.
const (
	FlagSameFile      OTCFlag = "same_file"       // another deposit has a file with the same content
	FlagSameReceipt   OTCFlag = "same_receipt"    // another deposit has the same receipt number
	FlagSameReference OTCFlag = "same_reference"  // another deposit was paid under the same reference of the bank
	FlagSender        OTCFlag = "sender_name"     // the sender is called otherwise than the merchant, or an officer named a payment from none of its phones
	FlagFutureValue   OTCFlag = "value_in_future" // the value date is in the future
	FlagOldValue      OTCFlag = "value_old"       // the value date is older than OTCOldValue
	FlagAmount        OTCFlag = "amount_differs"  // the statement shows another amount than the merchant announced
	FlagValue         OTCFlag = "value_differs"   // the statement shows another value date than the officers typed
)

// OTCFlags lists the flags in a fixed order.
func OTCFlags() []OTCFlag {
	return []OTCFlag{FlagSameFile, FlagSameReceipt, FlagSameReference, FlagSender, FlagFutureValue, FlagOldValue, FlagAmount, FlagValue}
}

// OTCDeposit is shillings that a merchant pays to the house, for shillings in its balance or for crypto of the treasury.
type OTCDeposit struct {
	ID         uuid.UUID
	MerchantID uuid.UUID // the master merchant
	CreatedBy  uuid.UUID
	Method     OTCMethod
	Fiat       money.Amount // as the merchant announced it
	Status     OTCStatus
	Detail     string
	Reference  string // what the payer writes on the payment
	BankID     uuid.UUID
	ExpiresAt  time.Time // zero when no time ends it

	// What the merchant says of its payment. It is shown and decides nothing.
	TransferDate  time.Time
	SenderName    string
	SenderLast4   string // of the account's number
	SenderBank    string
	SenderBranch  string
	ReceiptNumber string
	ProofID       uuid.UUID // the latest proof; all are uses of files
	ProofName     string
	ProofType     FileType
	ProofSize     int64
	ProofSHA256   string // in hexadecimal
	ProofAt       time.Time

	// What is asked for.
	Asset           money.Asset // KES, USDT or USDC
	Network         Network     // of crypto
	ToWalletID      uuid.UUID   // of the merchant, which the treasury credits
	ToAddress       string
	RequestedCrypto money.Amount // as the quote priced the announced amount
	QuoteID         uuid.UUID
	ProfileID       uuid.UUID
	Rate            decimal.Decimal // shillings per unit; zero for shillings
	Fee             money.Amount    // in shillings, out of what was received
	QuotedFiat      money.Amount    // what the quote is for; without an asset for shillings
	QuoteEndsAt     time.Time
	Crypto          money.Amount // what was or will be credited

	// Mobile money.
	Phone             Phone
	MerchantRequestID string
	CheckoutRequestID string
	MomoReceipt       string
	NamedPaymentID    uuid.UUID // the payment to our number that officers named as its money
	NamedBy           uuid.UUID
	NamedSecond       uuid.UUID // the second officer, above what needs none
	AutomaticAt       time.Time // when its money was let through without an officer; zero for money that one has to confirm

	// What came.
	Received   money.Amount
	ValueDate  time.Time // the day at midnight UTC
	ReceivedAt time.Time // when it was booked
	LineID     uuid.UUID
	BankRef    string // the bank's own reference of the movement

	// Who does what.
	AssignedTo       uuid.UUID
	ClaimedBy        uuid.UUID
	ClaimEndsAt      time.Time
	ConfirmedBy      uuid.UUID // zero for one that two sources of the operator prove
	ConfirmedAt      time.Time
	AgreedBy         uuid.UUID // the second officer, where no line proves the money
	CreditedBy       uuid.UUID
	CreditedAt       time.Time
	TransferIntentID uuid.UUID // by which the settling officer asks for the transfer of the crypto
	TransferID       uuid.UUID
	AuditedBy        uuid.UUID
	AuditedAt        time.Time
	RejectedBy       uuid.UUID
	RejectedAt       time.Time
	Reason           string // of a rejection or a cancellation
	HeldFrom         OTCStatus
	InfoRequest      string
	InfoReply        string
	InternalNote     string
	Flags            []OTCFlag
	SubmittedAt      time.Time
	IntentID         uuid.UUID // that created it
	CreatedAt        time.Time
	UpdatedAt        time.Time
	Version          int64
}

// HasMoney reports whether money of it is booked.
func (d OTCDeposit) HasMoney() bool { return !d.ReceivedAt.IsZero() }

// Sells reports whether the merchant gets crypto.
func (d OTCDeposit) Sells() bool { return d.Asset != money.KES }

// Over reports whether the deposit has ended.
func (d OTCDeposit) Over() bool { return OTCMachine.Terminal(d.Status) }

// Counted is the amount of shillings that is priced: what came, or what the merchant announced.
func (d OTCDeposit) Counted() money.Amount {
	if d.HasMoney() {
		return d.Received
	}
	return d.Fiat
}

// Held reports whether an officer holds the deposit at a moment.
func (d OTCDeposit) Held(by uuid.UUID, at time.Time) bool {
	return d.Status == OTCClaimed && d.ClaimedBy == by && at.Before(d.ClaimEndsAt)
}

// QuoteHolds reports whether the quote covers money: by the bank's value date, whenever somebody looks, and within its bounds. day
// is the last day of the quote in Kenya, at midnight UTC as the value date.
func (d OTCDeposit) QuoteHolds(received money.Amount, value, day time.Time) bool {
	if !d.Sells() {
		return true
	}
	if d.QuoteID == uuid.Nil || value.After(day) {
		return false
	}
	off := received.Sub(d.QuotedFiat)
	if off.Sign() < 0 {
		off = off.Neg()
	}
	return off.Cmp(d.QuotedFiat.MulFloor(money.KES, decimal.New(OTCBounds, -4))) <= 0
}

// Due is when something happens to the deposit by time: the end of a lease, of a quote that was not submitted, of a draft, or of the wait
// for money. Zero when nothing does. Mobile money that may be on its way is waited for longer. One with a proof of its payment
// ends by an officer: a proof is evidence of money, but not of a prompt, about which the operator knows.
func (d OTCDeposit) Due() time.Time {
	switch d.Status {
	case OTCDraft:
		return d.ExpiresAt
	case OTCQuoted:
		if d.QuoteEndsAt.Before(d.ExpiresAt) {
			return d.QuoteEndsAt
		}
		return d.ExpiresAt
	case OTCClaimed:
		return d.ClaimEndsAt
	case OTCPending, OTCAssigned:
		if !d.HasMoney() && (d.ProofID == uuid.Nil || d.Method == OTCByMomo) {
			return d.ExpiresAt
		}
	case OTCInfo, OTCHold, OTCConfirmed, OTCSettling, OTCCredited, OTCAudited, OTCRejected, OTCCancelled, OTCExpired:
	}
	return time.Time{}
}

// Collects is the method by which mobile money of the deposit may still come; empty for none.
func (d OTCDeposit) Collects() OTCMethod {
	if d.Method == OTCByBank || !d.Status.TakesMoney() || d.HasMoney() {
		return ""
	}
	return d.Method
}

// SettlesItself reports whether the flow credits the deposit: shillings by mobile money that needed no officer.
func (d OTCDeposit) SettlesItself() bool {
	return d.Status == OTCConfirmed && d.Method != OTCByBank && !d.Sells() && d.ConfirmedBy == uuid.Nil
}

// OTCTransfer is what the flow of a deposit needs to know of the transfer that pays its crypto.
type OTCTransfer struct {
	ID       uuid.UUID
	IntentID uuid.UUID
	Opened   bool
	Short    bool   // it is not opened, and the treasury's wallet has too little
	Source   string // where more can be brought from, in words, if it is short and there is more
}

// tookPart are the accounts of the four steps, and the one that agreed with the second; each is another one.
func (d OTCDeposit) tookPart() []uuid.UUID {
	return []uuid.UUID{d.CreatedBy, d.ConfirmedBy, d.AgreedBy, d.CreditedBy, d.AuditedBy}
}

// TookPart reports whether a person created, confirmed, settled or audited the deposit.
func (d OTCDeposit) TookPart(person uuid.UUID) bool {
	return person != uuid.Nil && slices.Contains(d.tookPart(), person)
}

// Named reports whether a person named the payment that is the deposit's money.
func (d OTCDeposit) Named(person uuid.UUID) bool {
	return person != uuid.Nil && (person == d.NamedBy || person == d.NamedSecond)
}

// AddFlags adds flags in their order and returns those that are new.
func (d *OTCDeposit) AddFlags(more ...OTCFlag) []OTCFlag {
	var added []OTCFlag
	all := []OTCFlag{}
	for _, f := range OTCFlags() {
		has, gets := slices.Contains(d.Flags, f), slices.Contains(more, f)
		if has || gets {
			all = append(all, f)
		}
		if gets && !has {
			added = append(added, f)
		}
	}
	d.Flags = all
	return added
}

// SoundsLike reports whether two names have a word in common, whatever their case and signs. An empty one says nothing.
func SoundsLike(a, b string) bool {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	mine := words(a)
	if len(mine) == 0 {
		return true
	}
	return slices.ContainsFunc(words(b), func(w string) bool { return len(w) > 2 && slices.Contains(mine, w) })
}

// OTCConfirmation is what an officer said of a deposit's money.
type OTCConfirmation struct {
	ID        uuid.UUID // of the intent
	DepositID uuid.UUID
	OfficerID uuid.UUID
	Amount    money.Amount
	ValueDate time.Time
	BankID    uuid.UUID
	Reference string    // the bank's, in the form of BankReference; that of the line where there is one
	LineID    uuid.UUID // zero without a line
	At        time.Time
}
