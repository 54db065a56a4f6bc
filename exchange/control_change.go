package exchange

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// ControlKind is what a change of the controls loosens.
type ControlKind string

// The kinds. What only tightens them is no such change: it takes effect at once.
const (
	ControlHouseLimits ControlKind = "house_limits" // limits of roles, valuations, the approval rule
	ControlUserLimits  ControlKind = "user_limits"  // a user's own limits, above those of its role
	ControlStaffAccess ControlKind = "staff_access" // the account of an admin or a treasury officer becomes active
	// What is the treasury's business; an officer of it may propose it too.
	ControlMomoTerms          ControlKind = "momo_terms"          // the operator's limits and tariff, from a time on
	ControlTreasuryAllocation ControlKind = "treasury_allocation" // shillings for the platform's own treasury, or back
	ControlFloatMove          ControlKind = "float_move"          // a large movement of float at the operator
	ControlExceptionDecision  ControlKind = "exception_decision"  // what becomes of much money that does not fit
	ControlPayoutWord         ControlKind = "payout_word"         // what became of a payout of which the operator says too little
)

// ControlStatus is the state of a change of the controls.
type ControlStatus string

// The states.
const (
	ControlPending   ControlStatus = "pending"   // nothing has changed yet
	ControlConfirmed ControlStatus = "confirmed" // a second person agreed, and it took effect in that moment
	ControlRejected  ControlStatus = "rejected"  // a second person said no, or who proposed it thought better of it
)

// ControlKinds lists what a change may loosen.
func ControlKinds() []ControlKind {
	return []ControlKind{
		ControlHouseLimits, ControlUserLimits, ControlStaffAccess, ControlMomoTerms, ControlTreasuryAllocation, ControlFloatMove,
		ControlExceptionDecision, ControlPayoutWord,
	}
}

// ByColleague is an admin or a treasury officer who neither proposed the change nor gains by it.
const ByColleague = "colleague"

// ControlChangeMachine governs changes of the controls.
var ControlChangeMachine = Machine[ControlStatus]{
	Name: "control_change", Initial: ControlPending,
	Transitions: []Transition[ControlStatus]{
		{ControlPending, ControlConfirmed, ByColleague, "it is in time, and what it replaces is as it was when it was proposed"},
		{ControlPending, ControlRejected, ByColleague, "not wanted; who proposed it may take it back too"},
	},
	Final: []ControlStatus{ControlConfirmed, ControlRejected},
}

// Limits of changes of the controls.
const (
	ControlChangeLife        = 7 * 24 * time.Hour // after that nobody can confirm it any more
	MaxPendingControlChanges = 100                // of the house, so that everything that waits can be shown at once
)

// ControlChange is a loosening of what stands between one person and the money. It takes effect when a second
// person confirms it. Was and Change have the fields that the API shows, and only those that differ.
type ControlChange struct {
	ID         uuid.UUID
	Kind       ControlKind
	SubjectID  uuid.UUID // who gains by it; zero for the house's limits
	Was        json.RawMessage
	Change     json.RawMessage
	ProposedBy uuid.UUID
	ProposedAt time.Time
	ExpiresAt  time.Time
	Status     ControlStatus
	DecidedBy  uuid.UUID
	DecidedAt  time.Time
	Note       string // of who decided
}

// Officer tells whether r decides about other people's money: it approves transfers and confirms changes of
// the controls.
func (r Role) Officer() bool { return r == RoleAdmin || r == RoleTreasury }
