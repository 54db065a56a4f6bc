package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// MerchantStatement is what happened to the shillings of a merchant in a period, as the ledger has it at one moment.
type MerchantStatement struct {
	MerchantID uuid.UUID
	From, To   time.Time // the days of the period at midnight UTC: from From on, before To, as they are in Kenya
	Opening    money.Amount
	Credits    money.Amount // the sum of what came in
	Debits     money.Amount // the sum of what went out
	Closing    money.Amount
	Movements  int
	At         time.Time       // the moment
	Lines      StatementExtent // where its movements are
}

// StatementExtent is where the ledger has the movements of a statement: the lines of an account after one, up to another. All of
// them are committed, and no others come between them.
type StatementExtent struct {
	Account     int64
	After, Last int64
}

// StatementMovement is one change of a merchant's balance. Exactly one of Credit and Debit is above zero.
type StatementMovement struct {
	Line          int64
	At            time.Time
	Reason        StatementReason
	ObjectType    string // what it was for; empty where no object is
	ObjectID      uuid.UUID
	Reference     string       // the receipt, the bank's reference of the payment, or that of a deposit; empty without one
	Crypto        money.Amount // of an order, or that the treasury bought or sold; without an asset for others
	Credit, Debit money.Amount
	Balance       money.Amount // after it
}

// StatementReason is why the balance of a merchant changed.
type StatementReason string

// The reasons.
const (
	ReasonPurchase   StatementReason = "purchase"    // a customer paid for crypto of the merchant
	ReasonSale       StatementReason = "sale"        // a customer was paid for crypto that the merchant bought
	ReasonLatePayout StatementReason = "late_payout" // a customer was paid after all, by a payout that was recorded as refused
	ReasonException  StatementReason = "exception"   // officers credited money that had fitted nothing
	ReasonDeposit    StatementReason = "otc_deposit" // what the merchant paid in was credited
	ReasonDeskSale   StatementReason = "otc_sale"    // the treasury bought crypto that the merchant withdraws as shillings
	ReasonWithdrawal StatementReason = "otc_withdrawal"
	ReasonOther      StatementReason = "other"
)

// StatementReasons lists the reasons.
func StatementReasons() []StatementReason {
	return []StatementReason{ReasonPurchase, ReasonSale, ReasonLatePayout, ReasonException, ReasonDeposit, ReasonDeskSale, ReasonWithdrawal, ReasonOther}
}

// ReasonOf is the reason of a change of a merchant's balance, by the kind of the ledger's entry.
func ReasonOf(entry string, credit bool) StatementReason {
	switch entry {
	case "order.completed":
		if credit {
			return ReasonPurchase
		}
		return ReasonSale
	case "order_payout.kept":
		return ReasonLatePayout
	case "exception.credited":
		return ReasonException
	case "otc_deposit.settled":
		return ReasonDeposit
	case "otc_withdrawal.sold":
		return ReasonDeskSale
	case "otc_withdrawal.paid", "otc_withdrawal.bought":
		return ReasonWithdrawal
	}
	return ReasonOther
}

// MaxStatementDays is the longest period of a merchant's statement.
const MaxStatementDays = 366
