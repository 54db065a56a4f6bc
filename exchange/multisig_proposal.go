package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// Limits of proposals. Each is part of the contract.
const (
	MaxOpenProposals     = 50                 // of one wallet that have not ended
	MaxProposalReference = 200                // characters
	ProposalLife         = 7 * 24 * time.Hour // without its execution
	// MaxPayloads is how many payloads a proposal may have in its life, so that what owners may sign stays what people can look through, whatever
	// a worker does. On TRON one follows about each day, on Solana there are at most ten choices of owners at a value of the nonce account.
	// A proposal that needs more is cancelled, or expires: none of them can be executed by then, so that its money is free.
	MaxPayloads = 100
)

// ProposalKind is what a proposal does.
type ProposalKind string

// The kinds. Only a payment moves something.
const (
	ProposePayment ProposalKind = "payment"
	ProposeOwners  ProposalKind = "owners" // other owners, weights or thresholds
	ProposeCancel  ProposalKind = "cancel" // another transaction of a Safe with the number of a proposal's payload, so that this can never be executed
)

// ProposalKinds lists the kinds in a fixed order.
func ProposalKinds() []ProposalKind {
	return []ProposalKind{ProposePayment, ProposeOwners, ProposeCancel}
}

// Moves reports whether a proposal of the kind moves money.
func (k ProposalKind) Moves() bool { return k != ProposeOwners && k != ProposeCancel }

// Proposal is what the owners of a wallet of several owners are to sign: a payment, other owners, or the end of another proposal. Officers
// approve the first two; then owners sign what the chain will do, and enough of their signatures are sent as one transaction. It owns one
// chain payment, which moves nothing where the proposal does not: its amount is zero of the native coin, to the account itself.
type Proposal struct {
	ID            uuid.UUID
	IntentID      uuid.UUID
	Kind          ProposalKind
	ProposerID    uuid.UUID
	MerchantID    uuid.UUID // with whom the wallet is shared; zero for none
	WalletID      uuid.UUID // also the id of the account of several owners
	Network       Network
	Address       string // of the wallet
	Amount        money.Amount
	Destination   string
	ToWalletID    uuid.UUID // the wallet of ours at the destination; zero for an address outside
	Reference     string    // of the proposer; it stays here and does not reach the chain
	Value         money.Amount
	Rate          decimal.Decimal // of Value, the house's valuation; it is not a price
	PolicyVersion int             // of the wallet's policy, which says how many officers approve
	PolicyNeeded  int             // officers by that policy; the rule of all that leaves may need more
	Threshold     int             // the sum of owners' weights that suffices
	Change        string          // of the owners, see OwnersChange; empty for other kinds
	After         string          // the same, with the addresses of the keys that were made for it
	Supersedes    uuid.UUID       // the proposal that a cancel makes impossible; zero for other kinds
	SignableAt    time.Time       // when the pause after the last approval of a change of the owners is over; zero before that approval
	Digest        string          // see Intent
	Status        ProposalStatus
	StatusDetail  string
	Ending        ProposalStatus // the end that is wanted, as long as a payload could still be executed; empty for none
	EndingDetail  string         // its status detail by then
	HoldID        uuid.UUID
	PayloadID     uuid.UUID // the payload that we execute, or executed
	PaymentID     uuid.UUID // the chain payment, from signing on
	ExecutedBy    uuid.UUID // who had our transaction sent; zero when another tool sent it
	TxHash        string    // of the transaction that executed it, that superseded it, or of ours that is alive
	CreatedAt     time.Time
	ExpiresAt     time.Time
	UpdatedAt     time.Time
	CompletedAt   time.Time // when its execution was final
	Version       int64
}

// Over reports whether the proposal has ended.
func (p Proposal) Over() bool { return ProposalMachine.Terminal(p.Status) }

// Sent reports whether a transaction of ours with the owners' signatures may be on its way.
func (p Proposal) Sent() bool {
	return p.Status == ProposalBroadcasting || p.Status == ProposalConfirming
}

// Standing says where the proposal is, for messages.
func (p Proposal) Standing() string {
	if p.Ending != "" {
		return string(p.Status) + " and is to end as " + string(p.Ending)
	}
	return string(p.Status)
}

// Intent is the hash of everything about a proposal that an approval covers. It never changes.
func (p Proposal) Intent() string {
	h := sha256.New()
	change, err := OwnersChangeOf(p.Change)
	if err != nil {
		return "" // no digest is equal to it
	}
	fmt.Fprintf(h, "kivuko multisig proposal v1\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%d\n%s\n%s\n%s\n", p.ID, p.Kind, p.ProposerID, p.Network, p.WalletID, p.Address,
		p.Amount.Asset(), p.Amount, p.Destination, p.PolicyVersion, hex.EncodeToString([]byte(p.Reference)), p.Supersedes, hex.EncodeToString([]byte(change.Text())))
	return hex.EncodeToString(h.Sum(nil))
}

// ProposalStatus is the state of a proposal.
type ProposalStatus string

// The states of a proposal.
const (
	ProposalProposed     ProposalStatus = "proposed"     // stored, its amount held
	ProposalApproving    ProposalStatus = "approving"    // officers must approve it, or its recipient is screened, or its payload is prepared
	ProposalSigning      ProposalStatus = "signing"      // there is a payload, which owners sign
	ProposalReady        ProposalStatus = "ready"        // enough owners have signed one payload
	ProposalBroadcasting ProposalStatus = "broadcasting" // our transaction with their signatures is stored; not in a block as far as is known
	ProposalConfirming   ProposalStatus = "confirming"   // in a block, not final
	ProposalExecuted     ProposalStatus = "executed"     // final, whoever sent it
	ProposalRejected     ProposalStatus = "rejected"     // by an admin, by too many officers, or by the screening
	ProposalCancelled    ProposalStatus = "cancelled"
	ProposalExpired      ProposalStatus = "expired"
	ProposalSuperseded   ProposalStatus = "superseded" // another transaction of the account took its number, so that it can never be executed
	ProposalFailed       ProposalStatus = "failed"     // its transaction is final, moved nothing, and can never be executed again
)

// ProposalMachine governs proposals. Signatures are authority: once there is a payload, a proposal only ends when the chain proves that
// no payload of it can be executed any more. Database triggers enforce that, and that the signatures support the status.
var ProposalMachine = Machine[ProposalStatus]{
	Name: "multisig_proposal", Initial: ProposalProposed,
	Transitions: []Transition[ProposalStatus]{
		{ProposalProposed, ProposalApproving, ByFlow, "its flow has it"},
		{ProposalProposed, ProposalCancelled, BySender, "nothing is signed"},
		{ProposalApproving, ProposalSigning, ByFlow, "its release has passed, its recipient is cleared, and its payload is stored"},
		{ProposalApproving, ProposalRejected, ByOfficer, "an admin rejected it, or too few officers are left who could approve it"},
		{ProposalApproving, ProposalRejected, ByFlow, "the screening is a hit"},
		{ProposalApproving, ProposalCancelled, BySender, "no payload of it can be executed"},
		{ProposalApproving, ProposalExpired, ByFlow, "seven days are over, and no payload of it can be executed"},
		{ProposalApproving, ProposalSuperseded, ByFlow, "what it was to make impossible has ended"},
		{ProposalSigning, ProposalReady, ByFlow, "enough owners have signed one payload"},
		{ProposalSigning, ProposalApproving, ByFlow, "its payload is proven impossible: approvals stay, signatures are void"},
		{ProposalSigning, ProposalExecuted, ByFlow, "another tool executed it, final"},
		{ProposalSigning, ProposalSuperseded, ByFlow, "another transaction took its number, final"},
		{ProposalSigning, ProposalFailed, ByFlow, "another tool's transaction of it is final and moved nothing"},
		{ProposalSigning, ProposalRejected, ByOfficer, "its payload is proven impossible"},
		{ProposalSigning, ProposalCancelled, BySender, "its payload is proven impossible"},
		{ProposalSigning, ProposalExpired, ByFlow, "seven days are over, and its payload is proven impossible"},
		{ProposalReady, ProposalSigning, ByFlow, "another payload is signed instead"},
		{ProposalReady, ProposalApproving, ByFlow, "its payload is proven impossible: approvals stay, signatures are void"},
		{ProposalReady, ProposalBroadcasting, ByOfficer, "our transaction with the signatures is stored"},
		{ProposalReady, ProposalExecuted, ByFlow, "another tool executed it, final"},
		{ProposalReady, ProposalSuperseded, ByFlow, "another transaction took its number, final"},
		{ProposalReady, ProposalFailed, ByFlow, "another tool's transaction of it is final and moved nothing"},
		{ProposalReady, ProposalRejected, ByOfficer, "its payload is proven impossible"},
		{ProposalReady, ProposalCancelled, BySender, "its payload is proven impossible"},
		{ProposalReady, ProposalExpired, ByFlow, "seven days are over, and its payload is proven impossible"},
		{ProposalBroadcasting, ProposalConfirming, ByFlow, "seen in a block"},
		{ProposalBroadcasting, ProposalReady, ByFlow, "our transaction is proven impossible, and the payload is not"},
		{ProposalBroadcasting, ProposalSigning, ByFlow, "our transaction is proven impossible, and owners who signed the payload have left"},
		{ProposalBroadcasting, ProposalExecuted, ByFlow, "final before it was seen pending"},
		{ProposalBroadcasting, ProposalFailed, ByFlow, "its transaction is final and moved nothing"},
		{ProposalBroadcasting, ProposalSuperseded, ByFlow, "another transaction took its number, final"},
		{ProposalConfirming, ProposalBroadcasting, ByFlow, "reorganised away"},
		{ProposalConfirming, ProposalReady, ByFlow, "our transaction is proven impossible, and the payload is not"},
		{ProposalConfirming, ProposalSigning, ByFlow, "our transaction is proven impossible, and owners who signed the payload have left"},
		{ProposalConfirming, ProposalExecuted, ByFlow, "final with the expected transfer"},
		{ProposalConfirming, ProposalFailed, ByFlow, "its transaction is final and moved nothing"},
		{ProposalConfirming, ProposalSuperseded, ByFlow, "another transaction took its number, final"},
	},
	Final: []ProposalStatus{ProposalExecuted, ProposalRejected, ProposalCancelled, ProposalExpired, ProposalSuperseded, ProposalFailed},
}

// proposalEnds are the ends of proposals that move nothing.
func proposalEnds() []ProposalStatus {
	return slices.DeleteFunc(slices.Clone(ProposalMachine.Final), func(s ProposalStatus) bool { return s == ProposalExecuted })
}

// Signable reports whether there is a payload that owners may sign.
func (s ProposalStatus) Signable() bool { return s == ProposalSigning || s == ProposalReady }

// The values of a proposal's status detail that other objects don't have.
const (
	WaitPause       = "pause"             // time passes between the last approval of a change of the owners and their signing
	WaitPayload     = "payload"           // what owners sign is being prepared
	WaitOwners      = "owners"            // owners must sign
	WaitAccount     = "account_differs"   // the owners of the wallet on the chain are not those that were agreed
	WaitImpossible  = "until_impossible"  // it is to end, when the chain proves that no payload can be executed
	DetailOther     = "executed_by_other" // another tool sent the owners' signatures
	DetailNumber    = "number_taken"      // another transaction of the account has its number
	DetailMoved     = "moved_nothing"
	DetailPointless = "nothing_to_supersede" // what it was to make impossible has ended
)

// ProposalDetails lists what a proposal may wait for, and why it ended.
func ProposalDetails() []string {
	return []string{
		WaitNothing, WaitScreening, WaitApproval, WaitSecond, WaitRest, WaitPause, WaitPayload, WaitOwners, WaitAccount, WaitExecution, WaitImpossible, WaitSignature, WaitWatch, WaitFrozen,
		WaitBroadcast, WaitFinality, WaitOperator, DetailBySender, DetailByStaff, DetailExpired, DetailInactive, DetailRejected, DetailHit, DetailOther, DetailNumber, DetailMoved, DetailPointless,
	}
}

// ProposalRequest asks for something that the owners of a wallet are to sign. An empty kind is a payment.
type ProposalRequest struct {
	ID          uuid.UUID
	Kind        ProposalKind
	WalletID    uuid.UUID
	Amount      money.Amount // of a payment
	Destination string       // of a payment: an address on the wallet's network
	Reference   string
	Change      OwnersChange // of the owners, completed
	Supersedes  uuid.UUID    // what a cancel makes impossible
}

// Is is the kind of what is asked for.
func (r ProposalRequest) Is() ProposalKind {
	if r.Kind == "" {
		return ProposePayment
	}
	return r.Kind
}

// Terms are what the request asks for. Its id is the object of the intent, and who proposes is its principal.
func (r ProposalRequest) Terms() Terms { return termsOf(r.terms()) }

func (r *ProposalRequest) terms() []term {
	return []term{
		textTerm("kind", &r.Kind), idTerm("wallet_id", &r.WalletID), amountTerm("amount", &r.Amount), textTerm("destination", &r.Destination), textTerm("reference", &r.Reference),
		changeTerm("change", &r.Change), idTerm("supersedes", &r.Supersedes),
	}
}

// ProposalRequestOf is the request that an intent states.
func ProposalRequestOf(i Intent) (ProposalRequest, error) {
	r := ProposalRequest{ID: i.ObjectID}
	err := readTerms(i, r.terms())
	return r, err
}

// Check checks a request on its own. CodeInvalid lists every field at fault.
func (r ProposalRequest) Check() error {
	c := checker{}
	c.rule(r.WalletID != uuid.Nil, "/wallet_id", "required", "is required")
	c.rule(slices.Contains(ProposalKinds(), r.Is()), "/kind", "enum", "must be payment, owners or cancel")
	if r.Is() == ProposePayment {
		c.rule(r.Amount.Asset().Stablecoin(), "/asset", "enum", "must be USDT or USDC")
		c.rule(r.Amount.Positive(), "/amount", "out_of_range", "must be above zero")
		c.rule(r.Destination != "", "/destination", "required", "is required")
	} else {
		c.rule(r.Amount.Asset() == "", "/amount", "forbidden", "must be left out: it is no payment")
		c.rule(r.Destination == "", "/destination", "forbidden", "must be left out: it is no payment")
	}
	c.rule((r.Is() == ProposeCancel) == (r.Supersedes != uuid.Nil), "/supersedes", "mismatch", "is required for a cancel, and must be left out otherwise")
	c.rule((r.Is() == ProposeOwners) == (len(r.Change.Owners) > 0), "/owners", "mismatch", "is required for a change of the owners, and must be left out otherwise")
	c.rule(len([]rune(r.Reference)) <= MaxProposalReference, "/reference", "too_long", fmt.Sprintf("must have at most %d characters", MaxProposalReference))
	return Invalid(c.bad...)
}

// OutsideSignature is the signature of an owner whose key is not ours, for one payload. The driver of the network says whose it is.
type OutsideSignature struct {
	PayloadID uuid.UUID
	Signature []byte
}

// Terms are the payload and the signature.
func (o OutsideSignature) Terms() Terms { return termsOf(o.terms()) }

func (o *OutsideSignature) terms() []term {
	return []term{idTerm("payload_id", &o.PayloadID), bytesTerm("signature", &o.Signature)}
}

// OutsideSignatureOf is the signature that an intent states.
func OutsideSignatureOf(i Intent) (OutsideSignature, error) {
	var o OutsideSignature
	err := readTerms(i, o.terms())
	return o, err
}

// PayloadStatus is what became of a payload.
type PayloadStatus string

// The states of a payload. Only what the final chain says ends one.
const (
	PayloadOpen     PayloadStatus = "open"     // signatures of it can be executed
	PayloadVoid     PayloadStatus = "void"     // it can never be executed
	PayloadExecuted PayloadStatus = "executed" // it was, and moved the money
)

// PayloadMachine governs payloads.
var PayloadMachine = Machine[PayloadStatus]{
	Name: "multisig_payload", Initial: PayloadOpen,
	Transitions: []Transition[PayloadStatus]{
		{PayloadOpen, PayloadExecuted, ByFlow, "a final transaction executed it, whoever sent it"},
		{PayloadOpen, PayloadVoid, ByFlow, "the final chain proves that it can never be executed"},
	},
	Final: []PayloadStatus{PayloadExecuted, PayloadVoid},
}

// MultisigPayload is what the owners sign for a proposal. Nothing about it changes but its status.
type MultisigPayload struct {
	ID         uuid.UUID
	ProposalID uuid.UUID
	WalletID   uuid.UUID
	PaymentID  uuid.UUID
	N          int // of the proposal, from 1
	Network    Network
	Joint      json.RawMessage // the whole joint transaction, as the driver needs it again
	Digest     []byte          // what an owner's key signs: 32 bytes for secp256k1, the message itself on Solana
	JointID    string          // the SafeTx hash, the id on TRON, the hash of the message on Solana
	// Sequence is the Safe's number of it, and zero elsewhere. NonceAccount and RefBlock are its durable nonce on Solana, and Signers the
	// owners whose signatures its message needs; on TRON RefBlock is the block that it refers to.
	Sequence     uint64
	NonceAccount string
	RefBlock     string
	Signers      []string
	ExpiresAt    time.Time // on TRON, when the chain stops accepting it; zero elsewhere
	Block        uint64    // the final block at which it was prepared
	BlockID      string
	Status       PayloadStatus
	Evidence     string // why it is no longer open
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Open reports whether signatures of the payload can be executed.
func (p MultisigPayload) Open() bool { return p.Status == PayloadOpen }

// SignedBy reports whether the payload takes the signature of an owner: on Solana its message names its signers.
func (p MultisigPayload) SignedBy(owner string) bool {
	return owner != "" && (p.Network != Solana || slices.Contains(p.Signers, owner))
}

// Intent is the hash that an officer's approval names when our key store signs the payload with that officer's key.
func (p MultisigPayload) Intent() string {
	sum := sha256.Sum256(p.Digest)
	return hex.EncodeToString(sum[:])
}

// MultisigSignature is the signature of one owner of one payload, which the driver of the network has verified.
type MultisigSignature struct {
	PayloadID  uuid.UUID
	Owner      string // canonical address
	Signature  []byte
	Held       bool      // our key store made it
	UserID     uuid.UUID // who confirmed it with a token, or brought it
	ApprovalID uuid.UUID // of that officer, for a held one; zero for an outside one
	IntentID   uuid.UUID // by which an outside one came; zero for a held one
	Weight     int       // of the owner, when it is read
	At         time.Time
}

// ProposalStanding is a proposal with what it needs before owners may sign.
type ProposalStanding struct {
	Proposal
	Needed    int // officers, as the rule of all that leaves and the wallet's policy were judged last
	Approvals int // of officers that count
	PaymentID uuid.UUID
}

// OwnerSigning is what the signer needs to sign a payload with the key of an owner that our key store has.
type OwnerSigning struct {
	Proposal Proposal
	Payment  ChainPayment // what the payload must do
	Payload  MultisigPayload
	Owner    MultisigOwner
	UserID   uuid.UUID // the officer who confirmed it
	// Approval is the officer's decision to confirm exactly this payload.
	Approval uuid.UUID
	Key      SealedKey
	Signed   MultisigSignature // the signature, when it is stored already; else its PayloadID is zero
}

// ExecutionSigning is what the signer needs to send owners' signatures as one transaction.
type ExecutionSigning struct {
	Proposal   Proposal
	Payment    ChainPayment
	Payload    MultisigPayload
	Signatures []MultisigSignature // of the payload, ordered by owner
	Gas        SealedKey           // of the wallet that pays; without a wallet where the account itself pays (TRON)
}
