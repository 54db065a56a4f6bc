package exchange

import (
	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// PayoutKind is what a payout by mobile money pays.
type PayoutKind string

// The kinds of objects that payouts pay.
const (
	PayoutOrder  PayoutKind = "order"  // the shillings of an order that sells crypto
	PayoutRefund PayoutKind = "refund" // a refund of a collection
)

// PayoutObject is an object that owes mobile money. The same rules apply to the payouts of all of them.
type PayoutObject struct {
	Type PayoutKind `json:"type"`
	ID   uuid.UUID  `json:"id"`
}

// PayoutOfOrder is the payout of an order.
func PayoutOfOrder(order uuid.UUID) PayoutObject { return PayoutObject{Type: PayoutOrder, ID: order} }

// PayoutOfRefund is the payout of a refund.
func PayoutOfRefund(refund uuid.UUID) PayoutObject {
	return PayoutObject{Type: PayoutRefund, ID: refund}
}

// Pays returns what an attempt to pay out pays.
func (a PaymentAttempt) Pays() PayoutObject {
	if a.RefundID != uuid.Nil {
		return PayoutOfRefund(a.RefundID)
	}
	return PayoutOfOrder(a.OrderID)
}

// Payable is what an object owes by mobile money.
type Payable struct {
	Object    PayoutObject
	OrderID   uuid.UUID // the order that it belongs to
	Amount    money.Amount
	Phone     Phone
	Reference string // what the payee reads; see PaymentAttempt
	Status    string // of the object
	Paid      bool
	Receipt   string // of the payment that completed it
	Claimed   bool   // a source claims that a refused payout was made, so no other begins
}
