package exchange

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ChainDepositStatus is the state of a movement that was seen on a chain.
type ChainDepositStatus string

// The states of a movement. Only a final movement counts.
const (
	DepositSeen     ChainDepositStatus = "seen"     // in a block that may still be reorganised away
	DepositFinal    ChainDepositStatus = "final"    // in a block that can't be undone; booked if its kind is booked
	DepositOrphaned ChainDepositStatus = "orphaned" // its block was reorganised away; its transaction may be included again
)

// DepositKinds lists every kind of movement.
func DepositKinds() []DepositKind {
	return []DepositKind{DepositCredit, DepositHouse, DepositAwaited, DepositUnmatched, DepositOwn, DepositOutgoing, DepositEmpty}
}

// ChainDepositMachine governs movements that were seen. An orphaned movement may return: its transaction is pending again,
// and the block that includes it may be final before it is seen.
var ChainDepositMachine = Machine[ChainDepositStatus]{
	Name: "chain_deposit", Initial: DepositSeen,
	Transitions: []Transition[ChainDepositStatus]{
		{DepositSeen, DepositFinal, ByFlow, "the final chain has it"},
		{DepositSeen, DepositOrphaned, ByFlow, "the block was reorganised away"},
		{DepositOrphaned, DepositSeen, ByFlow, "in another block"},
		{DepositOrphaned, DepositFinal, ByFlow, "the final chain has it after all"},
	},
	Final: []ChainDepositStatus{DepositFinal},
}

// DepositKind is what a movement means for our books.
type DepositKind string

// The kinds of movement. The chain watcher never books own, outgoing and empty ones.
const (
	DepositCredit    DepositKind = "credit"    // into the wallet of a user: owed to its owner
	DepositHouse     DepositKind = "house"     // into a wallet of the house that is meant for it: capital
	DepositAwaited   DepositKind = "awaited"   // into an escrow address that a flow watches: suspense, until the flow takes it
	DepositUnmatched DepositKind = "unmatched" // matches nothing: suspense, and a payment exception
	DepositOwn       DepositKind = "own"       // made by a payment of ours, whose completion books both sides
	DepositOutgoing  DepositKind = "outgoing"  // left a wallet of ours by a transaction that is not ours: an alarm
	DepositEmpty     DepositKind = "empty"     // moved nothing; such events are sent to poison lists of addresses
)

// Booked reports whether a final movement of the kind gets a ledger entry.
func (k DepositKind) Booked() bool {
	return k == DepositCredit || k == DepositHouse || k == DepositAwaited || k == DepositUnmatched
}

// ChainBlock is a block as the deposit watch stores it. A skipped one is a number that the network never uses; it has
// neither id nor parent.
type ChainBlock struct {
	Number  uint64
	ID      string
	Parent  string
	Time    time.Time
	Skipped bool
}

// ChainMovement is one transfer of value on a chain. TxID and Index identify it permanently, in whatever block it is.
type ChainMovement struct {
	TxID   string
	Index  uint32
	From   string
	To     string
	Amount money.Amount
	Others []string // other possible senders, where the chain does not say who paid whom
	// Accounts are the token accounts of the possible senders, where a chain has them.
	Accounts []string
}

// UnreadableMovement is an event, or a transaction, that a driver could not read.
type UnreadableMovement struct {
	TxID   string
	Detail string
}

// BlockScan is one block with all its movements.
type BlockScan struct {
	Network    Network
	Block      ChainBlock
	Movements  []ChainMovement
	Unreadable []UnreadableMovement
	// Minimum is the least amount of an asset that wakes a flow. Smaller amounts are booked all the same.
	Minimum map[money.Asset]money.Amount
}

// DepositCursor is how far the deposits of a network have been read.
type DepositCursor struct {
	Network Network
	Started uint64     // the block after which reading began
	Final   ChainBlock // the newest block whose movements are final and booked; without id after a start at a bare number
	// LinkID is the id of the newest block up to Final that was not skipped: the parent of the next one.
	LinkID string
	// Tip is the newest block above Final that was seen, and TipLink the newest that was not skipped. Without such a block
	// both equal Final and LinkID.
	Tip       ChainBlock
	TipLink   string
	StartedAt time.Time
	UpdatedAt time.Time
}

// TxSighting is what the deposit watch of a network has read of transactions, of which at most one can be in a block.
type TxSighting struct {
	Current bool       // the watch keeps up with the network; if not, it says nothing about what it has not read
	Final   ChainBlock // the newest final block that it has read
	Newest  ChainBlock // the newest block that it has read
	TxID    string     // the transaction that Block has and that moved something; empty for none
	Block   ChainBlock // only its number and id
	Settled bool       // Block is final
}

// ChainDeposit is a movement into or out of a wallet of ours.
type ChainDeposit struct {
	ID           uuid.UUID
	Network      Network
	TxID         string
	Index        uint32
	From         string
	To           string
	Others       []string // other possible senders; they are screened like From
	Accounts     []string // the token accounts of the senders; one on the deny list is screened like From
	Amount       money.Amount
	WalletID     uuid.UUID // the receiving wallet; zero when only the sender is ours
	FromWalletID uuid.UUID // the sending wallet; zero when only the recipient is ours
	Kind         DepositKind
	Status       ChainDepositStatus
	PaymentID    uuid.UUID // of an own movement
	ExceptionID  uuid.UUID // of an unmatched one that is final
	Block        uint64
	BlockID      string
	BlockTime    time.Time
	CreatedAt    time.Time
	FinalAt      time.Time // zero until it is final
	Version      int64
}

// MovementDirection is the side of a wallet on which a movement is.
type MovementDirection string

// The directions.
const (
	MovementIn     MovementDirection = "in"
	MovementOut    MovementDirection = "out"
	MovementWithin MovementDirection = "within" // from the wallet to itself
)

// MovementDirections lists the directions.
func MovementDirections() []MovementDirection {
	return []MovementDirection{MovementIn, MovementOut, MovementWithin}
}

// WalletMovement is a movement as the history of one of its wallets shows it.
type WalletMovement struct {
	ChainDeposit
	Purpose  ChainPurpose // of an own movement: what its payment was for
	ObjectID uuid.UUID    // of an own movement: the object that its payment carries out
}

// Direction is the side of a wallet of the movement on which it is.
func (m WalletMovement) Direction(wallet uuid.UUID) MovementDirection {
	switch {
	case m.WalletID != wallet:
		return MovementOut
	case m.FromWalletID == wallet:
		return MovementWithin
	}
	return MovementIn
}

// QuarantineReason is why a movement was set aside.
type QuarantineReason string

// The reasons for quarantine.
const (
	QuarantineUnreadable  QuarantineReason = "unreadable"   // the driver can't parse the event
	QuarantineInvalid     QuarantineReason = "invalid"      // what the driver parsed can't be a movement
	QuarantineRefused     QuarantineReason = "refused"      // the database refuses it
	QuarantineContradicts QuarantineReason = "contradicts"  // the final chain contradicts what was recorded before
	QuarantineOutgoing    QuarantineReason = "not_our_send" // money left a wallet of ours by a transaction that is not ours
	// QuarantineUnexpected is of our own transaction: it moved money, or may have, although it was given up or did not make
	// its payment.
	QuarantineUnexpected QuarantineReason = "unexpected_send"
)

// QuarantinedMovement waits for an officer. It is not booked.
type QuarantinedMovement struct {
	ID        uuid.UUID
	Network   Network
	Block     uint64
	TxID      string
	Index     uint32
	Reason    QuarantineReason
	Detail    string
	Payload   json.RawMessage // what the driver parsed
	CreatedAt time.Time
	SettledAt time.Time
	Note      string
}

// SigningHold is why no transaction is signed for a payment.
type SigningHold string

// The reasons. HoldWatch, HoldFrozen, HoldPutBack and HoldDiffers pass by themselves, HoldInactive when the account is switched on again; the others
// last until an officer settles the quarantined movement.
const (
	HoldNone       SigningHold = ""
	HoldUnexpected SigningHold = "unexpected_send"  // a transaction of the payment moved something that is not accounted for
	HoldSentBefore SigningHold = "sent_before"      // an unknown transaction moved exactly this payment's amount out of the wallet
	HoldForeign    SigningHold = "foreign_send"     // an unknown transaction moved something out of the wallet
	HoldInactive   SigningHold = "inactive_account" // a party of the payment was switched off
	HoldFrozen     SigningHold = "frozen"           // an officer has frozen all outgoing payments
	HoldPutBack    SigningHold = "put_back"         // the database was put back and two officers have not released it, so shillings may have moved unseen
	HoldDiffers    SigningHold = "account_differs"  // the owners of the wallet on the chain are not those that were agreed
	HoldWatch      SigningHold = "watch_behind"     // the chain is not read up to its newest block, so later sends are unknown
)

// Passes reports whether a hold ends without a decision about the payment.
func (h SigningHold) Passes() bool {
	return h == HoldWatch || h == HoldFrozen || h == HoldPutBack || h == HoldDiffers
}

// WatchLook is the state of a network when the watch read it.
type WatchLook struct {
	Network Network
	Final   ChainBlock // the newest final block
	// FinalHeight and LatestHeight count blocks where transactions expire by block height; zero elsewhere.
	FinalHeight, LatestHeight uint64
	// Life and LifeBlocks are how long a signed transaction can be included. Both are zero where a nonce prevents two
	// transactions from being carried out.
	Life       time.Duration
	LifeBlocks uint64
}

// DepositWait requests that a flow is woken whenever a movement into a wallet is seen, final or orphaned.
type DepositWait struct {
	ID         uuid.UUID
	WalletID   uuid.UUID
	WorkflowID string
	CreatedAt  time.Time
}

// DepositWakeup is one signal to send: the id of its row, and the receiving flow. One without a deposit has the flow look at the chain again.
type DepositWakeup struct {
	ID         uuid.UUID `json:"id"`
	WorkflowID string    `json:"workflow_id"`
	DepositID  uuid.UUID `json:"deposit_id,omitzero"`
}
