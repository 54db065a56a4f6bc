package chain

import (
	"context"
	"slices"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Multisig is a client of a network on which one account can need the signatures of several owners, enforced by the chain.
//
// What the owners sign is prepared once, as a Joint. It names everything that the chain will do, so signatures collected for
// it over days can be used for nothing else. When enough owners have signed, an Execution puts their signatures into one
// transaction, which is signed by whoever pays for it, stored, broadcast and judged as any other.
type Multisig interface {
	Client
	// Quorum reads who controls an account, from the newest final block and from the newest. ReasonForeign when neither of
	// them has an account of several owners at the address that this driver understands, with the rule that the final one
	// breaks (a module, a guard, a foreign implementation, a permission that allows too much).
	Quorum(ctx context.Context, address string) (Quorum, error)
	// PrepareJoint builds what the owners sign, and refuses what could not succeed now. The account's quorum must be the
	// draft's, at the newest block.
	PrepareJoint(ctx context.Context, d JointDraft) (Joint, error)
	// CheckJoint rebuilds a joint transaction from its parts, without a network, and returns an error unless the bytes say
	// just that. A signer and whoever shows it in words call this first.
	CheckJoint(j Joint) error
	// Signature checks one owner's signature, made by our own key store or by another tool, without a network. It returns the
	// owner, and the signature in its canonical form. ReasonForeign names the check that failed: its length, its values, a
	// key that is no owner's.
	Signature(j Joint, signature []byte) (OwnerSignature, error)
	// PrepareExecution builds the transaction that carries out a joint one with these signatures, after simulating it. The
	// account's quorum at the newest block must still accept them. A replacement with a higher bid is built whatever the account
	// accepts by now: it uses up a number of the payer that blocks others.
	PrepareExecution(ctx context.Context, j Joint, signatures []OwnerSignature, d ExecutionDraft) (Execution, error)
	// SignExecution completes it: with the key of the draft's payer where the network has one, else with no key. Before
	// signing, the bytes are decoded and must match the joint transaction and its signatures exactly.
	SignExecution(x Execution, payer ...Key) (Signed, error)
	// Outcome reports what became of a joint transaction, whoever sent it, from a final block not older than the one at which
	// it was prepared. The ids of its executions that the caller has stored, if any, are looked for first: where strangers can
	// hide a transaction among others, they are found all the same. An id of another transaction changes nothing.
	Outcome(ctx context.Context, j Joint, executions ...string) (JointOutcome, error)
}

// Opener is a client of a network on which a transaction of one key opens an account of several owners, at an address that is
// known before. Prepare builds it from Draft.Owners.
type Opener interface {
	Client
	// MultisigAccount is the address of the account that an authority opens with a seed for a quorum. The address depends on
	// all three, so it can be found again without a record, and leads to no other owners.
	MultisigAccount(authority, seed string, q OwnersChange) (string, error)
	// MultisigRent is what the account must hold.
	MultisigRent(ctx context.Context) (money.Amount, error)
}

// Giver is a client of a network that has no accounts that are opened for several owners. There an account begins with one key of ours, which gives
// it to its owners by one joint transaction and can do nothing more after that.
type Giver interface {
	Multisig
	// GivingCost is what the account must hold for that transaction, and for nothing else. It refuses owners to whom no account can be given.
	GivingCost(ctx context.Context, account string, q OwnersChange) (money.Amount, error)
}

// GivingDraft is the joint transaction that gives an account to its owners, while its own key is its only owner.
func GivingDraft(a exchange.MultisigAccount) JointDraft {
	_, q := OpeningOf(a)
	return JointDraft{Account: a.Address, Owners: &q, Quorum: Quorum{Owners: []Owner{{Address: a.Address, Weight: 1}}, Threshold: 1}, Life: GivingLife}
}

// GivingLife is how long that transaction may be executed. No other one is signed before it has expired.
const GivingLife = 10 * time.Minute

// AllowanceReader is a client of a network that can say who may move an account's tokens without its owners. A client without it does
// not know: TRON's nodes list no events of an account.
type AllowanceReader interface {
	// Allowances reads those that are left at the newest final block, of the tokens of the configuration.
	Allowances(ctx context.Context, account string) ([]Allowance, error)
}

// Allowance is the right of another address to an account's tokens.
type Allowance struct {
	Asset   money.Asset
	Spender string
	Right   string // what it is called on the network
}

// OpeningOf is the seed and the quorum with which an account of several owners is opened.
func OpeningOf(a exchange.MultisigAccount) (seed string, q OwnersChange) {
	q.Threshold = uint32(a.Threshold)
	for _, o := range a.Owners {
		q.Owners = append(q.Owners, Owner{Address: o.Address, Weight: uint32(o.Weight)})
	}
	if a.Kind == exchange.MultisigTron {
		q.Control = &OwnersChange{Owners: q.Owners, Threshold: uint32(a.Controlling())}
	}
	return a.ID.String(), q
}

// Owner is one of the keys that control an account.
type Owner struct {
	Address string `json:"address"` // canonical
	Weight  uint32 `json:"weight"`  // 1 where the network has no weights
}

// Quorum is who controls an account.
type Quorum struct {
	Owners    []Owner `json:"owners"`    // ordered by address
	Threshold uint32  `json:"threshold"` // the sum of weights that suffices
	// Control is the quorum that may change the owners, where it is another (TRON: the owner permission). Nil: the same.
	Control *Quorum `json:"control,omitempty"`
	// Permission is the number of the permission on TRON whose quorum this is.
	Permission int32 `json:"permission,omitempty"`
	// Sequence is the next number of the account, on a network whose accounts number their joint transactions (a Safe's nonce).
	Sequence uint64 `json:"sequence,omitempty"`
	// Head holds the blocks at which it was read.
	Head Head `json:"head,omitzero"`
	// Moving is set while the newest block and the newest final one differ about owners or threshold, or about whether there is
	// such an account at all.
	Moving bool `json:"moving,omitempty"`
}

// Joined is what the newest final block and the newest one say together. What only one of them refuses is moving: either the refusal is
// not final, or it is about to end. Of two that both accept, it returns the final one, which the caller compares.
func Joined(final Quorum, finalErr error, latest Quorum, latestErr error) (Quorum, error) {
	for _, err := range []error{finalErr, latestErr} {
		if err != nil && ReasonOf(err) != ReasonForeign {
			return Quorum{}, err
		}
	}
	was, is := finalErr == nil, latestErr == nil
	if !was && !is {
		return Quorum{}, finalErr
	}
	if !was {
		final = latest
	}
	final.Moving = !was || !is
	return final, nil
}

// JointDraft is the input of PrepareJoint. It has a transfer or an owners' change, or neither: that cancels what else is at
// its number.
type JointDraft struct {
	Account  string        `json:"account"`
	Transfer *Transfer     `json:"transfer,omitempty"` // From is Account
	Owners   *OwnersChange `json:"owners,omitempty"`
	// Quorum is what was read and approved: the transaction is built for these owners.
	Quorum Quorum `json:"quorum"`
	// Sequence is the joint transaction's number, on a network that has them.
	Sequence uint64 `json:"sequence,omitempty"`
	// Signers are the owners whose signatures the transaction needs, in the order of their addresses, on a network whose
	// messages name their signers (Solana): as many as the threshold. Empty where any owners may sign. When another owner
	// signs in place of one of them, a joint transaction of that choice is prepared at the same value of the nonce account.
	// Of all that are prepared at one value, the network executes at most one.
	Signers []string `json:"signers,omitempty"`
	// FeePayer and NonceAccount are as in Draft, on a sponsored network.
	FeePayer     string `json:"fee_payer,omitempty"`
	NonceAccount string `json:"nonce_account,omitempty"`
	// Life is how long the signatures are worth something, where the network limits that; zero: as long as it allows.
	Life time.Duration `json:"life,omitempty"`
}

// OwnersChange is the quorum that an account shall have.
type OwnersChange struct {
	Owners    []Owner `json:"owners"`
	Threshold uint32  `json:"threshold"`
	// Control is the quorum of the owner permission on TRON.
	Control *OwnersChange `json:"control,omitempty"`
}

// Equal reports whether two changes give an account the same quorum; nil is none.
func (c *OwnersChange) Equal(o *OwnersChange) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.Threshold == o.Threshold && slices.Equal(c.Owners, o.Owners) && c.Control.Equal(o.Control)
}

// Joint is a transaction that several owners sign. Encode gives the form in which it is stored.
type Joint struct {
	JointDraft
	// Digest is what an owner's key signs: 32 bytes for secp256k1, the message itself on Solana.
	Digest []byte `json:"digest"`
	// Body is the network's encoding: the SafeTx as EIP-712 typed data (JSON), TRON's raw_data, Solana's message.
	Body []byte `json:"body"`
	// ID names it for ever: the SafeTx hash or the transaction id on TRON, in the network's form. On Solana the hash of the
	// message, because the transaction's id is the fee payer's signature.
	ID string `json:"id"`
	// ExpiresAt is when the chain stops accepting it; zero where it never does.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	RefBlock  string    `json:"ref_block,omitempty"` // the block it refers to, or the value of its nonce account
	// Block is the final block at which it was prepared.
	Block    Block        `json:"block"`
	FeeLimit money.Amount `json:"fee_limit"` // the most that the account itself can pay for it, in the native coin
}

// OwnerSignature is the signature of one owner.
type OwnerSignature struct {
	Owner     string
	Signature []byte
}

// ExecutionDraft is who sends an execution.
type ExecutionDraft struct {
	// Payer sends it and pays the fee, on a network where that isn't the account itself; Nonce and Bump are its number and the
	// bid that this one replaces, see Draft.
	Payer string
	Nonce uint64
	Bump  exchange.Bid
	// Limit is the FeeLimit of the one that this one replaces: with Bump it says how much gas that had.
	Limit money.Amount
}

// Execution is the transaction that carries out a joint one.
type Execution struct {
	Unsigned
	Joint      Joint
	Signatures []OwnerSignature
}

// JointState is what became of a joint transaction.
type JointState string

// The states. Only those of final blocks are proof.
const (
	JointOpen       JointState = "open"       // it can still be executed
	JointIncluded   JointState = "included"   // in a block that may be undone
	JointExecuted   JointState = "executed"   // final, and it did what it says
	JointFailed     JointState = "failed"     // final, did not do what it says, and can never be executed; Location has what moved
	JointSuperseded JointState = "superseded" // another transaction took its number
	JointExpired    JointState = "expired"    // no block can include it any more
)

// JointOutcome is a state with its evidence.
type JointOutcome struct {
	State JointState
	// TxID is the transaction that executed it, or that took its number.
	TxID     string
	Location Location
}
