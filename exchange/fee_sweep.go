package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// FeeSweepStatus is the state of a sweep of earned fees.
type FeeSweepStatus string

// The states of a fee sweep.
const (
	FeeSweepPending    FeeSweepStatus = "pending"    // agreed; nothing is signed
	FeeSweepProcessing FeeSweepStatus = "processing" // a transaction is signed, or was and another one has to be
	FeeSweepCompleted  FeeSweepStatus = "completed"  // the money is in the treasury
	FeeSweepCancelled  FeeSweepStatus = "cancelled"  // given up; the fees stay where they are
)

// FeeSweepMachine governs sweeps of earned fees. Shillings move in the books alone, so a sweep of them is completed at once.
var FeeSweepMachine = Machine[FeeSweepStatus]{
	Name: "fee_sweep", Initial: FeeSweepPending,
	Transitions: []Transition[FeeSweepStatus]{
		{FeeSweepPending, FeeSweepProcessing, ByFlow, "a transaction was signed"},
		{FeeSweepPending, FeeSweepCompleted, ByFlow, "shillings, which move in the books alone"},
		{FeeSweepProcessing, FeeSweepCompleted, ByFlow, "the transfer is final"},
		{FeeSweepPending, FeeSweepCancelled, ByOperator, "given up before anything was signed"},
		{FeeSweepProcessing, FeeSweepCancelled, ByOperator, "given up after no transaction of it can succeed any more"},
	},
	Final: []FeeSweepStatus{FeeSweepCompleted, FeeSweepCancelled},
}

// WaitOfficers is what a fee sweep waits for whose officers may not decide any more.
const WaitOfficers = "officers"

// FeeSweepDetails lists what fee sweeps wait for.
func FeeSweepDetails() []string {
	return []string{WaitNothing, WaitSignature, WaitWatch, WaitFrozen, WaitBroadcast, WaitFinality, WaitOperator, WaitOfficers}
}

// EarnedFees is what the house earned in one asset and has not swept: of crypto in one wallet, where it lies, otherwise in the
// house's own account.
type EarnedFees struct {
	Asset     money.Asset
	Network   Network   // of the wallet; empty for shillings
	WalletID  uuid.UUID // zero for the house's own account
	OwnerID   uuid.UUID // of the wallet; zero for the house
	Posted    money.Amount
	Held      money.Amount // on its way to the treasury
	Sweepable bool         // a payment can move it, or a booking
	UpdatedAt time.Time
}

// FeeSweep moves earned fees from one wallet to the treasury of its network, by a payment on the chain, or shillings in the books.
type FeeSweep struct {
	ID           uuid.UUID
	ChangeID     uuid.UUID // the change by which two officers agreed to it, or to the rule that it follows
	Scheduled    bool      // by a rule
	RequestedBy  uuid.UUID // who proposed it; zero by a rule
	Network      Network   // empty for shillings
	WalletID     uuid.UUID // zero for shillings
	Amount       money.Amount
	Value        money.Amount // in shillings
	HoldID       uuid.UUID    // of the fees in the wallet; zero for shillings
	Status       FeeSweepStatus
	StatusDetail string
	TxHash       string
	CreatedAt    time.Time
	UpdatedAt    time.Time
	CompletedAt  time.Time
	Version      int64
}

// ApprovedFeeSweep is a sweep with the payment that carries it out; none while its officers may not decide any more, and for one that
// was given up.
type ApprovedFeeSweep struct {
	FeeSweep
	PaymentID uuid.UUID
}

// FeeSweepRule says when a schedule sweeps the fees of an asset on a network by itself. Two treasury officers agree to it.
type FeeSweepRule struct {
	ID        uuid.UUID
	Network   Network
	Asset     money.Asset
	Threshold money.Amount // all that can be swept of the asset on the network
	Least     money.Amount // a wallet with less is left out: the network's fee would be too much of it
	IsActive  bool
	Orphaned  bool // none of the officers who agreed to it may decide any more: it sweeps nothing
	ChangeID  uuid.UUID
	UpdatedAt time.Time
	Version   int64
}

// MaxFeeSweeps is the most wallets that are swept at once.
const MaxFeeSweeps = 100
