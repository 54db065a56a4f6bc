package exchange

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ChainDepositStatus is the state of a movement that was seen on a chain.
type ChainDepositStatus string

// The states of a movement. Only a final one counts.
const (
	DepositSeen     ChainDepositStatus = "seen"     // in a block that may still be reorganised away
	DepositFinal    ChainDepositStatus = "final"    // in a block that can't be undone; booked where it is to be booked
	DepositOrphaned ChainDepositStatus = "orphaned" // its block was reorganised away; its transaction may come again
)

// DepositKinds lists every kind of movement.
func DepositKinds() []DepositKind {
	return []DepositKind{DepositCredit, DepositHouse, DepositAwaited, DepositUnmatched, DepositOwn, DepositOutgoing, DepositEmpty}
}

// ChainDepositMachine governs movements that were seen. An orphaned one may come back: its transaction
// is as good as pending, and may be in another block, even in one that is final by the time it is seen.
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

// DepositKind says what a movement is to our books.
type DepositKind string

// The kinds of movement. Own, outgoing and empty ones are never booked by whoever watches the chain.
const (
	DepositCredit    DepositKind = "credit"    // into the wallet of a user: owed to its owner
	DepositHouse     DepositKind = "house"     // into a wallet of the house that is meant for it: the house's capital
	DepositAwaited   DepositKind = "awaited"   // into an address of the escrow pool for which a flow waits: suspense, until the flow takes it
	DepositUnmatched DepositKind = "unmatched" // fits nothing: suspense, and a payment exception
	DepositOwn       DepositKind = "own"       // made by a payment of ours, whose completion books both ends
	DepositOutgoing  DepositKind = "outgoing"  // left a wallet of ours by a transaction that is not ours: an alarm
	DepositEmpty     DepositKind = "empty"     // moved nothing; such events are sent to poison address lists
)

// Booked tells whether a final movement of the kind has an entry in the ledger.
func (k DepositKind) Booked() bool {
	return k == DepositCredit || k == DepositHouse || k == DepositAwaited || k == DepositUnmatched
}

// ChainBlock names a block as the watch over deposits keeps it. A skipped one is a number that the
// network will never use; it has neither id nor parent.
type ChainBlock struct {
	Number  uint64
	ID      string
	Parent  string
	Time    time.Time
	Skipped bool
}

// ChainMovement is one transfer of value on a chain. TxID and Index together name it for good, in
// whatever block it is.
type ChainMovement struct {
	TxID   string
	Index  uint32
	From   string
	To     string
	Amount money.Amount
	Others []string // who may have sent it besides From, where the chain does not tell who paid whom
}

// UnreadableMovement is an event, or a transaction, that a driver could not read.
type UnreadableMovement struct {
	TxID   string
	Detail string
}

// BlockScan is one block with everything that moved in it.
type BlockScan struct {
	Network    Network
	Block      ChainBlock
	Movements  []ChainMovement
	Unreadable []UnreadableMovement
	// Minimum is the least amount of an asset that wakes anybody. Less is booked all the same.
	Minimum map[money.Asset]money.Amount
}

// DepositCursor is how far the deposits of a network were read.
type DepositCursor struct {
	Network Network
	Started uint64     // the block after which reading began
	Final   ChainBlock // the newest block whose movements are final and booked; without id right after a start at a bare number
	// LinkID is the id of the newest block up to Final that was not skipped, the parent of the next one.
	LinkID string
	// Tip is the newest block that was seen above Final, and TipLink the newest that was not skipped; both
	// are Final and LinkID while there is none.
	Tip       ChainBlock
	TipLink   string
	StartedAt time.Time
	UpdatedAt time.Time
}

// ChainDeposit is one movement that touches a wallet of ours.
type ChainDeposit struct {
	ID           uuid.UUID
	Network      Network
	TxID         string
	Index        uint32
	From         string
	To           string
	Others       []string // who may have sent it besides From; they are screened like From
	Amount       money.Amount
	WalletID     uuid.UUID // that it came to; zero when only the sender is ours
	FromWalletID uuid.UUID // that it left; zero when only the recipient is ours
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

// QuarantineReason says why a movement was set aside.
type QuarantineReason string

// The reasons for quarantine.
const (
	QuarantineUnreadable  QuarantineReason = "unreadable"   // the driver can't make sense of the event
	QuarantineInvalid     QuarantineReason = "invalid"      // what the driver reads can't be a movement
	QuarantineRefused     QuarantineReason = "refused"      // the database refuses it
	QuarantineContradicts QuarantineReason = "contradicts"  // the final chain tells it otherwise than before
	QuarantineOutgoing    QuarantineReason = "not_our_send" // money left a wallet of ours by a transaction that is not ours
	// QuarantineUnexpected is of a transaction of ours: one that was given up, or that was carried out without
	// making its payment, has moved money or may have.
	QuarantineUnexpected QuarantineReason = "unexpected_send"
)

// QuarantinedMovement waits for a person. Nothing of it was booked.
type QuarantinedMovement struct {
	ID        uuid.UUID
	Network   Network
	Block     uint64
	TxID      string
	Index     uint32
	Reason    QuarantineReason
	Detail    string
	Payload   json.RawMessage // what the driver read
	CreatedAt time.Time
	SettledAt time.Time
	Note      string
}

// SigningHold says in a word why no transaction is signed for a payment.
type SigningHold string

// The reasons for which nothing is signed. All but HoldWatch last until a person has settled what is in the
// quarantine.
const (
	HoldNone       SigningHold = ""
	HoldUnexpected SigningHold = "unexpected_send" // a transaction of the payment moved something that is not accounted for
	HoldSentBefore SigningHold = "sent_before"     // exactly this left the wallet by a transaction that is not known here
	HoldForeign    SigningHold = "foreign_send"    // something left the wallet by a transaction that is not known here
	HoldWatch      SigningHold = "watch_behind"    // the chain was not read up to now, so nobody knows what left the wallet
)

// WatchLook is how far a network had come when the watch looked at it.
type WatchLook struct {
	Network Network
	Final   ChainBlock // the newest final block
	// FinalHeight and LatestHeight count blocks where transactions live by them; zero elsewhere.
	FinalHeight, LatestHeight uint64
	// Life and LifeBlocks are for how long a signed transaction can be included; both zero where a number
	// keeps it from being carried out beside another one.
	Life       time.Duration
	LifeBlocks uint64
}

// DepositWait asks that a flow is woken whenever a movement into a wallet is seen, final or orphaned.
type DepositWait struct {
	ID         uuid.UUID
	WalletID   uuid.UUID
	WorkflowID string
	CreatedAt  time.Time
}

// DepositWakeup is one signal that is to be sent: the id of a row, and to whom.
type DepositWakeup struct {
	ID         uuid.UUID `json:"id"`
	WorkflowID string    `json:"workflow_id"`
	DepositID  uuid.UUID `json:"deposit_id"`
}
