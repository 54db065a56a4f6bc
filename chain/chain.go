// Package chain is what the rest of Kivuko knows of a blockchain, written once for three of them.
//
// A driver builds transactions locally, never signs what a node built, and reports facts. It decides
// nothing about money: Judge, a pure function of recorded facts, says what may be done next. The
// order of a send is always the same. Prepare builds, Sign signs once, the caller stores the bytes,
// and only then are they broadcast, as often as needed. Another transaction is built only when Judge
// says that the one before is proven impossible.
//
// Success is never "included". It is a successful receipt with the expected Transfer event in a
// block that the network calls final.
package chain

import (
	"context"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Client is one network. Implementations are safe for concurrent use, keep no state that matters,
// and return *Error for what they understand.
type Client interface {
	// Network names the chain.
	Network() exchange.Network
	// Traits are the rules of the network that a sender must know.
	Traits() Traits
	// ParseAddress checks an address of the network (form, checksum, prefix) and returns its
	// canonical form. It asks nobody.
	ParseAddress(s string) (string, error)
	// Address is the address of a public key: 65 bytes uncompressed for secp256k1, 32 for ed25519.
	Address(publicKey []byte) (string, error)
	// Supports tells whether the asset can be held and sent on the network as configured; the
	// error says why not.
	Supports(a money.Asset) error
	// Head reads the newest block and the newest final one.
	Head(ctx context.Context) (Head, error)
	// Balance reads what an address holds, with the block at which it was read.
	Balance(ctx context.Context, address string, a money.Asset) (Balance, error)
	// Prepare builds an unsigned transaction with everything that the network needs (reference
	// block, fee limit from a simulation with the real recipient), and refuses one that can't
	// succeed. On a network without sequence numbers two calls never give the same transaction.
	Prepare(ctx context.Context, d Draft) (Unsigned, error)
	// Sign completes a prepared transaction: with the sender's key, and where another account pays
	// the fee, with that one's key after it.
	Sign(u Unsigned, keys ...Key) (Signed, error)
	// Broadcast offers signed bytes to the network. Its result never proves that they will or
	// won't be included.
	Broadcast(ctx context.Context, raw []byte) (Broadcast, error)
	// Locate finds a transaction and says how far it came, judged by the network's finality.
	Locate(ctx context.Context, txID string) (Location, error)
	// Transfers lists every movement of the native coin and of the configured tokens in one block.
	Transfers(ctx context.Context, number uint64) (BlockTransfers, error)
}

// Traits are the rules of a network that decide how a payment is drafted.
type Traits struct {
	// Sequenced senders number their transactions without gaps. Of two with the same number only one
	// can ever be included, and a higher bid may take the place of a lower one.
	Sequenced bool
	// Sponsored transactions let another account pay the fee; it signs too.
	Sponsored bool
}

// Sequenced is a client of a network whose senders number their transactions.
type Sequenced interface {
	// Nonces counts the transactions that an address has sent.
	Nonces(ctx context.Context, address string) (Nonces, error)
}

// Nonces are the next free sequence numbers of a sender.
type Nonces struct {
	Latest uint64 // by the newest block
	Final  uint64 // by the newest final block: every number below is used for ever
	Head   Head   // the blocks at which they were read
}

// Key is the private key of one wallet, held by a signer for the time of one signature.
type Key interface {
	// PublicKey is uncompressed secp256k1 (65 bytes) or ed25519 (32 bytes).
	PublicKey() []byte
	// Sign returns 65 bytes r‖s‖v (v 0 or 1, RFC 6979) over a 32-byte digest for secp256k1, or 64
	// bytes over the message for ed25519.
	Sign(payload []byte) ([]byte, error)
}

// Block names a block.
type Block struct {
	Number uint64 // on Solana its slot
	ID     string
	Parent string
	Time   time.Time
	// Height counts the blocks before this one on a network whose transactions live by it (Solana: slots
	// without a block make it smaller than Number). Zero on the others.
	Height uint64
}

// Head is how far the network came: the newest block and the newest one that can't be undone.
type Head struct {
	Latest Block
	Final  Block
}

// Balance is what an address held when block At was the newest.
type Balance struct {
	Amount money.Amount
	At     Block
}

// Transfer is an intent to pay. Both addresses are canonical.
type Transfer struct {
	From   string
	To     string
	Amount money.Amount
}

// Draft is what a transaction is built from.
type Draft struct {
	Transfer
	// FeePayer is the account that pays the network's fee, on a sponsored network. Empty lets the
	// sender pay.
	FeePayer string
	// Nonce is the transaction's number, on a sequenced network.
	Nonce uint64
	// Outbid is the bid of a transaction with the same number that this one is to replace. The zero
	// bid replaces nothing.
	Outbid exchange.Bid
	// NonceAccount has the transaction live until the account's value moves on, see Durable. The fee payer
	// rules the account.
	NonceAccount string
	// Step does something with the nonce account To, which From rules, and pays Amount into it. Seed is that
	// of the account, where it is opened.
	Step NonceStep
	Seed string
	// Life is how long the transaction may live, where its sender decides that; zero leaves it to the
	// driver. What is signed away from the service needs hours.
	Life time.Duration
}

// Unsigned is a transaction before its signature.
type Unsigned struct {
	Transfer        Transfer
	FeePayer        string // empty where the sender pays
	Payload         []byte // what Key.Sign gets
	Body            []byte // the network's encoding of the unsigned transaction
	ExpiresAt       time.Time
	LastValidHeight uint64 // the Block.Height after which no block can include it
	Nonce           uint64
	RefBlock        string       // the block that it refers to, or the value of its nonce account
	NonceAccount    string       // empty where it lives by a block
	NonceBlock      uint64       // a final block by which the account had that value
	Step            NonceStep    // see Draft
	Seed            string       // see Draft
	Bid             exchange.Bid // what it offers for a place in a block, on a sequenced network
	FeeLimit        money.Amount // the most that it can cost, in the native coin
}

// Signed is a transaction ready to be stored and then broadcast.
type Signed struct {
	Unsigned
	TxID string
	Raw  []byte
}

// BroadcastState is a node's answer to an offered transaction.
type BroadcastState string

// The answers to a broadcast. None of them is proof: an accepted transaction may vanish, a rejected
// one may be taken by another node until it expires.
const (
	BroadcastAccepted BroadcastState = "accepted"
	BroadcastKnown    BroadcastState = "known"    // the node says that it has seen it before
	BroadcastRejected BroadcastState = "rejected" // this node won't take it; Code says why
	BroadcastUnknown  BroadcastState = "unknown"  // no answer; it may have arrived
)

// Broadcast is the outcome of offering a transaction.
type Broadcast struct {
	State BroadcastState
	Code  string // the network's own code
	Text  string
}

// Stage is how far a transaction came.
type Stage string

// The stages of a transaction, from the node's point of view.
const (
	StageAbsent   Stage = "absent"   // the node does not know it
	StagePending  Stage = "pending"  // waiting for a block
	StageIncluded Stage = "included" // in a block that may be undone
	StageFinal    Stage = "final"    // in a block that can't be undone
)

// Location is where a transaction was found, and what it did there.
type Location struct {
	Stage     Stage
	Block     Block
	OK        bool         // the receipt says success; meaningful from StageIncluded on
	Code      string       // the receipt's result ("SUCCESS", "REVERT", "OUT_OF_ENERGY", ...)
	Fee       money.Amount // what its fee payer paid, in the native coin
	Transfers []Movement   // the Transfer events and native transfers that it made
	Head      Head         // the network's head when the question was answered
}

// Movement is one transfer of value on the chain, as its events tell it.
type Movement struct {
	TxID   string
	Index  uint32 // of the event within the transaction; unique with TxID
	From   string
	To     string
	Amount money.Amount
	// Others are who may have sent it besides From, in order, where the chain does not record who paid whom.
	// TRON and Ethereum name the sender in each transfer, so nobody stands here. Solana tells the balances of
	// accounts before and after a transaction (meta of getTransaction and getBlock): here stand the other
	// accounts that lost the asset in it, and the owners of those for which no owner's address is named.
	Others []string
}

// BlockTransfers are the movements in one block.
type BlockTransfers struct {
	Block Block
	// Skipped is set where the network will never have a block of the asked number (a slot of Solana
	// whose leader made none); nothing but the number is known then.
	Skipped   bool
	Movements []Movement
	// Unreadable are transactions of the block whose movements the driver can't tell, because an event
	// of a token of ours is malformed. They stop nothing else; a person looks at them.
	Unreadable []Unreadable
}

// Unreadable is a transaction whose movements can't be told.
type Unreadable struct {
	TxID   string
	Detail string
}
