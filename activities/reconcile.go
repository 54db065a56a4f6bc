package activities

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// ReconciliationStore stores the comparisons of the ledger with the chains, and their results.
type ReconciliationStore interface {
	ReconciledNetworks(ctx context.Context) ([]exchange.Network, error)
	BeginReconciliation(ctx context.Context, id uuid.UUID, n exchange.Network) (exchange.Reconciliation, error)
	FinishReconciliation(ctx context.Context, id uuid.UUID, to exchange.ReconciliationStatus, detail string) (exchange.Reconciliation, error)
	OpenDifferences(ctx context.Context, n exchange.Network) (int, error)
	WriteReserves(ctx context.Context, day time.Time) ([]exchange.ReserveLine, error)
}

// Reconciliation opens and ends comparisons and writes the daily report. It runs on the flows queue.
type Reconciliation struct{ Store ReconciliationStore }

// ReconciledNetworks lists the networks whose wallets can be compared.
func (r *Reconciliation) ReconciledNetworks(ctx context.Context) ([]exchange.Network, error) {
	all, err := r.Store.ReconciledNetworks(ctx)
	return all, Failure(ctx, err)
}

// ReconciliationInput names a run; a new run has no id. Failed and Detail are how it ends.
type ReconciliationInput struct {
	RunID   uuid.UUID        `json:"run_id,omitzero"`
	Network exchange.Network `json:"network"`
	Failed  bool             `json:"failed,omitempty"`
	Detail  string           `json:"detail,omitempty"`
}

// Reconciled is the result of a run.
type Reconciled struct {
	Status      exchange.ReconciliationStatus `json:"status"`
	Compared    int                           `json:"compared"`
	Deferred    int                           `json:"deferred,omitempty"`
	Differences int                           `json:"differences,omitempty"`
	Standing    int                           `json:"standing,omitempty"` // open differences of the network
}

// ReconciliationBegun names the run that was opened.
type ReconciliationBegun struct {
	RunID uuid.UUID `json:"run_id"`
}

// BeginReconciliation opens a run, or finds the named one. A new run's id is derived from the run of the calling flow, so
// that a repeated call finds it.
func (r *Reconciliation) BeginReconciliation(ctx context.Context, in ReconciliationInput) (ReconciliationBegun, error) {
	id := in.RunID
	if id == uuid.Nil {
		id = uuid.NewSHA1(uuid.NameSpaceOID, []byte("kivuko reconciliation "+activity.GetInfo(ctx).WorkflowExecution.RunID))
	}
	run, err := r.Store.BeginReconciliation(ctx, id, in.Network)
	return ReconciliationBegun{RunID: run.ID}, Failure(ctx, err)
}

// FinishReconciliation ends a run and updates the gauge of open differences.
func (r *Reconciliation) FinishReconciliation(ctx context.Context, in ReconciliationInput) (Reconciled, error) {
	to := exchange.ReconciliationCompleted
	if in.Failed {
		to = exchange.ReconciliationFailed
	}
	run, err := r.Store.FinishReconciliation(ctx, in.RunID, to, in.Detail)
	if err != nil {
		return Reconciled{}, Failure(ctx, err)
	}
	standing, err := r.Store.OpenDifferences(ctx, in.Network)
	if err != nil {
		return Reconciled{}, Failure(ctx, err)
	}
	of := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"network": string(in.Network)})
	of.Gauge("kivuko_reconciliation_differences").Update(float64(standing))  //nolint:forbidigo // a gauge of the SDK takes nothing else, and a count is no money
	of.Gauge("kivuko_reconciliation_deferred").Update(float64(run.Deferred)) //nolint:forbidigo // as above
	return Reconciled{Status: run.Status, Compared: run.Compared, Deferred: run.Deferred, Differences: run.Differences, Standing: standing}, nil
}

// ReservesInput names the day of a report.
type ReservesInput struct {
	Day time.Time `json:"day"`
}

// ReservesWritten lists the assets whose reserves are too small.
type ReservesWritten struct {
	Lines int           `json:"lines"`
	Short []money.Asset `json:"short,omitempty"`
}

// WriteReserves writes the report of a day. A second call does not change the first report.
func (r *Reconciliation) WriteReserves(ctx context.Context, in ReservesInput) (ReservesWritten, error) {
	lines, err := r.Store.WriteReserves(ctx, in.Day)
	written := ReservesWritten{Lines: len(lines)}
	for _, l := range lines {
		short := 0
		if l.Surplus().Sign() < 0 {
			written.Short, short = append(written.Short, l.Asset), 1
		}
		of := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"asset": string(l.Asset)})
		of.Gauge("kivuko_reserves_short").Update(float64(short)) //nolint:forbidigo // a gauge of the SDK takes nothing else, and yes or no is no money
	}
	return written, Failure(ctx, err)
}

// ComparingStore is the database interface of Comparing.
type ComparingStore interface {
	Reconciliation(ctx context.Context, id uuid.UUID) (exchange.Reconciliation, error)
	WalletsAfter(ctx context.Context, n exchange.Network, after uuid.UUID, limit int) ([]exchange.Wallet, error)
	cursorStore
	CompareReadings(ctx context.Context, n exchange.Network, readings []exchange.WalletReading) ([]exchange.Comparison, error)
	RecordComparisons(ctx context.Context, b exchange.ReconciledBatch) (exchange.Reconciliation, error)
}

// BalanceReader is the part of a network's driver that reads what addresses hold at a final block.
type BalanceReader interface {
	Network() exchange.Network
	Supports(a money.Asset) error
	Balance(ctx context.Context, address string, a money.Asset) (chain.Balance, error)
}

// Comparing compares the wallets of one network with the ledger.
type Comparing struct {
	Store  ComparingStore
	Client BalanceReader
	Poll   time.Duration // between two checks of the deposit watch's progress; about the block time
	// WatchTimeout is how long a batch waits for the deposit watch to reach the blocks at which it read.
	WatchTimeout time.Duration
}

// walletsPerBatch bounds the reads and the transaction of one step, and so what is repeated after a crash.
const walletsPerBatch = 50

// DefaultWatchTimeout is how long a batch waits for the deposit watch of its network.
const DefaultWatchTimeout = 2 * time.Minute

// CompareInput names the run that a batch belongs to.
type CompareInput struct {
	RunID   uuid.UUID        `json:"run_id"`
	Network exchange.Network `json:"network"`
}

// Compared reports whether there may be more wallets.
type Compared struct {
	More        bool `json:"more"`
	Differences int  `json:"differences,omitempty"` // of the run so far
}

// CompareWallets compares the next wallets of a run. The progress is in the run's row, so a repeated step handles the next
// batch. A difference is read a second time, from a later block, so that one wrong or lagging node raises no alarm.
func (c *Comparing) CompareWallets(ctx context.Context, in CompareInput) (Compared, error) {
	out, err := c.compareNext(ctx, in)
	return out, Failure(ctx, err)
}

func (c *Comparing) compareNext(ctx context.Context, in CompareInput) (Compared, error) {
	run, err := c.Store.Reconciliation(ctx, in.RunID)
	if err != nil || run.Status != exchange.ReconciliationRunning {
		return Compared{}, err
	}
	wallets, err := c.Store.WalletsAfter(ctx, c.Client.Network(), run.Cursor, walletsPerBatch)
	if err != nil || len(wallets) == 0 {
		return Compared{}, err
	}
	asked := c.questions(wallets)
	all, unread, err := c.compare(ctx, asked)
	if err != nil {
		return Compared{}, err
	}
	if all, err = c.confirm(ctx, asked, all); err != nil {
		return Compared{}, err
	}
	run, err = c.Store.RecordComparisons(ctx, exchange.ReconciledBatch{
		RunID: run.ID, After: run.Cursor, Last: wallets[len(wallets)-1].ID, Unread: unread, Comparisons: all,
	})
	return Compared{More: len(wallets) == walletsPerBatch, Differences: run.Differences}, err
}

// question is one wallet and asset whose balance is asked for.
type question struct {
	wallet  uuid.UUID
	address string
	asset   money.Asset
}

// questions returns a question for every asset that the network's wallets can hold by configuration.
func (c *Comparing) questions(wallets []exchange.Wallet) []question {
	var all []question
	for _, asset := range c.Client.Network().WalletAssets() {
		if c.Client.Supports(asset) != nil {
			continue
		}
		for _, w := range wallets {
			if w.Moves(asset) {
				all = append(all, question{w.ID, w.Address, asset})
			}
		}
	}
	return all
}

// compare reads the balances on the chain, waits until the ledger has reached the same blocks, and compares. It counts the
// balances that could not be read.
func (c *Comparing) compare(ctx context.Context, asked []question) ([]exchange.Comparison, int, error) {
	readings, unread, err := c.read(ctx, asked)
	if err != nil || len(readings) == 0 {
		return nil, unread, err
	}
	if err := c.await(ctx, readings); err != nil {
		return nil, unread, err
	}
	all, err := c.Store.CompareReadings(ctx, c.Client.Network(), readings)
	return all, unread, err
}

// confirm compares differences again. A balance that can't be read the second time is deferred to another run.
func (c *Comparing) confirm(ctx context.Context, asked []question, all []exchange.Comparison) ([]exchange.Comparison, error) {
	type pair struct {
		wallet uuid.UUID
		asset  money.Asset
	}
	doubtful := map[pair]bool{}
	for _, one := range all {
		if one.Differs() {
			doubtful[pair{one.WalletID, one.Amount.Asset()}] = true
		}
	}
	if len(doubtful) == 0 {
		return all, nil
	}
	if err := pauseFor(ctx, c.Poll); err != nil {
		return nil, err
	}
	second, _, err := c.compare(ctx, slices.DeleteFunc(slices.Clone(asked), func(q question) bool { return !doubtful[pair{q.wallet, q.asset}] }))
	if err != nil {
		return nil, err
	}
	again := map[pair]exchange.Comparison{}
	for _, one := range second {
		again[pair{one.WalletID, one.Amount.Asset()}] = one
	}
	for i, one := range all {
		if !doubtful[pair{one.WalletID, one.Amount.Asset()}] {
			continue
		}
		var answered bool
		if all[i], answered = again[pair{one.WalletID, one.Amount.Asset()}]; !answered {
			all[i] = one
			all[i].Deferred = true
		}
	}
	return all, nil
}

// read reads balances from the chain, several at a time. An unreadable balance is skipped; an unreachable chain stops the
// batch.
func (c *Comparing) read(ctx context.Context, asked []question) (readings []exchange.WalletReading, unread int, err error) {
	answers, faults := make([]chain.Balance, len(asked)), make([]error, len(asked))
	var wg sync.WaitGroup
	turns := make(chan struct{}, readers)
	for i, q := range asked {
		turns <- struct{}{}
		activity.RecordHeartbeat(ctx)
		wg.Go(func() {
			defer func() { <-turns }()
			answers[i], faults[i] = c.Client.Balance(ctx, q.address, q.asset)
		})
	}
	wg.Wait()
	for i, q := range asked {
		switch {
		case faults[i] == nil:
			b := exchange.ChainBalance{Amount: answers[i].Amount, Block: blockOf(answers[i].At)}
			readings = append(readings, exchange.WalletReading{WalletID: q.wallet, ChainBalance: b})
		case chain.ReasonOf(faults[i]) == chain.ReasonUnavailable, ctx.Err() != nil:
			return nil, 0, faults[i]
		default:
			unread++
			activity.GetLogger(ctx).Warn("a balance could not be read", "wallet", q.wallet, "asset", q.asset, "error", faults[i])
		}
	}
	return readings, unread, nil
}

// await waits until the deposit watch has reached the newest block of the readings. After the timeout, the comparison defers
// the wallets whose blocks it has not reached.
func (c *Comparing) await(ctx context.Context, readings []exchange.WalletReading) error {
	var newest uint64
	for _, r := range readings {
		newest = max(newest, r.Block.Number)
	}
	return awaitWatch(ctx, c.Store, c.Client.Network(), newest, c.Poll, c.WatchTimeout)
}

// cursorStore has how far the deposit watch of a network has read.
type cursorStore interface {
	DepositCursor(ctx context.Context, n exchange.Network) (exchange.DepositCursor, bool, error)
}

// awaitWatch waits until the deposit watch has reached a block, for a time.
func awaitWatch(ctx context.Context, store cursorStore, n exchange.Network, block uint64, poll, timeout time.Duration) error {
	for end := time.Now().Add(timeout); ; {
		cursor, _, err := store.DepositCursor(ctx, n)
		if err != nil || cursor.Final.Number >= block || !time.Now().Before(end) {
			return err
		}
		if err := pauseFor(ctx, poll); err != nil {
			return err
		}
	}
}

// heartbeatPause is the longest pause between heartbeats of a waiting step.
const heartbeatPause = 10 * time.Second

// pauseFor waits and sends heartbeats. It returns an error when the step must end; another process then retries it.
func pauseFor(ctx context.Context, d time.Duration) error {
	for d > 0 {
		activity.RecordHeartbeat(ctx)
		part := min(d, heartbeatPause)
		d -= part
		timer := time.NewTimer(part)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			timer.Stop()
			return exchange.Errorf(exchange.CodeUnavailable, "The worker is about to stop.")
		case <-timer.C:
		}
	}
	return nil
}
