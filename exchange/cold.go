package exchange

import (
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ColdLife is how long a handed-out transaction may be signed. On networks whose transactions expire by time, it is also the
// life of the transaction.
const ColdLife = 12 * time.Hour

// ColdMargin is how long after its expiry a handed-out transaction still counts as possible: the network measures by its own clock.
const ColdMargin = 15 * time.Minute

// MaxColdBytes bounds a signed transaction that is imported.
const MaxColdBytes = 4 << 10

// ColdMasterPrefix begins the names of master keys whose private half exists only on the cold machine.
const ColdMasterPrefix = "cold:"

// NonceSeed is the seed of a cold wallet's nonce account: 32 characters, the most that the network takes.
func NonceSeed(walletID uuid.UUID) string { return hex.EncodeToString(walletID[:]) }

// ColdDraftStatus is the state of a handed-out transaction.
type ColdDraftStatus string

// The states of a transaction that was handed out to be signed on the cold machine.
const (
	ColdOpen   ColdDraftStatus = "open"   // may be imported signed; blocks any other transaction of its payment
	ColdSigned ColdDraftStatus = "signed" // was imported, and is a transaction of its payment

	// ColdClosing is being withdrawn: it is not signed any more, and its nonce account is advanced.
	ColdClosing ColdDraftStatus = "closing"
	// ColdLapsed is proven never to be included, or another draft with its number replaced it.
	ColdLapsed ColdDraftStatus = "lapsed"
)

// ColdDraftMachine governs transactions that were handed out. One that expires by its number may still be imported after it lapsed, as
// long as no other one is open; one of a nonce account never again.
var ColdDraftMachine = Machine[ColdDraftStatus]{
	Name: "cold_draft", Initial: ColdOpen,
	Transitions: []Transition[ColdDraftStatus]{
		{ColdOpen, ColdSigned, ByOperator, "its signed form is imported"},
		{ColdOpen, ColdClosing, ByOperator, "it is withdrawn, and its nonce account is being advanced"},
		{ColdOpen, ColdLapsed, ByFlow, "it can't be included any more, or one with the same number replaced it"},
		{ColdClosing, ColdLapsed, ByFlow, "its nonce account was advanced"},
		{ColdLapsed, ColdSigned, ByOperator, "its signed form is imported after all, and no other one is open"},
	},
	Final: []ColdDraftStatus{ColdSigned},
}

// ColdDraft is an unsigned transaction of a cold wallet. While one is open its payment gets no other transaction, because
// both could be signed and sent.
type ColdDraft struct {
	ID          uuid.UUID
	PaymentID   uuid.UUID
	Network     Network
	Body        []byte // the network's encoding, see chain.Unsigned
	Payload     []byte // what the key signs
	TxID        string // empty where it depends on the signature
	ExpiresAt   time.Time
	NonceWallet uuid.UUID // the wallet that Nonce belongs to; zero where the network has no nonces
	Nonce       uint64
	RefBlock    string
	// NonceAccount keeps the transaction valid on a network where it has no end in time: for as long as the account's value
	// is RefBlock. It was that by the final block NonceBlock. Part is the owner's signature that was imported; the fee payer
	// signs after it.
	NonceAccount string
	NonceBlock   uint64
	Part         []byte
	Bid          Bid
	FeeLimit     money.Amount
	Status       ColdDraftStatus
	// ClosesAt is until when the same draft is handed out again. It is after ExpiresAt. It proves nothing: the draft is over
	// when its network can't include the transaction any more, and Evidence says why.
	ClosesAt  time.Time
	Evidence  string
	AskedBy   uuid.UUID
	AttemptID uuid.UUID // the transaction that it became
	CreatedAt time.Time
}
