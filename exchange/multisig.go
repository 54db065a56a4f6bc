package exchange

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// MultisigKind is what enforces the quorum of an account of several owners. It follows from the network.
type MultisigKind string

// The kinds.
const (
	MultisigSafe MultisigKind = "safe" // Ethereum: a Safe 1.4.1
	MultisigTron MultisigKind = "tron" // the permissions of a TRON account
	MultisigSPL  MultisigKind = "spl"  // Solana: a multisig of the Token program
)

// Limits of accounts of several owners. Each is part of the contract.
const (
	MaxMultisigApprovals = 10
	MaxMultisigRules     = 10
	MaxMultisigName      = 200 // characters of a name or a label
	MaxMultisigWeight    = 1000
)

// MaxOwners is how many owners an account of the kind can have.
func (k MultisigKind) MaxOwners() int {
	switch k {
	case MultisigSafe:
		return 20
	case MultisigTron:
		return 5
	case MultisigSPL:
		return 11
	}
	return 0
}

// MaxThreshold is how many owners can sign one transaction; on TRON the threshold is a sum of weights.
func (k MultisigKind) MaxThreshold() int {
	if k == MultisigSPL {
		return 6 // more do not fit into a transaction
	}
	return k.MaxOwners()
}

// SpendsCoin reports whether the owners can move the network's coin. In an account of the Token program it stays for ever.
func (k MultisigKind) SpendsCoin() bool { return k != MultisigSPL }

// MultisigKindOn is the kind of a network.
func MultisigKindOn(n Network) MultisigKind {
	return map[Network]MultisigKind{Ethereum: MultisigSafe, Tron: MultisigTron, Solana: MultisigSPL}[n]
}

// MultisigKinds lists the kinds in a fixed order.
func MultisigKinds() []MultisigKind { return []MultisigKind{MultisigSafe, MultisigTron, MultisigSPL} }

// MultisigCustody is who holds the owners' keys.
type MultisigCustody string

// The custodies.
const (
	MultisigSelf     MultisigCustody = "self"     // owners hold their keys, or some of them do
	MultisigProvider MultisigCustody = "provider" // each owner is an officer, whose key is in our key store
)

// MultisigCustodies lists the custodies in a fixed order.
func MultisigCustodies() []MultisigCustody { return []MultisigCustody{MultisigSelf, MultisigProvider} }

// MultisigStatus is how far an account of several owners is.
type MultisigStatus string

// The states. Only an active account is a wallet.
const (
	MultisigPreparing MultisigStatus = "preparing" // two officers agreed; keys are made, or the account on the chain is read
	MultisigOpening   MultisigStatus = "opening"   // a payment opens it on the chain, and on TRON its first key is replaced by its owners
	MultisigActive    MultisigStatus = "active"    // its owners and threshold on the final chain are those that were agreed
	MultisigDiffers   MultisigStatus = "differs"   // they are not any more, so nothing leaves it
	MultisigRefused   MultisigStatus = "refused"   // the account on the chain is another one than was agreed, or could not be opened
)

// MultisigMachine governs accounts of several owners.
var MultisigMachine = Machine[MultisigStatus]{
	Name: "multisig_account", Initial: MultisigPreparing,
	Transitions: []Transition[MultisigStatus]{
		{MultisigPreparing, MultisigOpening, ByFlow, "its owners' keys exist, and the payment that opens it is approved"},
		{MultisigPreparing, MultisigActive, ByFlow, "an adopted account has the agreed owners and threshold at a final block"},
		{MultisigPreparing, MultisigRefused, ByFlow, "an adopted account is another one than was agreed"},
		{MultisigPreparing, MultisigRefused, ByOperator, "given up before a payment opens it"},
		{MultisigOpening, MultisigActive, ByFlow, "the opened account has the agreed owners and threshold at a final block"},
		{MultisigOpening, MultisigRefused, ByOperator, "given up, when no transaction that opens it can be alive"},
		{MultisigActive, MultisigDiffers, ByFlow, "its owners or threshold on the final chain changed"},
		{MultisigDiffers, MultisigActive, ByFlow, "they are the agreed ones again"},
	},
	Final: []MultisigStatus{MultisigRefused},
}

// MultisigOwner is one of the keys that control an account.
type MultisigOwner struct {
	N       int       // from 1, in the order of the request
	Address string    // canonical; empty until the key of an owner whose key we hold is made
	UserID  uuid.UUID // the officer who signs with it; zero for an owner outside
	Weight  int       // 1 where the network has no weights
	Label   string
	Held    bool // its key is in our key store
}

// MultisigRule raises the number of officers who approve a payment above a value.
type MultisigRule struct {
	Above     money.Amount // in shillings
	Approvals int
}

// MultisigPolicy is how many officers approve what leaves an account, besides the rules of all that leaves.
type MultisigPolicy struct {
	Version   int
	Approvals int
	Rules     []MultisigRule // ordered by value; each asks for more officers than the one before
}

// Needed is how many officers approve a payment of a value in shillings.
func (p MultisigPolicy) Needed(value money.Amount) int {
	needed := p.Approvals
	for _, r := range p.Rules {
		if value.Cmp(r.Above) > 0 {
			needed = r.Approvals
		}
	}
	return needed
}

// MultisigRequest asks for a treasury wallet of several owners: for one that exists at Address, or for a new one.
type MultisigRequest struct {
	ID         uuid.UUID // of the account and of its wallet
	Network    Network
	Asset      money.Asset // the primary stablecoin, a label only
	Name       string
	Label      string
	MerchantID uuid.UUID // the master merchant with whom it is shared; zero for none
	Custody    MultisigCustody
	Address    string // of an account that is adopted; empty for a new one
	Threshold  int    // the sum of weights that suffices
	Owners     []MultisigOwner
	Policy     MultisigPolicy
}

// HandoverStatus is how far the transaction is that gives an account to its owners, on TRON.
type HandoverStatus string

// The states.
const (
	HandoverSigned   HandoverStatus = "signed"   // the chain may execute it, or has
	HandoverExecuted HandoverStatus = "executed" // a final block has it: the key that signed it can do nothing any more
	HandoverExpired  HandoverStatus = "expired"  // no block can have it any more
)

// HandoverMachine governs the transactions that give accounts to their owners.
var HandoverMachine = Machine[HandoverStatus]{
	Name: "multisig_handover", Initial: HandoverSigned,
	Transitions: []Transition[HandoverStatus]{
		{HandoverSigned, HandoverExecuted, ByFlow, "it is in a final block and did what it says"},
		{HandoverSigned, HandoverExpired, ByFlow, "it is in no block, and the newest final block is later than its last moment"},
	},
	Final: []HandoverStatus{HandoverExecuted, HandoverExpired},
}

// MultisigHandover is a transaction by which the key that an account on TRON began with gives the account to its owners.
type MultisigHandover struct {
	ID        uuid.UUID
	AccountID uuid.UUID
	N         int // of the account, from 1
	TxID      string
	Joint     json.RawMessage // the whole joint transaction, as the driver needs it again
	Body      []byte          // what is signed
	Raw       []byte          // with the signature, as it is sent
	ExpiresAt time.Time
	Status    HandoverStatus
	Evidence  string // why it is over
	CreatedAt time.Time
	UpdatedAt time.Time
}

// HandoverSigning is what the signer of a handover needs: the account as it was agreed, the key that it begins with, the last handover, if there is
// one, and what withholds a signature now.
type HandoverSigning struct {
	Account MultisigAccount
	Key     SealedKey
	Last    MultisigHandover
	Hold    SigningHold
}

// OpeningKeyPurpose is the purpose with which the key is sealed that an account on TRON begins with, together with the account's id in place of a
// wallet's: it opens for no wallet and for no owner.
const OpeningKeyPurpose = "opening"

// MostFundings is how many payments may bring what an account on TRON needs to be given to its owners. A second one is needed when the network's fees
// rise after the first.
const MostFundings = 3

// MultisigAccount is an account of several owners, of the treasury.
type MultisigAccount struct {
	MultisigRequest
	Kind             MultisigKind
	ChangeID         uuid.UUID // by which two officers agreed to it
	RequestedBy      uuid.UUID
	Adopted          bool
	ControlThreshold int    // of changes of the owners, on TRON; zero until it is known, and elsewhere
	OpeningAddress   string // of the key that it begins with, on TRON; empty while there is none, and elsewhere
	Status           MultisigStatus
	StatusDetail     string
	PaymentID        uuid.UUID // that opens it, the last one; zero for none
	CheckedBlock     uint64    // the final block at which its owners were read last; zero before
	CheckedAt        time.Time
	CreatedAt        time.Time
	UpdatedAt        time.Time
	Version          int64
}

// MultisigQuorum is what the chain says about an account at a final block.
type MultisigQuorum struct {
	Address          string
	Owners           []MultisigOwner // address and weight only, ordered by address
	Threshold        int
	ControlThreshold int
	Block            uint64
	BlockID          string
	// Foreign is why the account is none of several owners that we use; the owners and thresholds are then unknown.
	Foreign string
}

// Sum is the weight of all owners together.
func (r MultisigRequest) Sum() int {
	sum := 0
	for _, o := range r.Owners {
		sum += o.Weight
	}
	return sum
}

// Controlling is the sum of weights that may change the owners of an account that we open on TRON: one more than for payments, or all of them.
func (r MultisigRequest) Controlling() int { return min(r.Threshold+1, r.Sum()) }

// Given reports whether the account begins with a key of ours, which gives it to its owners.
func (a MultisigAccount) Given() bool { return a.Kind == MultisigTron && !a.Adopted }

// OwnerKeyPurpose is the purpose with which the key of the n-th owner is sealed, together with the account's id in place of a wallet's:
// it opens for no other owner and for no wallet.
func OwnerKeyPurpose(n int) string { return fmt.Sprintf("owner-%d", n) }

// Difference says in what way the account on the chain is not the one that was agreed; empty when they agree. The owners who may change the
// owners (on TRON) are agreed owners with the same weight, and need at least as much weight together as those who pay.
func (a MultisigAccount) Difference(q MultisigQuorum) string {
	if q.Foreign != "" {
		return q.Foreign
	}
	agreed := map[string]int{}
	for _, o := range a.Owners {
		agreed[a.Network.Compared(o.Address)] = o.Weight
	}
	if a.Network.Compared(q.Address) != a.Network.Compared(a.Address) {
		return fmt.Sprintf("the account is %s, not %s", q.Address, a.Address)
	}
	for _, o := range q.Owners {
		weight, known := agreed[a.Network.Compared(o.Address)]
		if !known {
			return fmt.Sprintf("%s is an owner and was not agreed", o.Address)
		}
		if weight != o.Weight {
			return fmt.Sprintf("the owner %s has the weight %d, not %d", o.Address, o.Weight, weight)
		}
		delete(agreed, a.Network.Compared(o.Address))
	}
	for _, o := range a.Owners {
		if _, missing := agreed[a.Network.Compared(o.Address)]; missing {
			return fmt.Sprintf("%s is no owner", o.Address)
		}
	}
	switch {
	case q.Threshold != a.Threshold:
		return fmt.Sprintf("the threshold is %d, not %d", q.Threshold, a.Threshold)
	case a.Kind == MultisigTron && q.ControlThreshold < a.Threshold:
		return fmt.Sprintf("owners with the weight %d can change the owners, and payments need %d", q.ControlThreshold, a.Threshold)
	case a.ControlThreshold != 0 && q.ControlThreshold != a.ControlThreshold:
		return fmt.Sprintf("changes of the owners need the weight %d, not %d", q.ControlThreshold, a.ControlThreshold)
	}
	return ""
}
