package exchange

import (
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

// ColdDraftStatus is the state of a transaction that was handed out.
type ColdDraftStatus string

// The states of a transaction that was handed out to be signed away from the service.
const (
	ColdOpen   ColdDraftStatus = "open"   // it may come back signed; nothing else may be done with its payment
	ColdSigned ColdDraftStatus = "signed" // it came back and is a transaction of its payment
	ColdLapsed ColdDraftStatus = "lapsed" // its time is over, or its number was taken by another payment
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
	Bid       Bid
	FeeLimit  money.Amount
	Status    ColdDraftStatus
	// ClosesAt is the moment from which an open draft may be given up. It comes after ExpiresAt.
	ClosesAt  time.Time
	AskedBy   uuid.UUID
	AttemptID uuid.UUID // of the transaction that it became
	CreatedAt time.Time
}
