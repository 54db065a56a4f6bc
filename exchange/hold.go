package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// HoldStatus is the state of reserved money.
type HoldStatus string

// The states of a hold.
const (
	HoldHeld     HoldStatus = "held"
	HoldCaptured HoldStatus = "captured" // the reserved money was spent
	HoldReleased HoldStatus = "released" // the money is free again
)

// HoldMachine governs holds.
var HoldMachine = Machine[HoldStatus]{
	Name: "hold", Initial: HoldHeld,
	Transitions: []Transition[HoldStatus]{
		{HoldHeld, HoldCaptured, ByFlow, "the reserved money is spent"},
		{HoldHeld, HoldReleased, ByFlow, "the reservation is cancelled"},
	},
	Final: []HoldStatus{HoldCaptured, HoldReleased},
}

// Hold reserves part of an account's balance for one object. An order's hold is split off its offer's, so what the offer has
// left is exactly the amount of its own hold.
type Hold struct {
	ID         uuid.UUID
	Key        string // business key: placing the same key again has no effect
	Account    AccountRef
	ParentID   uuid.UUID // the hold that it was split off
	Amount     money.Amount
	Status     HoldStatus
	ObjectType string
	ObjectID   uuid.UUID
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// HoldVerb is an operation on a hold.
type HoldVerb string

// The verbs. Place reserves from the account's available balance. Split moves part of a parent hold into a new one. Grow
// adds to a hold from the available balance, and Shrink gives a part of it back. Release frees the hold's money; Return gives it back to the parent hold.
// Capture ends the hold because an entry in the same posting spends the money.
const (
	HoldPlace   HoldVerb = "place"
	HoldSplit   HoldVerb = "split"
	HoldGrow    HoldVerb = "grow"
	HoldShrink  HoldVerb = "shrink"
	HoldRelease HoldVerb = "release"
	HoldReturn  HoldVerb = "return"
	HoldCapture HoldVerb = "capture"
)

// HoldOp is one operation on one hold. Place and Split need the complete new hold; the others need only its id (and Grow and
// Shrink the amount to add or to give back).
type HoldOp struct {
	Verb HoldVerb
	Hold Hold
}

// Posting is a set of entries and hold operations that are applied together or not at all.
type Posting struct {
	Entries []Entry
	Holds   []HoldOp
}
