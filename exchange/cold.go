package exchange

import (
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ColdLife is how long a transaction that was handed out may be signed. It is the life of the transaction
// itself where the network ends transactions by time.
const ColdLife = 12 * time.Hour

// ColdMargin is how much later than its end a handed out transaction counts as impossible: the network
// measures by its own clock.
const ColdMargin = 15 * time.Minute

// MaxColdBytes bounds a transaction that comes back signed.
const MaxColdBytes = 4 << 10

// ColdMasterPrefix begins the names of master keys whose private half only the cold machine has.
const ColdMasterPrefix = "cold:"

// NonceSeed is the seed of a cold wallet's nonce account: 32 characters, the most that the network takes.
func NonceSeed(walletID uuid.UUID) string { return hex.EncodeToString(walletID[:]) }

// ColdDraftStatus is the state of a transaction that was handed out.
type ColdDraftStatus string

// The states of a transaction that was handed out to be signed away from the service.
const (
	ColdOpen   ColdDraftStatus = "open"   // it may come back signed; nothing else may be done with its payment
	ColdSigned ColdDraftStatus = "signed" // it came back and is a transaction of its payment

	// ColdClosing is being withdrawn: nobody signs it here any more, and its nonce account is advanced.
	ColdClosing ColdDraftStatus = "closing"
	// ColdLapsed is proven never to be included, or another one with its number was handed out anew.
	ColdLapsed ColdDraftStatus = "lapsed"
)

// ColdDraft is an unsigned transaction of a cold wallet. While one is open no other is made for its
// payment, because both could be signed and sent.
type ColdDraft struct {
	ID        uuid.UUID
	PaymentID uuid.UUID
	Network   Network
	Body      []byte // the network's encoding, see chain.Unsigned
	Payload   []byte // what the key signs
	TxID      string // empty where only the signature decides it
	ExpiresAt time.Time
	Lane      uuid.UUID // the wallet whose sequence Nonce is of; zero where the network has none
	Nonce     uint64
	RefBlock  string
	// NonceAccount is what it lives by where the network has no end in time for it: as long as the account's value
	// is RefBlock, which it was by the final block NonceBlock. Part is the owner's signature, which came back; the
	// fee payer signs after it.
	NonceAccount string
	NonceBlock   uint64
	Part         []byte
	Bid          Bid
	FeeLimit     money.Amount
	Status       ColdDraftStatus
	// ClosesAt is the moment until which it is handed out again as it is. It comes after ExpiresAt. It is no proof:
	// what was handed out is over when its network can't include it any more, and Evidence says why.
	ClosesAt  time.Time
	Evidence  string
	AskedBy   uuid.UUID
	AttemptID uuid.UUID // of the transaction that it became
	CreatedAt time.Time
}
