package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ApprovalAction is an officer's decision.
type ApprovalAction string

// The decisions.
const (
	Approve ApprovalAction = "approve"
	Reject  ApprovalAction = "reject"
)

// Done is the past participle: "approved", "rejected".
func (a ApprovalAction) Done() string {
	if a == Approve {
		return "approved"
	}
	return "rejected"
}

// Valid reports whether a is a known decision.
func (a ApprovalAction) Valid() bool { return a == Approve || a == Reject }

// ApprovalChannel is how a decision arrived.
type ApprovalChannel string

// The channels. Both use the same handler, which trusts only the token.
const (
	ChannelAPI    ApprovalChannel = "api"
	ChannelSignal ApprovalChannel = "signal"
)

// ApprovalObject is the type of object that waits for officers.
type ApprovalObject string

// The objects that wait for officers.
const (
	ApproveTransfer ApprovalObject = "transfer"
	ApproveRefund   ApprovalObject = "refund" // a refund in crypto; by rule, late mobile money goes back up to its first value
	ApproveSale     ApprovalObject = "order"  // a sale whose crypto leaves a wallet in our custody; the rule is that of transfers
	// A withdrawal of a merchant; the rule is that of transfers.
	ApproveWithdrawal ApprovalObject = "otc_withdrawal"
	ApproveSwap       ApprovalObject = "swap" // a swap; the rule is that of transfers
	// A payment from a wallet of several owners; the rule is that of transfers, and the wallet's policy.
	ApproveProposal ApprovalObject = "multisig_proposal"
	// What owners sign for it: the officer whose key our key store has confirms that the key signs exactly this. It counts for no rule.
	ApprovePayload    ApprovalObject = "multisig_payload"
	ApproveBankPayout ApprovalObject = "bank_payout" // officers confirm that the bank payment was made
)

// ApprovalObjects lists the types of object that have an approval rule.
func ApprovalObjects() []ApprovalObject {
	return []ApprovalObject{ApproveTransfer, ApproveRefund, ApproveBankPayout}
}

// ApprovalTicket requests permission for one decision. Digest is that of the object as the officer saw it; it must still
// match.
type ApprovalTicket struct {
	ID         uuid.UUID
	OfficerID  uuid.UUID
	ObjectType ApprovalObject
	ObjectID   uuid.UUID
	Action     ApprovalAction
	Amount     money.Amount
	Digest     string
	Channel    ApprovalChannel
	Note       string
	TokenHash  [32]byte // only the officer has the token itself
	CreatedAt  time.Time
	ExpiresAt  time.Time
}

// Approval is a decision that was verified and counted.
type Approval struct {
	ID        uuid.UUID
	ObjectID  uuid.UUID
	OfficerID uuid.UUID
	Action    ApprovalAction
	Channel   ApprovalChannel
	Note      string
	CreatedAt time.Time
}
