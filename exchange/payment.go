package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// PaymentDirection says which way mobile money moves, seen from us.
type PaymentDirection string

// Money comes in through a collection (a prompt to the payer's phone, or a payment that the payer
// starts) and goes out through a payout.
const (
	Collection PaymentDirection = "collection"
	Payout     PaymentDirection = "payout"
)

// AttemptStatus is the state of one try to move mobile money.
type AttemptStatus string

// The states of an attempt. A row is written in AttemptCreated before the operator is called, so a
// crash can never leave money moving without a record of it.
const (
	AttemptCreated   AttemptStatus = "created"   // written, the operator may or may not have heard of it
	AttemptUnknown   AttemptStatus = "unknown"   // asked, the answer never came
	AttemptAccepted  AttemptStatus = "accepted"  // the operator took it; nothing has moved yet
	AttemptRefused   AttemptStatus = "refused"   // the operator refused to start it
	AttemptFailed    AttemptStatus = "failed"    // the operator says that it did not happen
	AttemptSucceeded AttemptStatus = "succeeded" // money moved, proven by two witnesses
)

// AttemptMachine governs mobile money attempts. Success is monotonic: it may follow anything, and
// nothing follows it, because operators report late successes after failures.
var AttemptMachine = Machine[AttemptStatus]{
	Name: "payment_attempt", Initial: AttemptCreated,
	Transitions: []Transition[AttemptStatus]{
		{AttemptCreated, AttemptAccepted, ByFlow, "the operator acknowledged it"},
		{AttemptCreated, AttemptRefused, ByFlow, "the operator refused it"},
		{AttemptCreated, AttemptUnknown, ByFlow, "no answer came"},
		{AttemptCreated, AttemptFailed, ByFlow, "a result overtook the acknowledgement"},
		{AttemptCreated, AttemptSucceeded, ByFlow, "a result overtook the acknowledgement"},
		{AttemptUnknown, AttemptAccepted, ByFlow, "the operator knows it after all"},
		{AttemptUnknown, AttemptRefused, ByFlow, "the operator proves that it never started"},
		{AttemptUnknown, AttemptFailed, ByFlow, "the operator reports failure"},
		{AttemptUnknown, AttemptSucceeded, ByFlow, "two witnesses report success"},
		{AttemptAccepted, AttemptFailed, ByFlow, "the operator reports failure"},
		{AttemptAccepted, AttemptSucceeded, ByFlow, "two witnesses report success"},
		{AttemptFailed, AttemptSucceeded, ByFlow, "a late success is proven"},
		{AttemptRefused, AttemptSucceeded, ByFlow, "a late success is proven"},
	},
	Final: []AttemptStatus{AttemptSucceeded},
}

// ProviderDaraja is the name of the operator behind Safaricom's Daraja on payments and their breaker. Flows branch on
// Capabilities, never on it.
const ProviderDaraja = "daraja"

// PaymentAttempt is one try to move mobile money. An order may have several; each is a row of its
// own, and the order shows the winning one.
type PaymentAttempt struct {
	ID        uuid.UUID
	Direction PaymentDirection
	OrderID   uuid.UUID // the order that it pays or pays back
	RefundID  uuid.UUID // set on a payout that returns money
	Provider  string    // "daraja"
	Status    AttemptStatus
	Soft      bool // failed, yet a late success is still possible
	Amount    money.Amount
	Phone     Phone
	// Reference is what the payer reads on the prompt and in the text message: at most 12 characters.
	Reference string
	// CallbackToken is the unguessable part of the callback address. Only its hash is stored, so it
	// is present only on the attempt as it was created.
	CallbackToken string
	// MerchantRequestID and CheckoutRequestID are the operator's names for a prompt;
	// ConversationID is its name for a payout. Our own id is the originator's id of a payout.
	MerchantRequestID string
	CheckoutRequestID string
	ConversationID    string
	ResultCode        string
	ResultText        string
	Receipt           string
	Moved             money.Amount // what really moved, which may differ from Amount
	WorkflowID        string       // who is woken by its callbacks
	CreatedAt         time.Time
	SubmittedAt       time.Time
	SettledAt         time.Time
	Version           int64
}

// Refs are the names that the operator gave to a submission.
type Refs struct {
	MerchantRequestID string `json:"merchant_request_id,omitempty"`
	CheckoutRequestID string `json:"checkout_request_id,omitempty"`
	ConversationID    string `json:"conversation_id,omitempty"`
	// OriginatorConversationID is our own id as the operator repeats it. It must be the attempt's.
	OriginatorConversationID string `json:"originator_conversation_id,omitempty"`
}

// SubmissionState is what became of asking the operator.
type SubmissionState string

// The three answers that a submission can have. Unknown is an answer, not an error: the request may
// have arrived, so it is resolved by asking, never by trying again with a new id.
const (
	Accepted SubmissionState = "accepted"
	Refused  SubmissionState = "refused"
	Unknown  SubmissionState = "unknown"
)

// Submission is the outcome of asking the operator to start a collection or a payout.
type Submission struct {
	State     SubmissionState
	Refs      Refs
	Code      string // the operator's code of a refusal
	Text      string // the operator's words, without secrets and numbers of persons
	Transient bool   // refused now, may be accepted later (busy, throttled, subscriber locked)
	Config    bool   // refused because of our own set-up (credentials, entitlement): alarm
	Cause     error  // for logs, of an unknown outcome
}

// ObservationState is what a witness says of an attempt.
type ObservationState string

// What a witness can say. NoAnswer is a witness that could not be heard: it carries no information.
const (
	SeenPending   ObservationState = "pending"
	SeenSucceeded ObservationState = "succeeded"
	SeenFailed    ObservationState = "failed"
	SeenUnknown   ObservationState = "unknown"   // an outcome that our catalogue does not hold
	SeenNoAnswer  ObservationState = "no_answer" // nothing was learnt
)

// Witness is the channel through which an observation came. Two different ones must agree before
// money counts.
type Witness string

// The witnesses of mobile money.
const (
	WitnessCallback     Witness = "callback"     // the result posted to the attempt's own address
	WitnessQuery        Witness = "query"        // our question, answered
	WitnessStatement    Witness = "statement"    // a row of the operator's transaction list (pull)
	WitnessConfirmation Witness = "confirmation" // the operator's notice of a payment to our number
)

// Observation is one statement of one witness about an attempt.
type Observation struct {
	State   ObservationState `json:"state"`
	Soft    bool             `json:"soft,omitempty"` // failed, but a late success has been seen after this code
	Code    string           `json:"code,omitempty"`
	Text    string           `json:"text,omitempty"`
	Receipt string           `json:"receipt,omitempty"`
	Amount  money.Amount     `json:"amount,omitzero"` // zero where the witness does not tell
	Phone   Phone            `json:"-"`               // the payer or payee where the witness tells
	// PhoneHash is Phone.Hash of the payer where the witness tells no more than that.
	PhoneHash string    `json:"-"`
	Config    bool      `json:"config,omitempty"`    // our own set-up or funds are to blame: alarm
	Transient bool      `json:"transient,omitempty"` // failed for now; a new attempt later may succeed
	Refs      Refs      `json:"refs,omitzero"`
	At        time.Time `json:"at,omitzero"` // the operator's time, in UTC
	Witness   Witness   `json:"witness"`
	// Charge is what the operator took from us for the payout; of no asset where the witness does not tell.
	Charge money.Amount `json:"charge,omitzero"`
	// Reference is the account that the payer named (BillRefNumber), on confirmations and statements.
	Reference string `json:"reference,omitempty"`
	// Ticket is set when the answer comes later as a callback: the operator's name of our question.
	Ticket string `json:"ticket,omitempty"`
}

// PayeeCheck is what the operator says of a number that money is to go to.
type PayeeCheck struct {
	Known bool   // the number is somebody's who can be paid
	Name  string // as the operator masks it; personal data, which is neither stored nor logged
}

// Capabilities say what a mobile money provider can promise; flows branch on them, never on a name.
type Capabilities struct {
	CollectionIdempotent bool // submitting the same attempt twice starts it once
	PayoutIdempotent     bool
	QuerySync            bool // a collection's status is answered at once
	PayoutQuerySync      bool // a payout's status is answered at once (else by callback)
	CallbackRepeated     bool // lost callbacks come again
	CallbackSigned       bool
	Reversal             bool // a collection can be reversed by API
	MinCollection        money.Amount
	MaxCollection        money.Amount
	MinPayout            money.Amount
	MaxPayout            money.Amount
}

// MinMomoPayout is the least that the operator pays out to a phone. What is below it can't be sent back.
func MinMomoPayout() money.Amount { return money.Must(money.KES, "10") }

// CallbackKind says on which of an attempt's addresses a callback arrived.
type CallbackKind string

// The kinds of callback address.
const (
	CallbackResult       CallbackKind = "result"       // the outcome of a prompt or payout
	CallbackTimeout      CallbackKind = "timeout"      // the operator's queue gave up; not a failure
	CallbackStatus       CallbackKind = "status"       // the answer to an asynchronous status question
	CallbackConfirmation CallbackKind = "confirmation" // a payment to our number was made
	CallbackValidation   CallbackKind = "validation"   // a payment to our number asks to be let in
	CallbackReversal     CallbackKind = "reversal"     // the outcome of giving a collection back
	CallbackBalance      CallbackKind = "balance"      // the answer to a question for our balances
)

// Valid tells whether k is a kind that has an address.
func (k CallbackKind) Valid() bool {
	switch k {
	case CallbackResult, CallbackTimeout, CallbackStatus, CallbackConfirmation, CallbackValidation,
		CallbackReversal, CallbackBalance:
		return true
	}
	return false
}

// MomoCallback is a callback as it was received, stored before anything is made of it.
type MomoCallback struct {
	ID         uuid.UUID
	AttemptID  uuid.UUID // zero when the address matched no attempt
	Kind       CallbackKind
	RemoteIP   string
	OffRange   bool // it came from outside the operator's known addresses
	Standing   bool // it came to the addresses that belong to no attempt: a payment that a payer started, a balance
	Body       []byte
	ReceivedAt time.Time
	// FloatMoveID is the movement of float whose address it came to; zero for all others.
	FloatMoveID uuid.UUID
}
