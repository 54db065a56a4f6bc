package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ReconciliationStatus is the state of one comparison of a network's wallets with the ledger.
type ReconciliationStatus string

// The states of a reconciliation. One that failed has said nothing of the wallets that it did not reach.
const (
	ReconciliationRunning   ReconciliationStatus = "running"
	ReconciliationCompleted ReconciliationStatus = "completed"
	ReconciliationFailed    ReconciliationStatus = "failed"
)

// ReconciliationMachine governs reconciliations.
var ReconciliationMachine = Machine[ReconciliationStatus]{
	Name: "reconciliation", Initial: ReconciliationRunning,
	Transitions: []Transition[ReconciliationStatus]{
		{ReconciliationRunning, ReconciliationCompleted, ByFlow, "every wallet of the network was looked at"},
		{ReconciliationRunning, ReconciliationFailed, ByFlow, "the network could not be read, or another run took its place"},
	},
	Final: []ReconciliationStatus{ReconciliationCompleted, ReconciliationFailed},
}

// DifferenceStatus is the state of a difference between the ledger and a chain.
type DifferenceStatus string

// The states of a difference. It stays open for as long as runs find it, however many they are.
const (
	DifferenceOpen   DifferenceStatus = "open"
	DifferenceClosed DifferenceStatus = "closed"
)

// DifferenceMachine governs differences. One that comes back is another one.
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
	Detail  string    // why it failed, in a word
	Cursor  uuid.UUID // the last wallet that was dealt with; zero before the first
	// Of the pairs of a wallet and an asset: those whose balances were compared, those that could not be
	// because the ledger had not come to the block or the chain's answer made no sense, and those of the
	// compared ones that differ.
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

// WalletReading is what the chain says of one wallet and asset.
type WalletReading struct {
	WalletID uuid.UUID
	ChainBalance
}

// Comparison sets what the chain says of a wallet at a final block beside what the ledger says of the
// same block.
//
// The ledger of now is taken back to the block: what was booked for later blocks is left out, and a
// payment of ours that is in the chain by then but not booked yet is counted. Both are facts of rows, so
// money in flight makes no difference. Only the fee of a transaction on its way is not known before it is
// booked: until then up to Fees may be missing on the chain.
type Comparison struct {
	WalletReading
	Ledger money.Amount
	Fees   money.Amount // the most that the network may have taken without our books knowing it yet
	// Deferred says that the ledger has not come to the block, so nothing can be said.
	Deferred bool
}

// Difference is what the chain has more than the ledger; negative when it has less.
func (c Comparison) Difference() money.Amount { return c.Amount.Sub(c.Ledger) }

// Agrees tells whether the chain says what the ledger says.
func (c Comparison) Agrees() bool {
	d := c.Difference()
	return !c.Deferred && !d.Positive() && d.Neg().Cmp(c.Fees) <= 0
}

// Differs tells whether the two are proven to differ.
func (c Comparison) Differs() bool { return !c.Deferred && !c.Agrees() }

// ReconciledBatch is what a batch of wallets of a run came to.
type ReconciledBatch struct {
	RunID       uuid.UUID
	After       uuid.UUID // the run's cursor before the batch
	Last        uuid.UUID // the batch's last wallet
	Unread      int       // pairs of which the chain gave no answer that makes sense
	Comparisons []Comparison
}

// ReconciliationItem is a difference as one run found it.
type ReconciliationItem struct {
	RunID        uuid.UUID
	DifferenceID uuid.UUID
	Network      Network
	Comparison
}

// ReconciliationDifference is a difference that stands, or stood, from run to run.
type ReconciliationDifference struct {
	ID          uuid.UUID
	Network     Network
	Status      DifferenceStatus
	ExceptionID uuid.UUID  // the payment exception that tells people of it
	Latest      Comparison // as the last run found it that compared the pair; of a closed one, before it vanished
	FirstRun    uuid.UUID
	LastRun     uuid.UUID // the last one that found it, or that found it gone
	Runs        int       // how many found it
	OpenedAt    time.Time
	UpdatedAt   time.Time
	ClosedAt    time.Time
	Version     int64
}

// ReserveLine says of one asset, for one day, what is owed and what there is to pay it with. Owed is the
// sum of what the ledger owes to others. Custody is what it says of the wallets and Discrepancy what the
// last completed run of each network found more on the chains (less, when negative); together they are
// what the chains hold. Float is the house's money at the operator and its bank.
type ReserveLine struct {
	Day         time.Time // midnight UTC at its beginning
	Asset       money.Asset
	Owed        money.Amount
	Custody     money.Amount
	Discrepancy money.Amount
	Float       money.Amount
	// ComparedAt is when the oldest of the runs behind Discrepancy ended; zero when a network that may
	// hold the asset has none, or the asset is on no chain.
	ComparedAt time.Time
	CreatedAt  time.Time
}

// Reserves is what there is to pay with.
func (l ReserveLine) Reserves() money.Amount { return l.Custody.Add(l.Discrepancy).Add(l.Float) }

// Surplus is what would be left when everything owed were paid; negative when something is missing.
func (l ReserveLine) Surplus() money.Amount { return l.Reserves().Sub(l.Owed) }

// OwedKinds are the accounts of money that belongs to others, or may. Of these, those of the house itself are not owed.
func OwedKinds() []AccountKind {
	return []AccountKind{AccWalletBalance, AccFiatBalance, AccOrdersInFlight, AccRefundsDue, AccSuspense, AccUnclaimed}
}

// FloatKinds are the accounts of the house's money outside the chains.
func FloatKinds() []AccountKind { return []AccountKind{AccMomoCollection, AccMomoPayout, AccBank} }
