// Package chain is Kivuko's common interface to three blockchains.
//
// A driver builds transactions locally, never signs what a node built, and reports facts. It decides nothing about money:
// Judge, a pure function of recorded facts, returns what may be done next. Every send has the same order. Prepare builds,
// Sign signs once, the caller stores the bytes, and only then are they broadcast, as often as needed. Another transaction is
// built only when Judge finds the previous one proven impossible.
//
// "Included" is not success. Success is a successful receipt with the expected Transfer event in a block that the network
// calls final.
package chain

import (
	"context"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Client is one network. Implementations are safe for concurrent use, keep no essential state, and return *Error for the
// failures that they recognise.
type Client interface {
	// Network names the chain.
	Network() exchange.Network
	// Traits are the rules of the network for senders.
	Traits() Traits
	// ParseAddress checks an address of the network (form, checksum, prefix) and returns its canonical form. It makes no
	// network call.
	ParseAddress(s string) (string, error)
	// Address is the address of a public key: 65 bytes uncompressed for secp256k1, 32 for ed25519.
	Address(publicKey []byte) (string, error)
	// Supports returns why the asset can't be held or sent on the network as configured, or nil.
	Supports(a money.Asset) error
	// Head reads the newest block and the newest final one.
	Head(ctx context.Context) (Head, error)
	// Balance reads what an address holds, with the block at which it was read.
	Balance(ctx context.Context, address string, a money.Asset) (Balance, error)
	// Balances is Balance for several holdings, all at the same block, in their order.
	Balances(ctx context.Context, of []Holding) ([]Balance, error)
	// Holders names all accounts to which a payment of an asset to an address belongs, the address first. A payee is denied by
	// the name of any of them. On Solana, a wallet's tokens lie in its associated token account, and a token account that is
	// paid directly has an owner.
	Holders(ctx context.Context, address string, a money.Asset) ([]string, error)
	// Prepare builds an unsigned transaction with everything that the network needs (reference block, fee limit from a
	// simulation with the real recipient), and refuses one that can't succeed. On a network without sequence numbers two
	// calls never return the same transaction.
	Prepare(ctx context.Context, d Draft) (Unsigned, error)
	// Sign completes a prepared transaction: with the sender's key, and then with the fee payer's key if another account
	// pays the fee.
	Sign(u Unsigned, keys ...Key) (Signed, error)
	// Broadcast sends signed bytes to the network. Its result never proves that they will or won't be included.
	Broadcast(ctx context.Context, raw []byte) (Broadcast, error)
	// Locate finds a transaction and its stage, by the network's finality.
	Locate(ctx context.Context, txID string) (Location, error)
	// Transfers lists every movement of the native coin and of the configured tokens in one block.
	Transfers(ctx context.Context, number uint64) (BlockTransfers, error)
}

// Traits are the rules of a network that affect how a payment is drafted.
type Traits struct {
	// Sequenced senders number their transactions without gaps. Of two with the same number only one can ever be included,
	// and a higher bid may replace a lower one.
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
	Final  uint64 // by the newest final block: lower numbers are used for ever
	Head   Head   // the blocks at which they were read
}

// Key is the private key of one wallet, which a signer opens for one signature.
type Key interface {
	// PublicKey is uncompressed secp256k1 (65 bytes) or ed25519 (32 bytes).
	PublicKey() []byte
	// Sign returns 65 bytes r‖s‖v (v 0 or 1, RFC 6979) over a 32-byte digest for secp256k1, or 64
	// bytes over the message for ed25519.
	Sign(payload []byte) ([]byte, error)
}

// Block identifies a block.
type Block struct {
	Number uint64    `json:"number"` // on Solana its slot
	ID     string    `json:"id"`
	Parent string    `json:"parent,omitempty"`
	Time   time.Time `json:"time,omitzero"`
	// Height counts the blocks before this one, on a network whose transactions expire by it (Solana: smaller than Number,
	// because slots may have no block). Zero on the others.
	Height uint64 `json:"height,omitempty"`
}

// Head is the newest block, and the newest block that can't be undone.
type Head struct {
	Latest Block `json:"latest"`
	Final  Block `json:"final"`
}

// Holding is what an address has of an asset.
type Holding struct {
	Address string
	Asset   money.Asset
}

// Balance is what an address held at block At.
type Balance struct {
	Amount money.Amount
	At     Block
}

// Transfer is an intent to pay. Both addresses are canonical.
type Transfer struct {
	From   string       `json:"from"`
	To     string       `json:"to"`
	Amount money.Amount `json:"amount"`
}

// Equal compares amounts by their value, which == does not.
func (t Transfer) Equal(o Transfer) bool {
	return t.From == o.From && t.To == o.To && t.Amount.Equal(o.Amount)
}

// Draft is the input of Prepare.
type Draft struct {
	Transfer
	// FeePayer is the account that pays the network's fee, on a sponsored network. Empty: the sender pays.
	FeePayer string
	// Nonce is the transaction's number, on a sequenced network.
	Nonce uint64
	// Bump is the bid of the transaction with the same number that this one replaces. The zero bid replaces nothing.
	Bump exchange.Bid
	// NonceAccount keeps the transaction valid until the account's value changes, see Durable. The fee payer is the
	// account's authority.
	NonceAccount string
	// Step changes the nonce account To, whose authority is From, and pays Amount into it. Seed is the account's, when it is
	// opened.
	Step NonceStep
	Seed string
	// Owners is the quorum of the account To, which From opens with Seed, see Opener. Amount is what the account must hold.
	Owners *OwnersChange
	// Life is how long the transaction may live, where its sender decides that; zero: the driver decides. A transaction that
	// is signed outside of the service needs hours.
	Life time.Duration
}

// Unsigned is a transaction before its signature.
type Unsigned struct {
	Transfer        Transfer
	FeePayer        string // empty when the sender pays
	Payload         []byte // the input of Key.Sign
	Body            []byte // the network's encoding of the unsigned transaction
	ExpiresAt       time.Time
	LastValidHeight uint64 // the Block.Height after which no block can include it
	Nonce           uint64
	RefBlock        string        // the block that it refers to, or the value of its nonce account
	NonceAccount    string        // empty when a block limits its life
	NonceBlock      uint64        // a final block by which the account had that value
	Step            NonceStep     // see Draft
	Seed            string        // see Draft
	Owners          *OwnersChange // see Draft
	Bid             exchange.Bid  // its fee offer, on a sequenced network
	FeeLimit        money.Amount  // the most that it can cost, in the native coin
}

// Signed is a transaction ready to be stored and then broadcast.
type Signed struct {
	Unsigned
	TxID string
	Raw  []byte
}

// BroadcastState is a node's response to a broadcast transaction.
type BroadcastState string

// The responses to a broadcast. None of them is proof: an accepted transaction may vanish, and another node may accept a
// rejected one until it expires.
const (
	BroadcastAccepted BroadcastState = "accepted"
	BroadcastKnown    BroadcastState = "known"    // the node already has it
	BroadcastRejected BroadcastState = "rejected" // this node refused it; Code is the reason
	BroadcastUnknown  BroadcastState = "unknown"  // no response; it may have arrived
)

// Broadcast is the result of sending a transaction to the network.
type Broadcast struct {
	State BroadcastState
	Code  string // the network's own code
	Text  string
}

// Stage is how far a transaction has come.
type Stage string

// The stages of a transaction, as a node sees them.
const (
	StageAbsent   Stage = "absent"   // the node does not have it
	StagePending  Stage = "pending"  // waiting for a block
	StageIncluded Stage = "included" // in a block that may be undone
	StageFinal    Stage = "final"    // in a block that can't be undone
)

// Location is where a transaction was found, and its effects.
type Location struct {
	Stage     Stage
	Block     Block
	OK        bool         // the receipt's success; meaningful from StageIncluded on
	OutOfGas  bool         // it failed because its fee did not suffice, so it moved nothing
	Code      string       // the receipt's result ("SUCCESS", "REVERT", "OUT_OF_ENERGY", ...)
	Fee       money.Amount // what its fee payer paid, in the native coin
	Transfers []Movement   // the Transfer events and native transfers that it made
	Head      Head         // the network's head at the time of the response
}

// Movement is one transfer of value on the chain, as an event reports it.
type Movement struct {
	TxID   string
	Index  uint32 // of the event within the transaction; unique with TxID
	From   string
	To     string
	Amount money.Amount
	// Others are further possible senders besides From, in order, where the chain does not record who paid whom. TRON and
	// Ethereum name the sender of each transfer, so it is empty there. Solana reports the balances of accounts before and
	// after a transaction (meta of getTransaction and getBlock): Others are the other accounts that lost the asset, and the
	// owners of accounts that are not named by their owner's address.
	Others []string
	// Accounts are the accounts of the possible senders that the money left, in order, where they are named by their owner's
	// address: token accounts of Solana. Deny lists may name either.
	Accounts []string
}

// BlockTransfers are the movements in one block.
type BlockTransfers struct {
	Block Block
	// Skipped is set when the network will never have a block with this number (a slot of Solana whose leader made none).
	// All other fields are then empty.
	Skipped   bool
	Movements []Movement
	// Unreadable are transactions of the block whose movements the driver can't read, because an event of a supported token
	// is malformed. They stop nothing else; an officer must check them.
	Unreadable []Unreadable
}

// Unreadable is a transaction whose movements can't be read.
type Unreadable struct {
	TxID   string
	Detail string
}
