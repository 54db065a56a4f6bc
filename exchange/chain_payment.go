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
	ChainApproved  ChainPaymentStatus = "approved"  // may be signed; it has no transaction
	ChainSigned    ChainPaymentStatus = "signed"    // signed bytes are stored, perhaps not sent yet
	ChainBroadcast ChainPaymentStatus = "broadcast" // a node accepted the bytes
	ChainIncluded  ChainPaymentStatus = "included"  // in a block that may still be reorganised away
	ChainCompleted ChainPaymentStatus = "completed" // final, with the expected transfer
	ChainParked    ChainPaymentStatus = "parked"    // waits for an officer; no transaction of it can still succeed
	ChainCancelled ChainPaymentStatus = "cancelled" // an officer gave it up while it was parked
)

// ChainPaymentMachine governs payments on a blockchain. A payment returns to approved only when the previous transaction is
// proven impossible, because two live transactions could both pay.
var ChainPaymentMachine = Machine[ChainPaymentStatus]{
	Name: "chain_payment", Initial: ChainApproved,
	Transitions: []Transition[ChainPaymentStatus]{
		{ChainApproved, ChainSigned, ByFlow, "signed bytes stored"},
		{ChainApproved, ChainParked, ByFlow, "no transaction can be built"},
		{ChainSigned, ChainBroadcast, ByFlow, "a node accepted it"},
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
		{ChainParked, ChainCancelled, ByOperator, "given up, and the money is returned another way"},
	},
	Final: []ChainPaymentStatus{ChainCompleted, ChainCancelled},
}

// ChainPurpose is what a chain payment is for. It determines the type of the object that it belongs to.
type ChainPurpose string

// The purposes of chain payments.
const (
	ForOrder    ChainPurpose = "order"    // crypto that a customer bought
	ForRefund   ChainPurpose = "refund"   // crypto that is returned
	ForTransfer ChainPurpose = "transfer" // crypto that its owner sends
	ForGas      ChainPurpose = "gas"      // native coin for the fee of another chain payment, which is its object

	ForSweep   ChainPurpose = "sweep"   // crypto from an escrow address to the vendor, or to the house
	ForFunding ChainPurpose = "funding" // crypto that funds an order from a wallet in our custody
	// Crypto that a merchant sells by withdrawing shillings, from its wallet to the treasury.
	ForWithdrawal ChainPurpose = "withdrawal"

	ForFeeSweep ChainPurpose = "fee_sweep" // earned fees from a wallet to the treasury

	ForSwapCollect ChainPurpose = "swap_collect" // the first leg of a swap, from its wallet to the treasury
	ForSwapPayout  ChainPurpose = "swap_payout"  // the second leg, from the treasury to the wallet
	ForSwapRefund  ChainPurpose = "swap_refund"  // what the first leg collected, back to the wallet

	ForProposal ChainPurpose = "proposal" // crypto that owners of a wallet of several owners send; their signatures authorise it

	ForNonceAccount ChainPurpose = "nonce_account" // opens the nonce account of a cold wallet, which is its object
	ForNonceAdvance ChainPurpose = "nonce_advance" // makes a handed-out transaction, which is its object, impossible

	ForMultisigOpen ChainPurpose = "multisig_open" // opens an account of several owners, which is its object
)

// ChainPurposes lists the purposes.
func ChainPurposes() []ChainPurpose {
	return []ChainPurpose{ForOrder, ForRefund, ForTransfer, ForGas, ForSweep, ForFunding, ForWithdrawal, ForFeeSweep, ForSwapCollect, ForSwapPayout, ForSwapRefund, ForProposal, ForNonceAccount, ForNonceAdvance, ForMultisigOpen}
}

// Owed reports whether a payment of the purpose carries out an object whose money is held for it, rather than being coins of the house
// that pay for other payments.
func (p ChainPurpose) Owed() bool {
	switch p {
	case ForOrder, ForRefund, ForTransfer, ForSweep, ForFunding, ForWithdrawal, ForFeeSweep, ForSwapCollect, ForSwapPayout, ForSwapRefund, ForProposal:
		return true
	case ForGas, ForNonceAccount, ForNonceAdvance, ForMultisigOpen:
	}
	return false
}

// ChainPayment is one approved payment on a blockchain. Its intent (sender, recipient, amount) never changes; the signer
// recomputes IntentHash and refuses a row whose intent was changed.
type ChainPayment struct {
	ID          uuid.UUID
	Purpose     ChainPurpose
	ObjectID    uuid.UUID // the order, refund or other object that it carries out
	N           int       // 1; for gas the number of the top-up, for a refund the number of the address that was tried, for a swap that of the try
	Network     Network
	Amount      money.Amount
	WalletID    uuid.UUID // the sending wallet
	FromAddress string
	ToAddress   string
	// FeeWalletID is the wallet of the house that pays the network's fee, and FeePayer its address. Both are empty when the
	// sender pays.
	FeeWalletID uuid.UUID
	FeePayer    string
	HoldID      uuid.UUID // the hold that completion captures; none for gas, which is the house's own
	IntentHash  string
	Status      ChainPaymentStatus
	Detail      string // what it waits for, or why it parked
	TxID        string // of the transaction that completed it, or of the live one
	Block       uint64
	Fee         money.Amount // the total of the network's fees, in the native coin
	ApprovedBy  string       // "policy" or the approver's user id
	CreatedAt   time.Time
	UpdatedAt   time.Time
	CompletedAt time.Time
	Version     int64
}

// Intent is the hash of everything about a payment that an approval covers. A payment with a separate fee payer uses another
// version, so that a fee payer can't be added or removed later.
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

// FeeCustody is the wallet that pays the network's fee.
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
	TxReplaced  ChainAttemptStatus = "replaced"  // another transaction with its number leads; either may still be included
)

// ChainAttemptMachine governs signed transactions. An expired one is proven never to be included, so nothing follows. An
// included one may be reorganised away until it is final. Of transactions with one sequence number exactly one leads: it is
// in a block or is being broadcast. The others are replaced. They stay watched until one of them is final, which makes the
// others expire.
var ChainAttemptMachine = Machine[ChainAttemptStatus]{
	Name: "chain_attempt", Initial: TxSigned,
	Transitions: []Transition[ChainAttemptStatus]{
		{TxSigned, TxBroadcast, ByFlow, "a node accepted it"},
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
		{TxSigned, TxReplaced, ByFlow, "replaced with a higher fee, or another with its nonce is in a block"},
		{TxBroadcast, TxReplaced, ByFlow, "replaced with a higher fee, or another with its nonce is in a block"},
		{TxIncluded, TxReplaced, ByFlow, "the block was reorganised away and a higher bid leads"},
		{TxReplaced, TxBroadcast, ByFlow, "the highest bid leads again after a reorganisation"},
		{TxReplaced, TxIncluded, ByFlow, "seen in a block"},
		{TxReplaced, TxSucceeded, ByFlow, "final with the expected transfer"},
		{TxReplaced, TxFailed, ByFlow, "final and failed"},
		{TxReplaced, TxExpired, ByFlow, "another one with its nonce is final"},
	},
	Final: []ChainAttemptStatus{TxSucceeded, TxFailed, TxExpired},
}

// Bid is what a transaction offers for a place in a block, per unit of gas and in the native coin
// (EIP-1559: the priority fee, and the most in all).
type Bid struct {
	Tip money.Amount
	Cap money.Amount
}

// IsZero reports whether b is no bid.
func (b Bid) IsZero() bool { return b == Bid{} }

// NonceSequence is the sequence of a wallet's transactions on a network that numbers them. A payment takes the next number
// only together with signed bytes, so that there are no gaps and no two payments with one number.
type NonceSequence struct {
	WalletID uuid.UUID
	Next     uint64 // the number of the next payment
	// Foreign is set when a transaction that is not ours used a number of the sequence: the key has leaked, and nothing is
	// signed with it any more.
	Foreign bool
}

// ChainAttempt is one signed transaction of a payment. Its bytes are stored before they are first sent, and no other bytes
// are ever sent for it. At most one attempt of a payment is alive, or several with the same sequence number, of which at
// most one can be included.
type ChainAttempt struct {
	ID        uuid.UUID
	PaymentID uuid.UUID
	Network   Network
	N         int // 1 for the first
	TxID      string
	Raw       []byte // the signed transaction in the network's encoding
	// ExpiresAt and LastValidHeight bound its life; zero where the network has no such rule. Nonce is the sender's sequence
	// number where the network has one.
	ExpiresAt       time.Time
	LastValidHeight uint64
	NonceWallet     uuid.UUID // the wallet that Nonce belongs to; zero where the network has no nonces
	Nonce           uint64
	RefBlock        string
	// NonceAccount keeps a transaction without an end in time valid: for as long as the account's value is RefBlock. It was
	// that by the final block NonceBlock. Both are empty for other transactions.
	NonceAccount string
	NonceBlock   uint64
	Adopted      bool // found on the final chain: its bytes and number are not known, and it is never sent
	Bid          Bid
	FeeLimit     money.Amount
	Status       ChainAttemptStatus
	Block        uint64
	BlockID      string
	Fee          money.Amount
	LastCode     string // the last response of a node
	Broadcasts   int
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Alive reports whether the transaction may still move money.
func (a ChainAttempt) Alive() bool { return a.Leads() || a.Status == TxReplaced }

// In reports whether it is recorded in the block with the given id.
func (a ChainAttempt) In(blockID string) bool { return a.Status == TxIncluded && a.BlockID == blockID }

// Leads reports whether it is the live transaction of its payment that is broadcast or in a block.
func (a ChainAttempt) Leads() bool {
	return a.Status == TxSigned || a.Status == TxBroadcast || a.Status == TxIncluded
}
