package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// TransferKind is whether a transfer stays in our custody or leaves it.
type TransferKind string

// Both kinds are sent on the network, because custody is segregated: every wallet has its own address.
const (
	InternalTransfer TransferKind = "internal" // to a wallet in our custody
	ExternalTransfer TransferKind = "external" // to an address that is not ours
)

// Valid reports whether k is a known kind.
func (k TransferKind) Valid() bool { return k == InternalTransfer || k == ExternalTransfer }

// TransferStatus is the state of a transfer.
type TransferStatus string

// The states of a transfer.
const (
	TransferCreated      TransferStatus = "created"          // stored, its amount held
	TransferScreening    TransferStatus = "screening"        // the recipient's address is being screened
	TransferPending      TransferStatus = "pending_approval" // officers must approve it
	TransferQueued       TransferStatus = "queued"           // approved; its chain payment exists
	TransferSigning      TransferStatus = "signing"          // with the signer; nothing is signed that could move money
	TransferBroadcasting TransferStatus = "broadcasting"     // signed bytes exist; not in a block as far as is known
	TransferConfirming   TransferStatus = "confirming"       // on the network, not final
	TransferCompleted    TransferStatus = "completed"        // final
	TransferCancelled    TransferStatus = "cancelled"        // ended before anything was signed
	TransferRejected     TransferStatus = "rejected"         // an officer rejected it
	TransferBlocked      TransferStatus = "blocked"          // the screening was a hit; an operator decides about the held money
	TransferFailed       TransferStatus = "failed"           // an operator gave it up; proven not to be on the network
)

// TransferMachine governs transfers. Only an external one passes through screening, and none is queued before its release
// has passed (JudgeRelease); database triggers enforce both.
var TransferMachine = Machine[TransferStatus]{
	Name: "transfer", Initial: TransferCreated,
	Transitions: []Transition[TransferStatus]{
		{TransferCreated, TransferScreening, ByFlow, "it leaves our custody"},
		{TransferCreated, TransferPending, ByFlow, "it stays in our custody, and the rule about all that leaves wants officers"},
		{TransferCreated, TransferQueued, ByFlow, "it stays in our custody"},
		{TransferCreated, TransferCancelled, BySender, "nothing is signed"},
		{TransferScreening, TransferPending, ByFlow, "the screening is clear, and the rule about all that leaves wants officers or time"},
		{TransferScreening, TransferQueued, ByFlow, "the screening is clear"},
		{TransferScreening, TransferBlocked, ByFlow, "the screening is a hit"},
		{TransferScreening, TransferCancelled, BySender, "nothing is signed"},
		{TransferPending, TransferQueued, ByOfficer, "the officers that it needs have approved it"},
		{TransferPending, TransferQueued, ByFlow, "its destination has rested"},
		{TransferPending, TransferRejected, ByOfficer, "an officer rejected it"},
		{TransferPending, TransferBlocked, ByFlow, "the address was put on the deny list meanwhile"},
		{TransferPending, TransferCancelled, BySender, "nothing is signed, or the approval expired"},
		{TransferQueued, TransferSigning, ByFlow, "handed to the signer"},
		{TransferQueued, TransferCancelled, BySender, "nothing is signed"},
		{TransferSigning, TransferBroadcasting, ByFlow, "the signed bytes are stored"},
		{TransferSigning, TransferConfirming, ByFlow, "seen on the network"},
		{TransferSigning, TransferCancelled, BySender, "no transaction of it can be alive"},
		{TransferSigning, TransferFailed, ByOperator, "given up, when no transaction of it can be alive"},
		{TransferBroadcasting, TransferConfirming, ByFlow, "seen on the network"},
		{TransferBroadcasting, TransferSigning, ByFlow, "the transaction is proven impossible"},
		{TransferBroadcasting, TransferFailed, ByOperator, "given up, when no transaction of it can be alive"},
		{TransferBroadcasting, TransferCompleted, ByFlow, "final before it was seen pending"},
		{TransferConfirming, TransferBroadcasting, ByFlow, "reorganised away"},
		{TransferConfirming, TransferSigning, ByFlow, "the transaction is proven impossible"},
		{TransferConfirming, TransferFailed, ByOperator, "given up, when no transaction of it can be alive"},
		{TransferConfirming, TransferCompleted, ByFlow, "final with the expected transfer"},
	},
	Final: []TransferStatus{TransferCompleted, TransferCancelled, TransferRejected, TransferBlocked, TransferFailed},
}

// More causes of transitions.
const (
	BySender  = "sender"  // the requester, or an operator in its place
	ByOfficer = "officer" // an approver other than the requester
)

// The values of a transfer's StatusDetail, in addition to those of orders.
const (
	WaitScreening  = "screening"
	WaitApproval   = "approval"
	WaitSecond     = "second_approval"
	WaitRest       = "destination_rest"   // the owner named this destination for the first time less than a day ago; two officers shorten it
	WaitExternal   = "external_signature" // of a cold wallet, whose key is not in the service
	WaitHandedOut  = "handed_out"         // the unsigned transaction was handed out, and may pay until that is proven impossible
	WaitWithdrawal = "withdrawing"        // the handed-out transaction is being made impossible
	DetailBySender = "cancelled_by_sender"
	DetailByStaff  = "cancelled_by_operator"
	DetailLapsed   = "approval_lapsed"
	DetailInactive = "account_inactive" // the requester was deactivated before it was queued
	DetailRejected = "rejected_by_officer"
	DetailHeld     = "held" // blocked; no decision about the money yet
	DetailReleased = "released"
	DetailGivenUp  = "given_up_by_operator"
)

// Limits of transfers.
const (
	MaxTransferNote  = 200                // characters
	ApprovalLife     = 7 * 24 * time.Hour // without a decision until then the money is released
	ApprovalTokenTTL = 5 * time.Minute
)

// Transfer moves a stablecoin from one wallet in our custody to another wallet or address.
type Transfer struct {
	ID                uuid.UUID
	Kind              TransferKind
	RequestedBy       uuid.UUID
	SenderID          uuid.UUID // the owner of the sending wallet; zero for the house
	VendorID          uuid.UUID // the master merchant behind the sender
	RecipientID       uuid.UUID // the owner of the receiving wallet; zero for the house and for outsiders
	RecipientVendorID uuid.UUID
	Network           Network
	Amount            money.Amount
	WalletID          uuid.UUID
	WalletType        WalletType // of the sending wallet
	FromAddress       string
	ToWalletID        uuid.UUID // zero for an external transfer
	ToAddress         string
	Note              string // from the sender to the recipient
	// Value is what the amount counted for against limits when the transfer was created: at Rate, the house's valuation. It
	// is not a price.
	Value money.Amount
	Rate  decimal.Decimal
	// Fee is what the house charges the sender on top of the amount, in its asset, by the profile in force or the one that
	// the quote froze. A fee above zero has its own hold.
	Fee          money.Amount
	FeeProfileID uuid.UUID // zero for the zero profile and when nothing is charged
	FeeHoldID    uuid.UUID
	// From the quote that the transfer was opened with. QuotedFiat has no asset without one.
	QuoteID           uuid.UUID
	QuotedFiat        money.Amount
	QuotedRate        decimal.Decimal
	ApprovalsRequired int       // as its release was judged last
	RestsUntil        time.Time // the end of its destination's rest; zero for none
	Approvals         int       // given so far
	Digest            string    // see Intent
	Status            TransferStatus
	StatusDetail      string
	HoldID            uuid.UUID
	PaymentID         uuid.UUID // the chain payment, once it is queued
	TxHash            string
	CreatedAt         time.Time
	UpdatedAt         time.Time
	CompletedAt       time.Time
	Version           int64
}

// Intent is the hash of everything about a transfer that an approval covers. It never changes. How many officers must approve
// is no part of it: that follows from what else leaves.
func (t Transfer) Intent() string {
	h := sha256.New()
	fmt.Fprintf(h, "kivuko transfer v2\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n", t.ID, t.Kind, t.RequestedBy, t.Network,
		t.Amount.Asset(), t.Amount, t.WalletID, t.FromAddress, t.ToAddress, t.Fee)
	return hex.EncodeToString(h.Sum(nil))
}

// Over reports whether the transfer has ended. An operator may still decide about held money.
func (t Transfer) Over() bool { return TransferMachine.Terminal(t.Status) }

// Recipient is who gets a transfer. Exactly one field is set. The first four identify a recipient in our custody; an address
// may be anyone's.
type Recipient struct {
	UserID   uuid.UUID `json:"user_id,omitzero"`
	Email    string    `json:"email,omitempty"`
	Phone    string    `json:"phone,omitempty"` // digits
	WalletID uuid.UUID `json:"wallet_id,omitzero"`
	Address  string    `json:"address,omitempty"`
}

// TransferRequest is a checked request for a transfer.
type TransferRequest struct {
	ID          uuid.UUID     `json:"id"`
	RequestedBy uuid.UUID     `json:"requested_by"`
	WalletID    uuid.UUID     `json:"wallet_id,omitzero"` // zero: the requester's default wallet on the network
	Network     Network       `json:"network"`
	Amount      money.Amount  `json:"amount"`
	Recipient   Recipient     `json:"recipient"`
	Note        string        `json:"note,omitempty"`
	QuoteID     uuid.UUID     `json:"fx_rate_quote_id,omitzero"`
	MaxFee      *money.Amount `json:"max_fee,omitempty"` // the highest fee that the requester accepts; nil for any
}
