package exchange

import (
	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// MomoObjectType is what mobile money is collected or paid out for.
type MomoObjectType string

// The types of objects. An order that buys crypto wants mobile money, one that sells it owes it, and so does a refund.
const (
	MomoOrder  MomoObjectType = "order"
	MomoRefund MomoObjectType = "refund" // of a collection
	// A withdrawal of a merchant owes it.
	MomoWithdrawal MomoObjectType = "otc_withdrawal"
	// A deposit of a merchant wants it.
	MomoDeposit MomoObjectType = "otc_deposit"
)

// MomoObjectTypes lists the types.
func MomoObjectTypes() []MomoObjectType {
	return []MomoObjectType{MomoOrder, MomoRefund, MomoWithdrawal, MomoDeposit}
}

// MomoObject is an object that wants or owes mobile money. The same rules apply to the collections of all of them, and to
// the payouts.
type MomoObject struct {
	Type MomoObjectType `json:"type"`
	ID   uuid.UUID      `json:"id"`
}

// OrderObject is an order, as an object of collections or payouts.
func OrderObject(order uuid.UUID) MomoObject { return MomoObject{Type: MomoOrder, ID: order} }

// RefundObject is a refund, as an object of payouts.
func RefundObject(refund uuid.UUID) MomoObject { return MomoObject{Type: MomoRefund, ID: refund} }

// WithdrawalObject is a withdrawal, as an object of payouts.
func WithdrawalObject(withdrawal uuid.UUID) MomoObject {
	return MomoObject{Type: MomoWithdrawal, ID: withdrawal}
}

// DepositObject is an OTC deposit, as an object of collections.
func DepositObject(deposit uuid.UUID) MomoObject { return MomoObject{Type: MomoDeposit, ID: deposit} }

// OrderID is the id of an order; zero for another object.
func (o MomoObject) OrderID() uuid.UUID { return o.only(MomoOrder) }

// RefundID is the id of a refund; zero for another object.
func (o MomoObject) RefundID() uuid.UUID { return o.only(MomoRefund) }

// WithdrawalID is the id of a withdrawal; zero for another object.
func (o MomoObject) WithdrawalID() uuid.UUID { return o.only(MomoWithdrawal) }

// DepositID is the id of an OTC deposit; zero for another object.
func (o MomoObject) DepositID() uuid.UUID { return o.only(MomoDeposit) }

func (o MomoObject) only(t MomoObjectType) uuid.UUID {
	if o.Type != t {
		return uuid.Nil
	}
	return o.ID
}

// Collectable is what an object wants by mobile money.
type Collectable struct {
	Object    MomoObject
	Amount    money.Amount
	Phone     Phone  // of the payer, who is prompted
	Reference string // what the payer reads and enters; see PaymentAttempt
	Status    string // of the object
	Detail    string // what it waits for
	// Waits is false when it takes no payment: it is paid or has ended. Money that comes then is late.
	Waits bool
	// Any is true when it takes whatever amount comes, and prices it then. Otherwise it takes Amount.
	Any bool
	// ByHand is true when nobody is prompted: the payer pays our number under the reference.
	ByHand bool
}

// Payable is what an object owes by mobile money.
type Payable struct {
	Object    MomoObject
	OrderID   uuid.UUID // the order that it belongs to
	Amount    money.Amount
	Phone     Phone
	Reference string // what the payee reads; see PaymentAttempt
	Status    string // of the object
	Paid      bool
	Receipt   string // of the payment that completed it
	Claimed   bool   // a source claims that a refused payout was made, so no other begins
}
