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

// TransferKind tells transfers within our custody from those that leave it.
type TransferKind string

// Both kinds go over the network, because custody is segregated: every wallet has its own address.
const (
	InternalTransfer TransferKind = "internal" // to a wallet in our custody
	ExternalTransfer TransferKind = "external" // to an address that is not ours
)

// Valid tells whether k is a known kind.
func (k TransferKind) Valid() bool { return k == InternalTransfer || k == ExternalTransfer }

// TransferStatus is the state of a transfer.
type TransferStatus string

// The states of a transfer.
const (
	TransferCreated      TransferStatus = "created"          // stored, its amount held
	TransferScreening    TransferStatus = "screening"        // the recipient's address is being looked up
	TransferPending      TransferStatus = "pending_approval" // officers have to agree
	TransferQueued       TransferStatus = "queued"           // approved; its chain payment exists
	TransferSigning      TransferStatus = "signing"          // handed to the signer; nothing is signed that could move money
	TransferBroadcasting TransferStatus = "broadcasting"     // signed bytes exist; no node is known to have them in a block
	TransferConfirming   TransferStatus = "confirming"       // on the network, not final
	TransferCompleted    TransferStatus = "completed"        // final
	TransferCancelled    TransferStatus = "cancelled"        // given up before anything was signed
	TransferRejected     TransferStatus = "rejected"         // an officer said no
	TransferBlocked      TransferStatus = "blocked"          // the screening hit; an operator decides about the held money
	TransferFailed       TransferStatus = "failed"           // given up by an operator, proven not to be on the network
)

// TransferMachine governs transfers. Only an external one passes through screening and approval, and a
// trigger of the database holds each to the way of its kind.
var TransferMachine = Machine[TransferStatus]{
	Name: "transfer", Initial: TransferCreated,
	Transitions: []Transition[TransferStatus]{
		{TransferCreated, TransferScreening, ByFlow, "it leaves our custody"},
		{TransferCreated, TransferQueued, ByFlow, "it stays in our custody"},
		{TransferCreated, TransferCancelled, BySender, "nothing is signed"},
		{TransferScreening, TransferPending, ByFlow, "the screening is clear and the value above the limit"},
		{TransferScreening, TransferQueued, ByFlow, "the screening is clear"},
		{TransferScreening, TransferBlocked, ByFlow, "the screening hit"},
		{TransferScreening, TransferCancelled, BySender, "nothing is signed"},
		{TransferPending, TransferQueued, ByOfficer, "as many officers agreed as its value asks for"},
		{TransferPending, TransferRejected, ByOfficer, "an officer said no"},
		{TransferPending, TransferBlocked, ByFlow, "the address was put on the deny list meanwhile"},
		{TransferPending, TransferCancelled, BySender, "nothing is signed, or nobody decided in time"},
		{TransferQueued, TransferSigning, ByFlow, "handed to the signer"},
		{TransferQueued, TransferCancelled, BySender, "nothing is signed"},
		{TransferSigning, TransferBroadcasting, ByFlow, "the signed bytes are stored"},
		{TransferSigning, TransferConfirming, ByFlow, "seen on the network"},
		{TransferSigning, TransferCancelled, BySender, "no transaction of it can be alive"},
		{TransferSigning, TransferFailed, ByOperator, "given up; no transaction of it can be alive"},
		{TransferBroadcasting, TransferConfirming, ByFlow, "seen on the network"},
		{TransferBroadcasting, TransferSigning, ByFlow, "the transaction is proven impossible"},
		{TransferBroadcasting, TransferFailed, ByOperator, "given up; no transaction of it can be alive"},
		{TransferBroadcasting, TransferCompleted, ByFlow, "final before it was seen on its way"},
		{TransferConfirming, TransferBroadcasting, ByFlow, "reorganised away"},
		{TransferConfirming, TransferSigning, ByFlow, "the transaction is proven impossible"},
		{TransferConfirming, TransferFailed, ByOperator, "given up; no transaction of it can be alive"},
		{TransferConfirming, TransferCompleted, ByFlow, "final with the expected transfer"},
	},
	Final: []TransferStatus{TransferCompleted, TransferCancelled, TransferRejected, TransferBlocked, TransferFailed},
}

// Who else may cause a transition.
const (
	BySender  = "sender"  // who asked for it, or an operator in its place
	ByOfficer = "officer" // an approver who did not ask for it
)

// The values of a transfer's StatusDetail beside those that orders have.
const (
	WaitScreening  = "screening"
	WaitApproval   = "approval"
	WaitSecond     = "second_approval"
	WaitExternal   = "external_signature" // of a cold wallet, whose key never signs by itself
	WaitHandedOut  = "handed_out"         // what is to be signed was given away, and may pay until that is proven impossible
	WaitWithdrawal = "withdrawing"        // what was handed out is being made impossible
	DetailByPerson = "cancelled_by_sender"
	DetailByStaff  = "cancelled_by_operator"
	DetailLapsed   = "approval_lapsed"
	DetailInactive = "account_inactive" // who asked for it was deactivated before it was queued
	DetailRejected = "rejected_by_officer"
	DetailHeld     = "held" // blocked, and nobody decided about the money yet
	DetailReleased = "released"
	DetailGivenUp  = "given_up_by_operator"
)

// Limits of transfers.
const (
	MaxTransferNote  = 200                // characters
	ApprovalLife     = 7 * 24 * time.Hour // after that without a decision the money is free again
	ApprovalTokenTTL = 5 * time.Minute
	MaxApprovals     = 2 // persons that any amount asks for
)

// Transfer moves a stablecoin from one wallet in our custody to another wallet or address.
type Transfer struct {
	ID                uuid.UUID
	Kind              TransferKind
	RequestedBy       uuid.UUID
	SenderID          uuid.UUID // who owns the sending wallet; zero for the house
	VendorID          uuid.UUID // the master merchant behind the sender
	RecipientID       uuid.UUID // who owns the receiving wallet; zero for the house and for strangers
	RecipientVendorID uuid.UUID
	Network           Network
	Amount            money.Amount
	WalletID          uuid.UUID
	WalletType        WalletType // of the sending wallet; a cold one never signs by itself
	FromAddress       string
	ToWalletID        uuid.UUID // zero for an external transfer
	ToAddress         string
	Note              string // from the sender to the recipient
	// Value is what the amount was worth when the transfer was created, at Rate: the house's valuation,
	// by which limits are counted. It is no price and nobody pays it.
	Value money.Amount
	Rate  decimal.Decimal
	// Fee is what the house charges the sender beside the amount, in its asset, by the profile that was in
	// force or that the quote froze. It has a hold of its own when there is one.
	Fee          money.Amount
	FeeProfileID uuid.UUID // zero for the zero profile and where nothing is charged
	FeeHoldID    uuid.UUID
	// What the quote said that the transfer was opened with. QuotedFiat has no asset without one.
	QuoteID           uuid.UUID
	QuotedFiat        money.Amount
	QuotedRate        decimal.Decimal
	ApprovalsRequired int
	Approvals         int    // given so far
	Digest            string // of what an approval covers; see Intent
	Status            TransferStatus
	StatusDetail      string
	HoldID            uuid.UUID
	PaymentID         uuid.UUID // the chain payment, from queued on
	TxHash            string
	CreatedAt         time.Time
	UpdatedAt         time.Time
	CompletedAt       time.Time
	Version           int64
}

// Intent is the hash of everything about a transfer that an approval covers. It never changes.
func (t Transfer) Intent() string {
	h := sha256.New()
	fmt.Fprintf(h, "kivuko transfer v1\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%d\n", t.ID, t.Kind, t.RequestedBy, t.Network,
		t.Amount.Asset(), t.Amount, t.WalletID, t.FromAddress, t.ToAddress, t.ApprovalsRequired)
	if t.Fee.Positive() { // without one, the digest is what it was before there were fees
		fmt.Fprintf(h, "fee %s\n", t.Fee)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Over tells whether nothing more happens to the transfer but an operator's decision about held money.
func (t Transfer) Over() bool { return TransferMachine.Terminal(t.Status) }

// Recipient says who gets a transfer. Exactly one field is set. The first four name somebody or
// something in our custody; an address may be anybody's.
type Recipient struct {
	UserID   uuid.UUID `json:"user_id,omitzero"`
	Email    string    `json:"email,omitempty"`
	Phone    string    `json:"phone,omitempty"` // digits
	WalletID uuid.UUID `json:"wallet_id,omitzero"`
	Address  string    `json:"address,omitempty"`
}

// TransferRequest is a checked request for a transfer.
type TransferRequest struct {
	ID          uuid.UUID    `json:"id"`
	RequestedBy uuid.UUID    `json:"requested_by"`
	WalletID    uuid.UUID    `json:"wallet_id,omitzero"` // zero: the default wallet of who asks, on the network
	Network     Network      `json:"network"`
	Amount      money.Amount `json:"amount"`
	Recipient   Recipient    `json:"recipient"`
	Note        string       `json:"note,omitempty"`
	QuoteID     uuid.UUID    `json:"fx_rate_quote_id,omitzero"`
}
