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

// FloatReport is the operator's answer to a question for our balances. Ticket names the question; a
// Code other than "0" says why there are no accounts in it.
type FloatReport struct {
	Ticket   string         `json:"ticket"`
	Code     string         `json:"code"`
	Text     string         `json:"text,omitempty"`
	Accounts []FloatAccount `json:"accounts,omitempty"`
	At       time.Time      `json:"at,omitzero"` // the operator's time, in UTC
}

// Utility and Working name the accounts at the operator as it writes them in its answer (portal, Account Balance).
const (
	FloatUtility = "Utility Account"
	FloatWorking = "Working Account"
)

// Account finds one of the reported accounts by the operator's name for it.
func (r FloatReport) Account(name string) (FloatAccount, bool) {
	for _, a := range r.Accounts {
		if a.Name == name {
			return a, true
		}
	}
	return FloatAccount{}, false
}

// FloatCheck is a report of the operator beside what the books said when it was heard. All amounts are KES.
type FloatCheck struct {
	Ticket     string
	Utility    money.Amount // the account that payouts leave
	Working    money.Amount // the account that collections are credited to
	Booked     money.Amount // momo_payout
	Held       money.Amount // of it, for payouts that are open
	Collected  money.Amount // momo_collection
	Open       int          // payouts that may still move money
	Difference money.Amount // by how much the utility account is above or below what the books allow
	ToldAt     time.Time
	ReceivedAt time.Time
}

// Room is what payouts can be made from: what the operator says that is there, and the books don't hold for other payouts.
func (c FloatCheck) Room() money.Amount {
	free := c.Booked.Sub(c.Held)
	if c.Utility.Cmp(free) < 0 {
		return c.Utility
	}
	return free
}

// FloatDifference is by how much the utility account is off the books: above what is booked, or (negative) below what is
// booked less what is held. Between the two, open payouts may or may not have left it.
func FloatDifference(utility, booked, held money.Amount) money.Amount {
	if utility.Cmp(booked) > 0 {
		return utility.Sub(booked)
	}
	if low := booked.Sub(held); utility.Cmp(low) < 0 {
		return utility.Sub(low)
	}
	return money.Zero(booked.Asset())
}

// FloatState is what can be paid out: the books, the operator's last words, and what stands in the way.
type FloatState struct {
	Payout     Account // momo_payout
	Collection Account // momo_collection
	Open       int     // payouts that may still move money
	Reports    []FloatCheck
	Disagrees  bool // the last two reports differ from the books by the same, with no payout open
	Breaker    Breaker
	Moves      []FloatMove // that may still move money
	Terms      MomoTerms   // in force
}

// FloatWakeups is how many that wait for float are told at once that there is some. The others are told when there is more
// again.
const FloatWakeups = 100

// FloatWaiter is a sale that waits for float, or a refund that does: with its id and its collection's attempt.
type FloatWaiter struct {
	WorkflowID string // of the flow to tell, when it is known; the others then are zero
	OrderID    uuid.UUID
	RefundID   uuid.UUID
	AttemptID  uuid.UUID
}

// Grew tells whether the operator's last report left more room than the one before it. The first one did.
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

// The states. The operator knows no id of ours for a movement, so it is asked once: the outcome is unknown from the
// moment before it is asked, and only what the operator says, or a person, ends that.
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
		{FloatCreated, FloatUnknown, ByFlow, "the operator is about to be asked"},
		{FloatUnknown, FloatAccepted, ByFlow, "the operator acknowledged it"},
		{FloatUnknown, FloatRefused, ByFlow, "the operator refused it"},
		{FloatUnknown, FloatCompleted, ByOperator, "the result and the answer to a question agree, or its receipt is in the operator's statement"},
		{FloatUnknown, FloatFailed, ByOperator, "the result and the answer to a question agree, or it is in no statement of the operator"},
		{FloatAccepted, FloatCompleted, ByFlow, "the result and the answer to a question agree"},
		{FloatAccepted, FloatFailed, ByFlow, "the result and the answer to a question agree"},
	},
	Final: []FloatMoveStatus{FloatRefused, FloatCompleted, FloatFailed},
}

// FloatMove moves shillings from the working account to the utility account.
type FloatMove struct {
	ID             uuid.UUID
	Amount         money.Amount // whole shillings
	Status         FloatMoveStatus
	ChangeID       uuid.UUID // of the second person's agreement, where the amount asks for one
	AskedBy        uuid.UUID
	CallbackToken  string    // of the operator's answers; only its hash is stored
	HoldID         uuid.UUID // of the amount in the working account
	ConversationID string    // the operator's names of it
	OriginatorID   string
	Code           string
	Receipt        string
	Note           string
	SettledBy      uuid.UUID // the person who said what became of it
	CreatedAt      time.Time
	UpdatedAt      time.Time
	SettledAt      time.Time
	Version        int64
}

// Open tells whether it may still move money.
func (m FloatMove) Open() bool {
	return m.Status == FloatCreated || m.Status == FloatUnknown || m.Status == FloatAccepted
}
