package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// FloatAccount is one of our accounts at a mobile money operator. Collections are credited to the
// working account; payouts leave the utility account. Available is what can be paid out.
type FloatAccount struct {
	Name      string       `json:"name"`
	Current   money.Amount `json:"current"`
	Available money.Amount `json:"available"`
	Reserved  money.Amount `json:"reserved"`
	Uncleared money.Amount `json:"uncleared"`
}

// FloatReport is the operator's report of our balances. Ticket is the id of the request. Without accounts the operator did
// not report them, and Code and Text say why.
type FloatReport struct {
	Ticket   string         `json:"ticket"`
	Code     string         `json:"code"`
	Text     string         `json:"text,omitempty"`
	Accounts []FloatAccount `json:"accounts,omitempty"`
	At       time.Time      `json:"at,omitzero"` // the operator's time, in UTC
}

// FloatUtility and FloatWorking are our names of the operator's accounts: that which payouts leave from, and that which
// collections are credited to.
const (
	FloatUtility = "utility"
	FloatWorking = "working"
)

// Account finds one of the reported accounts by its name.
func (r FloatReport) Account(name string) (FloatAccount, bool) {
	for _, a := range r.Accounts {
		if a.Name == name {
			return a, true
		}
	}
	return FloatAccount{}, false
}

// FloatCheck is the operator's report beside the books at the time when it arrived. All amounts are KES.
type FloatCheck struct {
	Ticket     string
	Utility    money.Amount // the account that payouts leave
	Working    money.Amount // the account that collections are credited to
	Booked     money.Amount // momo_payout
	Held       money.Amount // part of Booked that is held for open payouts
	Collected  money.Amount // momo_collection
	Open       int          // payouts that may still move money
	Difference money.Amount // how far the utility account is above or below what the books allow
	NotifiedAt time.Time
	ReceivedAt time.Time
}

// Room is what can be paid out: the lower of the reported balance and the booked balance that is not held.
func (c FloatCheck) Room() money.Amount {
	free := c.Booked.Sub(c.Held)
	if c.Utility.Cmp(free) < 0 {
		return c.Utility
	}
	return free
}

// FloatDifference is how far the utility account is outside the books: above the booked balance, or (negative) below the
// booked balance less what is held. Between the two there is no difference, because open payouts may or may not have left
// the account.
func FloatDifference(utility, booked, held money.Amount) money.Amount {
	if utility.Cmp(booked) > 0 {
		return utility.Sub(booked)
	}
	if low := booked.Sub(held); utility.Cmp(low) < 0 {
		return utility.Sub(low)
	}
	return money.Zero(booked.Asset())
}

// FloatState is the float by the books and by the operator's last reports, and what blocks payouts.
type FloatState struct {
	Payout     Account // momo_payout
	Collection Account // momo_collection
	Open       int     // payouts that may still move money
	Reports    []FloatCheck
	Disagrees  bool // the last two reports differ from the books by the same amount, with no payout open
	Breaker    Breaker
	Moves      []FloatMove // that may still move money
	Terms      MomoTerms   // in force
}

// FloatWakeups is how many waiting flows are woken at once when float arrives. The others are woken when it grows again.
const FloatWakeups = 100

// FloatWaiter is a sale, a refund with its collection's attempt, or a withdrawal, that waits for float.
type FloatWaiter struct {
	WorkflowID string // of the flow to wake, when it is known; the other fields then are zero
	OrderID    uuid.UUID
	RefundID   uuid.UUID
	AttemptID  uuid.UUID
	// WithdrawalID is that of a withdrawal, which has no order.
	WithdrawalID uuid.UUID
}

// Grew reports whether the last report left more room than the one before it. A first report counts as growth.
func (s FloatState) Grew() bool {
	switch len(s.Reports) {
	case 0:
		return false
	case 1:
		return true
	}
	return s.Reports[0].Room().Cmp(s.Reports[1].Room()) > 0
}

// FloatMoveStatus is the state of a movement of float.
type FloatMoveStatus string

// The states. The operator has no id of ours for a movement, so it is requested only once. The outcome is unknown from just
// before the request until the operator reports it or an officer settles it.
const (
	FloatCreated   FloatMoveStatus = "created"
	FloatAccepted  FloatMoveStatus = "accepted"
	FloatUnknown   FloatMoveStatus = "unknown"
	FloatRefused   FloatMoveStatus = "refused"
	FloatCompleted FloatMoveStatus = "completed"
	FloatFailed    FloatMoveStatus = "failed"
)

// FloatMoveMachine governs movements of float.
var FloatMoveMachine = Machine[FloatMoveStatus]{
	Name: "float_move", Initial: FloatCreated,
	Transitions: []Transition[FloatMoveStatus]{
		{FloatCreated, FloatUnknown, ByFlow, "the request is about to be sent"},
		{FloatUnknown, FloatAccepted, ByFlow, "the operator acknowledged it"},
		{FloatUnknown, FloatRefused, ByFlow, "the operator refused it"},
		{FloatUnknown, FloatCompleted, ByOperator, "the result and a status query agree, or its receipt is in the operator's statement"},
		{FloatUnknown, FloatFailed, ByOperator, "the result and a status query agree, or no statement of the operator lists it"},
		{FloatAccepted, FloatCompleted, ByFlow, "the result and a status query agree"},
		{FloatAccepted, FloatFailed, ByFlow, "the result and a status query agree"},
	},
	Final: []FloatMoveStatus{FloatRefused, FloatCompleted, FloatFailed},
}

// FloatMove moves shillings from the working account to the utility account.
type FloatMove struct {
	ID             uuid.UUID
	Amount         money.Amount // whole shillings
	Status         FloatMoveStatus
	ChangeID       uuid.UUID // of the second officer's agreement, where the amount needs one
	AskedBy        uuid.UUID
	CallbackToken  string    // of the operator's callbacks; only its hash is stored
	StatusToken    string    // of the answers to our queries; only its hash is stored
	HoldID         uuid.UUID // of the amount in the working account
	ConversationID string    // the operator's ids of it
	OriginatorID   string
	Code           string
	Receipt        string
	Note           string
	SettledBy      uuid.UUID // the officer who settled it
	CreatedAt      time.Time
	UpdatedAt      time.Time
	ClaimedAt      time.Time // when a run claimed it, which alone may send the request
	SettledAt      time.Time
	Version        int64
}

// FloatSending is how long after its claim the request for a movement may still be on its way. Until then no officer declares
// that it failed.
const FloatSending = 3 * time.Minute

// Open reports whether it may still move money.
func (m FloatMove) Open() bool {
	return m.Status == FloatCreated || m.Status == FloatUnknown || m.Status == FloatAccepted
}
