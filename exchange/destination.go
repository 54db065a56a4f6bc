package exchange

import (
	"time"

	"github.com/google/uuid"
)

// DestinationKind is how money reaches a saved destination.
type DestinationKind string

// The kinds of destinations.
const (
	DestinationPhone   DestinationKind = "phone"   // shillings by mobile money
	DestinationBank    DestinationKind = "bank"    // shillings to an account at a bank
	DestinationAddress DestinationKind = "address" // crypto to an address on a network
)

// DestinationKinds lists the kinds in a fixed order.
func DestinationKinds() []DestinationKind {
	return []DestinationKind{DestinationPhone, DestinationBank, DestinationAddress}
}

// DestinationStatus is the state of a saved destination.
type DestinationStatus string

// The states of a destination.
const (
	DestinationUnconfirmed DestinationStatus = "unconfirmed" // saved; nothing goes there
	DestinationConfirmed   DestinationStatus = "confirmed"   // the master merchant agreed to it; it rests first
	DestinationRemoved     DestinationStatus = "removed"
)

// ByMerchant is a master merchant or one of its subvendors.
const ByMerchant = "merchant"

// DestinationMachine governs saved destinations. One that was removed stays so: the same destination is saved anew, and rests
// anew.
var DestinationMachine = Machine[DestinationStatus]{
	Name: "otc_destination", Initial: DestinationUnconfirmed,
	Transitions: []Transition[DestinationStatus]{
		{DestinationUnconfirmed, DestinationConfirmed, string(RoleVendor), "by the master merchant itself, with a fresh proof of who it is"},
		{DestinationUnconfirmed, DestinationRemoved, ByMerchant, "by the merchant, or by an admin for it"},
		{DestinationConfirmed, DestinationRemoved, ByMerchant, "by the merchant, or by an admin for it"},
	},
	Final: []DestinationStatus{DestinationRemoved},
}

// WaitConfirmation is the status detail of a destination that its master merchant has not confirmed.
const WaitConfirmation = "confirmation"

// Limits of destinations.
const (
	MaxDestinations     = 100 // of one merchant that are not removed
	MaxDestinationLabel = 80  // characters
)

// Destination is where a merchant lets its money be sent. Nothing of it but its status ever changes. Only the fields of its
// kind are set.
type Destination struct {
	ID         uuid.UUID
	MerchantID uuid.UUID // the master merchant
	Kind       DestinationKind
	Label      string

	Phone Phone

	BankName      string
	BankCode      string // of Kenya's clearing, or empty
	Branch        string
	SwiftCode     string // a BIC, or empty
	AccountName   string
	AccountNumber string // in the form of BankReference

	Network Network
	Address string

	Status      DestinationStatus
	CreatedBy   uuid.UUID
	ConfirmedBy uuid.UUID
	ConfirmedAt time.Time // by the database's clock, from which it rests
	RestsUntil  time.Time // zero until it is confirmed
	RemovedBy   uuid.UUID
	RemovedAt   time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Version     int64
}

// Recipient names the destination as releases do.
func (d Destination) Recipient() string {
	switch d.Kind {
	case DestinationPhone:
		return "momo:" + d.Phone.Digits()
	case DestinationBank:
		return "bank:" + d.AccountNumber
	case DestinationAddress:
		return string(d.Network) + ":" + d.Address
	}
	return ""
}

// Hint tells the destination's owner which one it is, without repeating all of it.
func (d Destination) Hint() string {
	last := func(s string, n int) string { return s[max(0, len(s)-n):] }
	switch d.Kind {
	case DestinationPhone:
		return "the mobile number that ends in " + last(d.Phone.Digits(), 3)
	case DestinationBank:
		return "the account at " + d.BankName + " that ends in " + last(d.AccountNumber, 4)
	case DestinationAddress:
		return "the " + string(d.Network) + " address that ends in " + last(d.Address, 6)
	}
	return ""
}
