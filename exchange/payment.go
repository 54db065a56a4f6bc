package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// PaymentDirection is the direction of mobile money, from our point of view.
type PaymentDirection string

// Money comes in by a collection (a prompt to the payer's phone, or a payment that the payer starts) and goes out by a
// payout.
const (
	Collection PaymentDirection = "collection"
	Payout     PaymentDirection = "payout"
)

// AttemptStatus is the state of one try to move mobile money.
type AttemptStatus string

// The states of an attempt. A row is written as AttemptCreated before the operator is called, so that a crash can never
// leave money moving without a record of it.
const (
	AttemptCreated   AttemptStatus = "created"   // written; the operator may or may not have received it
	AttemptUnknown   AttemptStatus = "unknown"   // requested, no response
	AttemptAccepted  AttemptStatus = "accepted"  // the operator accepted it; no money has moved yet
	AttemptRefused   AttemptStatus = "refused"   // the operator refused to start it
	AttemptFailed    AttemptStatus = "failed"    // the operator reports that it failed
	AttemptSucceeded AttemptStatus = "succeeded" // money moved, proven by two sources
)

// AttemptMachine governs mobile money attempts. Success may follow any state, because operators report late successes after
// failures. Nothing follows success.
var AttemptMachine = Machine[AttemptStatus]{
	Name: "payment_attempt", Initial: AttemptCreated,
	Transitions: []Transition[AttemptStatus]{
		{AttemptCreated, AttemptAccepted, ByFlow, "the operator acknowledged it"},
		{AttemptCreated, AttemptRefused, ByFlow, "the operator refused it"},
		{AttemptCreated, AttemptUnknown, ByFlow, "no response"},
		{AttemptCreated, AttemptFailed, ByFlow, "the result arrived before the acknowledgement"},
		{AttemptCreated, AttemptSucceeded, ByFlow, "the result arrived before the acknowledgement"},
		{AttemptUnknown, AttemptAccepted, ByFlow, "the operator knows it after all"},
		{AttemptUnknown, AttemptRefused, ByFlow, "the operator proves that it never started"},
		{AttemptUnknown, AttemptFailed, ByFlow, "the operator reports failure"},
		{AttemptUnknown, AttemptSucceeded, ByFlow, "two sources report success"},
		{AttemptAccepted, AttemptFailed, ByFlow, "the operator reports failure"},
		{AttemptAccepted, AttemptSucceeded, ByFlow, "two sources report success"},
		{AttemptFailed, AttemptSucceeded, ByFlow, "a late success is proven"},
		{AttemptRefused, AttemptSucceeded, ByFlow, "a late success is proven"},
	},
	Final: []AttemptStatus{AttemptSucceeded},
}

// PaymentAttempt is one try to move mobile money. An object may have several, each in its own row; an order shows the one
// that paid.
type PaymentAttempt struct {
	ID        uuid.UUID
	Direction PaymentDirection
	Object    MomoObject // what the money is collected or paid out for
	OrderID   uuid.UUID  // the order that the object is or belongs to; zero where there is none
	Provider  string     // the operator's name; flows branch on Capabilities, never on it
	Status    AttemptStatus
	Soft      bool // failed, but a late success is still possible
	Amount    money.Amount
	Phone     Phone
	// Reference is what the payer reads on the prompt and in the text message: at most 12 characters.
	Reference string
	// CallbackToken is the unguessable part of the callback address. Only its hash is stored, so the token is only present
	// on the attempt as it was created.
	CallbackToken string
	// StatusToken is the same of the address for the answers to our queries about a payout, so that who learns one address
	// can't post to the other.
	StatusToken string
	// MerchantRequestID and CheckoutRequestID are the operator's ids of a prompt; ConversationID is its id of a payout. Our
	// own id is the originator's id of a payout.
	MerchantRequestID string
	CheckoutRequestID string
	ConversationID    string
	ResultCode        string       // the operator's, or of our own where the operator gave none
	ResultClass       OutcomeClass // of that code
	ResultText        string
	Receipt           string
	Moved             money.Amount // the amount that really moved, which may differ from Amount
	WorkflowID        string       // the flow that its callbacks wake
	CreatedAt         time.Time
	SubmittedAt       time.Time
	SettledAt         time.Time
	Version           int64
}

// Refs are the operator's ids of a submission.
type Refs struct {
	MerchantRequestID string `json:"merchant_request_id,omitempty"`
	CheckoutRequestID string `json:"checkout_request_id,omitempty"`
	ConversationID    string `json:"conversation_id,omitempty"`
	// OriginatorConversationID is our own id as the operator returns it. It must be the attempt's.
	OriginatorConversationID string `json:"originator_conversation_id,omitempty"`
}

// SubmissionState is the result of sending a request to the operator.
type SubmissionState string

// The three results of a submission. Unknown is a result, not an error: the request may have arrived. Query its status;
// never submit it again under a new id.
const (
	Accepted SubmissionState = "accepted"
	Refused  SubmissionState = "refused"
	Unknown  SubmissionState = "unknown"
)

// Submission is the result of asking the operator to start a collection or a payout.
type Submission struct {
	State     SubmissionState
	Refs      Refs
	Code      string       // the operator's code of a refusal
	Class     OutcomeClass // of that code
	Text      string       // the operator's message, without secrets and personal numbers
	Transient bool         // refused now, may be accepted later (busy, throttled, subscriber locked)
	Config    bool         // refused because of our own set-up (credentials, entitlement): alarm
	Cause     error        // for logs, of an unknown outcome
}

// ObservationState is what a source reports about an attempt.
type ObservationState string

// The possible reports. NoAnswer means that the source could not be reached: it carries no information.
const (
	SeenPending   ObservationState = "pending"
	SeenSucceeded ObservationState = "succeeded"
	SeenFailed    ObservationState = "failed"
	SeenUnknown   ObservationState = "unknown"   // an outcome that our catalogue lacks
	SeenNoAnswer  ObservationState = "no_answer" // no information
)

// EvidenceSource is the channel through which an observation came. Two different sources must agree before
// money counts.
type EvidenceSource string

// The sources of mobile money.
const (
	SourceCallback     EvidenceSource = "callback"     // the result posted to the attempt's own address
	SourceQuery        EvidenceSource = "query"        // the answer to our status query
	SourceStatement    EvidenceSource = "statement"    // a row of the operator's transaction list (pull)
	SourceConfirmation EvidenceSource = "confirmation" // the operator's notice of a payment to our number
)

// Observation is one report of one source about an attempt.
type Observation struct {
	State   ObservationState `json:"state"`
	Soft    bool             `json:"soft,omitempty"` // failed, but late successes are known for this code
	Code    string           `json:"code,omitempty"`
	Class   OutcomeClass     `json:"class,omitempty"` // of that code
	Text    string           `json:"text,omitempty"`
	Receipt string           `json:"receipt,omitempty"`
	Amount  money.Amount     `json:"amount,omitzero"` // zero when the source does not report it
	Phone   Phone            `json:"-"`               // the payer or payee, if the source reports it
	// PhoneHash is Phone.Hash of the payer, when the source reports only the hash.
	PhoneHash string         `json:"-"`
	Config    bool           `json:"config,omitempty"`    // our own set-up or funds are to blame: alarm
	Transient bool           `json:"transient,omitempty"` // failed for now; a new attempt later may succeed
	Refs      Refs           `json:"refs,omitzero"`
	At        time.Time      `json:"at,omitzero"` // the operator's time, in UTC
	Source    EvidenceSource `json:"source"`
	// Charge is what the operator charged us for the payout; without an asset when the source does not report it.
	Charge money.Amount `json:"charge,omitzero"`
	// Reference is the account that the payer entered (BillRefNumber), on confirmations and statements.
	Reference string `json:"reference,omitempty"`
	// Ticket is the operator's id of our query; it is set when the answer comes later as a callback.
	Ticket string `json:"ticket,omitempty"`
}

// PayeeCheck is the operator's report about a payee's number.
type PayeeCheck struct {
	Known bool   // the number can be paid
	Name  string // masked by the operator; personal data, neither stored nor logged
}

// Capabilities are what a mobile money provider guarantees. Flows branch on them, never on a provider's name.
type Capabilities struct {
	CollectionIdempotent bool // submitting the same attempt twice starts it once
	PayoutIdempotent     bool
	QuerySync            bool // a collection's status is answered at once
	PayoutQuerySync      bool // a payout's status is answered at once (otherwise by callback)
	CallbackRepeated     bool // lost callbacks are sent again
	CallbackSigned       bool
	Reversal             bool // a collection can be reversed by API
	MinCollection        money.Amount
	MaxCollection        money.Amount
	MinPayout            money.Amount
	MaxPayout            money.Amount
}

// MinMomoPayout is the least that the operator pays out to a phone. A smaller amount can't be sent back.
func MinMomoPayout() money.Amount { return money.Must(money.KES, "10") }

// CallbackKind is the kind of callback address that a callback arrived at.
type CallbackKind string

// The kinds of callback address.
const (
	CallbackResult       CallbackKind = "result"       // the outcome of a prompt or payout
	CallbackTimeout      CallbackKind = "timeout"      // the request expired in the operator's queue; not a failure
	CallbackStatus       CallbackKind = "status"       // the answer to an asynchronous status query
	CallbackConfirmation CallbackKind = "confirmation" // a payment to our number was made
	CallbackValidation   CallbackKind = "validation"   // asks whether to accept a payment to our number
	CallbackReversal     CallbackKind = "reversal"     // the outcome of reversing a collection
	CallbackBalance      CallbackKind = "balance"      // the answer to a balance query
)

// Valid reports whether k is a kind that has an address.
func (k CallbackKind) Valid() bool {
	switch k {
	case CallbackResult, CallbackTimeout, CallbackStatus, CallbackConfirmation, CallbackValidation,
		CallbackReversal, CallbackBalance:
		return true
	}
	return false
}

// MomoCallback is a callback as it was received, stored before it is interpreted.
type MomoCallback struct {
	ID         uuid.UUID
	AttemptID  uuid.UUID // zero when the address matched no attempt
	Kind       CallbackKind
	RemoteIP   string
	OffRange   bool // from outside the operator's known addresses
	Standing   bool // for no attempt: a payment that a payer started, or a balance
	Body       []byte
	ReceivedAt time.Time
	// FloatMoveID is the movement of float that it is for; zero for others.
	FloatMoveID uuid.UUID
}
