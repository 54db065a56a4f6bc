package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ApprovalAction is what an officer decides.
type ApprovalAction string

// The decisions.
const (
	Approve ApprovalAction = "approve"
	Reject  ApprovalAction = "reject"
)

// Done is the word for a decision that was made: "approved", "rejected".
func (a ApprovalAction) Done() string {
	if a == Approve {
		return "approved"
	}
	return "rejected"
}

// Valid tells whether a is a known decision.
func (a ApprovalAction) Valid() bool { return a == Approve || a == Reject }

// ApprovalDoor is the way on which a decision came.
type ApprovalDoor string

// The doors. Both lead to one handler, which believes nothing but the token.
const (
	DoorAPI    ApprovalDoor = "api"
	DoorSignal ApprovalDoor = "signal"
)

// ApprovalObject is the type of object that waits for officers.
type ApprovalObject string

// The objects that wait for officers.
const (
	ApproveTransfer   ApprovalObject = "transfer"
	ApproveRefund     ApprovalObject = "refund"      // in crypto
	ApproveBankPayout ApprovalObject = "bank_payout" // officers confirm that it was made
)

// ApprovalObjects lists them.
func ApprovalObjects() []ApprovalObject {
	return []ApprovalObject{ApproveTransfer, ApproveRefund, ApproveBankPayout}
}

// ApprovalTicket asks for the right to one decision. Digest is what the officer saw; it must be that of
// the object.
type ApprovalTicket struct {
	ID         uuid.UUID
	OfficerID  uuid.UUID
	ObjectType ApprovalObject
	ObjectID   uuid.UUID
	Action     ApprovalAction
	Amount     money.Amount
	Digest     string
	Door       ApprovalDoor
	Note       string
	TokenHash  [32]byte // the token itself is known to the officer alone
	CreatedAt  time.Time
	ExpiresAt  time.Time
}

// Approval is a decision that was proven and counted.
type Approval struct {
	ID        uuid.UUID
	ObjectID  uuid.UUID
	OfficerID uuid.UUID
	Action    ApprovalAction
	Door      ApprovalDoor
	Note      string
	CreatedAt time.Time
}
