package exchange

import "github.com/google/uuid"

// OffRampFlow is the id of the flow of an order that sells crypto, which is woken by what comes to its escrow
// address.
func OffRampFlow(order uuid.UUID) string { return "off-ramp:" + order.String() }

// DetailUnfunded is the detail of a sale that was closed because the wallet that should have paid for it had too little.
const DetailUnfunded = "unfunded"

// DepositVerdict says how money that came to an order's escrow address fits the order.
type DepositVerdict string

// The verdicts.
const (
	TakenExact      DepositVerdict = "exact"
	TakenRepriced   DepositVerdict = "repriced"    // another amount, priced anew at the order's rate
	TakenMismatch   DepositVerdict = "mismatch"    // another amount, which the offer does not allow: all of it goes back
	TakenWrongAsset DepositVerdict = "wrong_asset" // another coin: it is set aside, and the order waits on
	TakenDuplicate  DepositVerdict = "duplicate"   // the order has its deposit already
	TakenLate       DepositVerdict = "late"        // the order was over
	TakenKnown      DepositVerdict = "known"       // taken before, or nothing that is to be taken
)

// DepositTaken is what became of a deposit. Exception and Refund have a zero id where there is none.
type DepositTaken struct {
	Verdict   DepositVerdict
	Order     Order
	Exception PaymentException
	Refund    Refund
}
