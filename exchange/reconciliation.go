package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ReconciliationStatus is the state of one comparison of a network's wallets with the ledger.
type ReconciliationStatus string

// The states of a reconciliation. A failed one says nothing about the wallets that it did not reach.
const (
	ReconciliationRunning   ReconciliationStatus = "running"
	ReconciliationCompleted ReconciliationStatus = "completed"
	ReconciliationFailed    ReconciliationStatus = "failed"
)

// ReconciliationMachine governs reconciliations.
var ReconciliationMachine = Machine[ReconciliationStatus]{
	Name: "reconciliation", Initial: ReconciliationRunning,
	Transitions: []Transition[ReconciliationStatus]{
		{ReconciliationRunning, ReconciliationCompleted, ByFlow, "every wallet of the network was processed"},
		{ReconciliationRunning, ReconciliationFailed, ByFlow, "the network could not be read, or another run took its place"},
	},
	Final: []ReconciliationStatus{ReconciliationCompleted, ReconciliationFailed},
}

// DifferenceStatus is the state of a difference between the ledger and a chain.
type DifferenceStatus string

// The states of a difference. It stays open while runs keep finding it.
const (
	DifferenceOpen   DifferenceStatus = "open"
	DifferenceClosed DifferenceStatus = "closed"
)

// DifferenceMachine governs differences. One that returns after it was closed is a new one.
var DifferenceMachine = Machine[DifferenceStatus]{
	Name: "reconciliation_difference", Initial: DifferenceOpen,
	Transitions: []Transition[DifferenceStatus]{
		{DifferenceOpen, DifferenceClosed, ByFlow, "the ledger and the chain agree again"},
	},
	Final: []DifferenceStatus{DifferenceClosed},
}

// Reconciliation is one comparison of all custodial wallets of a network with the ledger.
type Reconciliation struct {
	ID      uuid.UUID
	Network Network
	Status  ReconciliationStatus
	Detail  string    // why it failed
	Cursor  uuid.UUID // the last wallet that was processed; zero before the first
	// Pairs of a wallet and an asset: those whose balances were compared, those that could not be compared because the
	// ledger had not reached the block or the chain's answer made no sense, and compared ones that differ.
	Compared    int
	Deferred    int
	Differences int
	StartedAt   time.Time
	FinishedAt  time.Time // zero while it runs
}

// ChainBalance is what an address held at a final block.
type ChainBalance struct {
	Amount money.Amount
	Block  ChainBlock
}

// WalletReading is a balance of one wallet and asset as the chain has it.
type WalletReading struct {
	WalletID uuid.UUID
	ChainBalance
}

// Comparison compares a wallet's balance on the chain at a final block with the ledger's balance for the same block.
//
// The ledger is rolled back to the block: bookings for later blocks are left out, and a payment of ours that is in the
// chain by then but not booked yet is included. Both come from stored rows, so money in flight causes no difference. Only
// the fee of an unbooked transaction is not known: up to Fees may be missing on the chain.
type Comparison struct {
	WalletReading
	Ledger money.Amount
	Fees   money.Amount // the most that the network may have charged and that is not booked yet
	// Deferred is set when the ledger has not reached the block, so that no comparison is possible.
	Deferred bool
}

// Difference is the chain's balance less the ledger's.
func (c Comparison) Difference() money.Amount { return c.Amount.Sub(c.Ledger) }

// Agrees reports whether the chain has what the ledger has.
func (c Comparison) Agrees() bool {
	d := c.Difference()
	return !c.Deferred && !d.Positive() && d.Neg().Cmp(c.Fees) <= 0
}

// Differs reports whether the two are proven to differ.
func (c Comparison) Differs() bool { return !c.Deferred && !c.Agrees() }

// ReconciledBatch is the result for a batch of wallets of a run.
type ReconciledBatch struct {
	RunID       uuid.UUID
	After       uuid.UUID // the run's cursor before the batch
	Last        uuid.UUID // the batch's last wallet
	Unread      int       // pairs for which the chain gave no usable answer
	Comparisons []Comparison
}

// ReconciliationItem is a difference as one run found it.
type ReconciliationItem struct {
	RunID        uuid.UUID
	DifferenceID uuid.UUID
	Network      Network
	Comparison
}

// ReconciliationDifference is a difference that lasts over one or more runs.
type ReconciliationDifference struct {
	ID          uuid.UUID
	Network     Network
	Status      DifferenceStatus
	ExceptionID uuid.UUID  // the payment exception that reports it
	Latest      Comparison // from the last run that compared the pair; of a closed one, from before it vanished
	FirstRun    uuid.UUID
	LastRun     uuid.UUID // the last run that found it, or that found it gone
	Runs        int       // how many runs found it
	OpenedAt    time.Time
	UpdatedAt   time.Time
	ClosedAt    time.Time
	Version     int64
}

// ReserveLine compares, for one asset and day, what is owed with what is there to pay it. Owed is the sum of what the ledger
// owes to others, and Equity what is the house's own; by the ledger both together are Custody and Float. Custody is the ledger's
// total of the wallets. Discrepancy is what the last completed run of each network found on the chains beyond that (negative when
// less); together they are what the chains hold. Float is the house's money at the operator and its bank.
type ReserveLine struct {
	Day         time.Time // midnight UTC at its beginning
	Asset       money.Asset
	Owed        money.Amount
	Equity      money.Amount // the house's own by the ledger; below zero when it lost more than it put in and earned
	Custody     money.Amount
	Discrepancy money.Amount
	Float       money.Amount
	// ComparedAt is when the oldest of the runs behind Discrepancy ended. It is zero when a network of the asset has no run,
	// or the asset is on no chain.
	ComparedAt time.Time
	CreatedAt  time.Time
}

// Reserves is what there is to pay with.
func (l ReserveLine) Reserves() money.Amount { return l.Custody.Add(l.Discrepancy).Add(l.Float) }

// Surplus is what would be left after paying everything owed; negative when money is missing.
func (l ReserveLine) Surplus() money.Amount { return l.Reserves().Sub(l.Owed) }

// OwedKinds are the kinds of account with money that belongs, or may belong, to others. The house's own wallets are not
// owed.
func OwedKinds() []AccountKind {
	return []AccountKind{AccWalletBalance, AccFiatBalance, AccOrdersInFlight, AccRefundsDue, AccSuspense, AccUnclaimed}
}

// FloatKinds are the kinds of account with the house's money outside the chains.
func FloatKinds() []AccountKind { return []AccountKind{AccMomoCollection, AccMomoPayout, AccBank} }
