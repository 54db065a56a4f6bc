package exchange

import "github.com/google/uuid"

// OffRampFlow is the workflow id of an order that sells crypto. Money that arrives at its escrow address wakes it.
func OffRampFlow(order uuid.UUID) string { return "off-ramp:" + order.String() }

// DepositVerdict is how money that came to an order's escrow address fits the order.
type DepositVerdict string

// The verdicts.
const (
	TakenExact      DepositVerdict = "exact"
	TakenWaits      DepositVerdict = "waits"       // another amount, while the order may still be paid: it decides nothing yet
	TakenRepriced   DepositVerdict = "repriced"    // another amount, priced at the order's rate when the order has expired
	TakenMismatch   DepositVerdict = "mismatch"    // another amount, which the offer does not allow: all of it is returned
	TakenWrongAsset DepositVerdict = "wrong_asset" // another coin: it stays in suspense, and the order keeps waiting
	TakenDuplicate  DepositVerdict = "duplicate"   // the order already has its deposit
	TakenLate       DepositVerdict = "late"        // the order was closed
	TakenKnown      DepositVerdict = "known"       // already taken, or not to be taken
)

// DepositTaken is the result of taking a deposit. Exception and Refund have a zero id if there is none.
type DepositTaken struct {
	Verdict   DepositVerdict
	Order     Order
	Exception PaymentException
	Refund    Refund
}
