package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ChainPaymentStatus is the state of a payment on a blockchain.
type ChainPaymentStatus string

// The states of a chain payment.
const (
	ChainApproved  ChainPaymentStatus = "approved"  // may be signed; no transaction of it can exist
	ChainSigned    ChainPaymentStatus = "signed"    // signed bytes are stored, perhaps not yet sent
	ChainBroadcast ChainPaymentStatus = "broadcast" // a node took the bytes
	ChainIncluded  ChainPaymentStatus = "included"  // in a block that may still be reorganised away
	ChainCompleted ChainPaymentStatus = "completed" // final, with the expected transfer
	ChainParked    ChainPaymentStatus = "parked"    // can't go on without a person; no transaction of it can still succeed
	ChainCancelled ChainPaymentStatus = "cancelled" // given up by a person while parked
)

// ChainPaymentMachine governs payments on a blockchain. A payment comes back to approved only when
// the transaction before is proven impossible, because two live transactions could both pay.
var ChainPaymentMachine = Machine[ChainPaymentStatus]{
	Name: "chain_payment", Initial: ChainApproved,
	Transitions: []Transition[ChainPaymentStatus]{
		{ChainApproved, ChainSigned, ByFlow, "signed bytes stored"},
		{ChainApproved, ChainParked, ByFlow, "no transaction can be built"},
		{ChainSigned, ChainBroadcast, ByFlow, "a node took it"},
		{ChainSigned, ChainIncluded, ByFlow, "seen in a block"},
		{ChainSigned, ChainApproved, ByFlow, "proven impossible"},
		{ChainSigned, ChainCompleted, ByFlow, "final with the expected transfer"},
		{ChainSigned, ChainParked, ByFlow, "final and failed"},
		{ChainBroadcast, ChainIncluded, ByFlow, "seen in a block"},
		{ChainBroadcast, ChainApproved, ByFlow, "proven impossible"},
		{ChainBroadcast, ChainCompleted, ByFlow, "final with the expected transfer"},
		{ChainBroadcast, ChainParked, ByFlow, "final and failed"},
		{ChainIncluded, ChainBroadcast, ByFlow, "the block was reorganised away"},
		{ChainIncluded, ChainApproved, ByFlow, "proven impossible after a reorganisation"},
		{ChainIncluded, ChainCompleted, ByFlow, "final with the expected transfer"},
		{ChainIncluded, ChainParked, ByFlow, "final and failed"},
		{ChainParked, ChainApproved, ByOperator, "try again"},
		{ChainParked, ChainCancelled, ByOperator, "give up, the money is returned another way"},
	},
	Final: []ChainPaymentStatus{ChainCompleted, ChainCancelled},
}

// ChainPurpose says what a chain payment is for, and so which object it belongs to.
type ChainPurpose string

// The purposes of chain payments.
const (
	ForOrder    ChainPurpose = "order"    // crypto that a customer bought
	ForRefund   ChainPurpose = "refund"   // crypto that goes back
	ForTransfer ChainPurpose = "transfer" // crypto that an owner sends
	ForGas      ChainPurpose = "gas"      // native coin for the fee of another chain payment, its object

	ForSweep   ChainPurpose = "sweep"   // crypto of an escrow address that goes to who bought it, or that the house keeps
	ForFunding ChainPurpose = "funding" // crypto that pays for an order out of a wallet in our custody

	ForNonceAccount ChainPurpose = "nonce_account" // opens the nonce account of a cold wallet, its object
	ForNonceAdvance ChainPurpose = "nonce_advance" // makes what was handed out, its object, impossible for ever
)

// Owed tells whether a payment of the purpose moves what is owed to somebody, and not the house's own coins.
func (p ChainPurpose) Owed() bool {
	switch p {
	case ForOrder, ForRefund, ForTransfer, ForSweep, ForFunding:
		return true
	case ForGas, ForNonceAccount, ForNonceAdvance:
	}
	return false
}

// ChainPayment is one approved payment on a blockchain. Its intent (who pays whom how much of what)
// never changes; the signer recomputes IntentHash and refuses a row whose intent was touched.
type ChainPayment struct {
	ID          uuid.UUID
	Purpose     ChainPurpose
	ObjectID    uuid.UUID // the order, refund … that it carries out
	N           int       // 1, or the number of the top-up for gas, and of the address that was tried for a refund
	Network     Network
	Amount      money.Amount
	WalletID    uuid.UUID // the sending wallet
	FromAddress string
	ToAddress   string
	// FeeWalletID is the wallet of the house that pays the network's fee, and FeePayer its address. Both
	// are empty where the sender pays.
	FeeWalletID uuid.UUID
	FeePayer    string
	HoldID      uuid.UUID // the reserved money that completion consumes; none for gas, which is the house's own
	IntentHash  string
	Status      ChainPaymentStatus
	Detail      string // what it waits for or why it parked, in one word
	TxID        string // of the transaction that completed it, or of the live one
	Block       uint64
	Fee         money.Amount // what the network took in all, in the native coin
	ApprovedBy  string       // "policy" or the approver's user id
	CreatedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time
	Version     int64
}

// Intent is the hash of everything about a payment that an approval covers. A payment whose fee another
// wallet pays has a form of its own, so that nobody can add or take away a fee payer later.
func (p ChainPayment) Intent() string {
	version := 1
	if p.FeeWalletID != uuid.Nil || p.FeePayer != "" {
		version = 2
	}
	h := sha256.New()
	fmt.Fprintf(h, "kivuko chain payment v%d\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n", version, p.ID, p.Purpose, p.ObjectID,
		p.Network, p.Amount.Asset(), p.Amount, p.WalletID, p.FromAddress, p.ToAddress)
	if version > 1 {
		fmt.Fprintf(h, "%s\n%s\n", p.FeeWalletID, p.FeePayer)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// FeeCustody is the wallet out of which the network takes its fee.
func (p ChainPayment) FeeCustody() uuid.UUID {
	if p.FeeWalletID != uuid.Nil {
		return p.FeeWalletID
	}
	return p.WalletID
}

// ChainAttemptStatus is the state of one signed transaction.
type ChainAttemptStatus string

// The states of a signed transaction.
const (
	TxSigned    ChainAttemptStatus = "signed"
	TxBroadcast ChainAttemptStatus = "broadcast"
	TxIncluded  ChainAttemptStatus = "included"
	TxSucceeded ChainAttemptStatus = "succeeded" // final
	TxFailed    ChainAttemptStatus = "failed"    // final
	TxExpired   ChainAttemptStatus = "expired"   // proven never to be included
	TxReplaced  ChainAttemptStatus = "replaced"  // another one with its number leads; either may still be included
)

// ChainAttemptMachine governs signed transactions. An expired one is proven never to be included, so
// nothing follows; an included one may be reorganised away until it is final. Of transactions with one
// sequence number a single one leads: it is offered, or is in a block. The others are replaced, and
// watched like it, until one of them is final and the others have expired by that.
var ChainAttemptMachine = Machine[ChainAttemptStatus]{
	Name: "chain_attempt", Initial: TxSigned,
	Transitions: []Transition[ChainAttemptStatus]{
		{TxSigned, TxBroadcast, ByFlow, "a node took it"},
		{TxSigned, TxIncluded, ByFlow, "seen in a block"},
		{TxSigned, TxSucceeded, ByFlow, "final with the expected transfer"},
		{TxSigned, TxFailed, ByFlow, "final and failed"},
		{TxSigned, TxExpired, ByFlow, "proven impossible"},
		{TxBroadcast, TxIncluded, ByFlow, "seen in a block"},
		{TxBroadcast, TxSucceeded, ByFlow, "final with the expected transfer"},
		{TxBroadcast, TxFailed, ByFlow, "final and failed"},
		{TxBroadcast, TxExpired, ByFlow, "proven impossible"},
		{TxIncluded, TxBroadcast, ByFlow, "the block was reorganised away"},
		{TxIncluded, TxSucceeded, ByFlow, "final with the expected transfer"},
		{TxIncluded, TxFailed, ByFlow, "final and failed"},
		{TxIncluded, TxExpired, ByFlow, "proven impossible after a reorganisation"},
		{TxSigned, TxReplaced, ByFlow, "outbid, or another with its number is in a block"},
		{TxBroadcast, TxReplaced, ByFlow, "outbid, or another with its number is in a block"},
		{TxIncluded, TxReplaced, ByFlow, "the block was reorganised away and a higher bid leads"},
		{TxReplaced, TxBroadcast, ByFlow, "the highest bid leads again after a reorganisation"},
		{TxReplaced, TxIncluded, ByFlow, "seen in a block"},
		{TxReplaced, TxSucceeded, ByFlow, "final with the expected transfer"},
		{TxReplaced, TxFailed, ByFlow, "final and failed"},
		{TxReplaced, TxExpired, ByFlow, "another one with its number is final"},
	},
	Final: []ChainAttemptStatus{TxSucceeded, TxFailed, TxExpired},
}

// Bid is what a transaction offers for a place in a block, per unit of gas and in the native coin
// (EIP-1559: the priority fee, and the most in all).
type Bid struct {
	Tip money.Amount
	Cap money.Amount
}

// IsZero tells a bid that was never made.
func (b Bid) IsZero() bool { return b == Bid{} }

// NonceLane is the sequence of a wallet's transactions on a network that numbers them. Numbers are taken
// in order, each by one payment and only together with signed bytes, so that there are neither gaps nor
// two payments with one number.
type NonceLane struct {
	WalletID uuid.UUID
	Next     uint64 // the number of the next payment
	// Foreign is set when a number of the lane was used by a transaction that is not ours: somebody else
	// has the key, and nothing is signed with it any more.
	Foreign bool
}

// ChainAttempt is one signed transaction of a payment. Its bytes are stored before they are first
// sent and are the only bytes ever sent for it. At most one attempt of a payment is alive, or several
// with the same sequence number, of which at most one can ever be included.
type ChainAttempt struct {
	ID        uuid.UUID
	PaymentID uuid.UUID
	Network   Network
	N         int // 1 for the first
	TxID      string
	Raw       []byte // the signed transaction in the network's encoding
	// ExpiresAt and LastValidHeight bound its life: zero where the network has no such rule. Nonce
	// is the sender's sequence number where the network has one.
	ExpiresAt       time.Time
	LastValidHeight uint64
	Lane            uuid.UUID // the wallet whose sequence Nonce is of; zero where the network has none
	Nonce           uint64
	RefBlock        string
	// NonceAccount is what a transaction lives by that has no end in time: it can be included as long as the
	// account's value is RefBlock, which it was by the final block NonceBlock. Both are empty
	// for other transactions.
	NonceAccount string
	NonceBlock   uint64
	Adopted      bool // found on the final chain: neither its bytes nor its number are known, and it is never offered
	Bid          Bid
	FeeLimit     money.Amount
	Status       ChainAttemptStatus
	Block        uint64
	BlockID      string
	Fee          money.Amount
	LastCode     string // the last answer of a node
	Broadcasts   int
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Alive tells whether the transaction may still move money.
func (a ChainAttempt) Alive() bool { return a.Leads() || a.Status == TxReplaced }

// Leads tells whether it is the live transaction of its payment that is offered or in a block.
func (a ChainAttempt) Leads() bool {
	return a.Status == TxSigned || a.Status == TxBroadcast || a.Status == TxIncluded
}
