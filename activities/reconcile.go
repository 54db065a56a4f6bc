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

// ReconciliationStore keeps the comparisons of the ledger with the chains, and what follows from them.
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

// ReconciliationInput names a run; the one that is about to begin has no id. Failed and Detail say how it ends.
type ReconciliationInput struct {
	RunID   uuid.UUID        `json:"run_id,omitzero"`
	Network exchange.Network `json:"network"`
	Failed  bool             `json:"failed,omitempty"`
	Detail  string           `json:"detail,omitempty"`
}

// Reconciled is what a run came to.
type Reconciled struct {
	Status      exchange.ReconciliationStatus `json:"status"`
	Compared    int                           `json:"compared"`
	Deferred    int                           `json:"deferred,omitempty"`
	Differences int                           `json:"differences,omitempty"`
	Standing    int                           `json:"standing,omitempty"` // differences of the network that stand now
}

// ReconciliationBegun names the run that was opened.
type ReconciliationBegun struct {
	RunID uuid.UUID `json:"run_id"`
}

// BeginReconciliation opens a run, or finds the one that is named. A new run's id follows from the run of the
// flow that asks, so that asking again finds it.
func (r *Reconciliation) BeginReconciliation(ctx context.Context, in ReconciliationInput) (ReconciliationBegun, error) {
	id := in.RunID
	if id == uuid.Nil {
		id = uuid.NewSHA1(uuid.NameSpaceOID, []byte("kivuko reconciliation "+activity.GetInfo(ctx).WorkflowExecution.RunID))
	}
	run, err := r.Store.BeginReconciliation(ctx, id, in.Network)
	return ReconciliationBegun{RunID: run.ID}, Failure(ctx, err)
}

// FinishReconciliation ends a run and tells the gauge how many differences stand.
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

// ReservesWritten tells which assets lack reserves by the report.
type ReservesWritten struct {
	Lines int           `json:"lines"`
	Short []money.Asset `json:"short,omitempty"`
}

// WriteReserves writes the report of a day; the first one counts.
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

// ComparingStore is what comparing a batch of wallets reads and writes.
type ComparingStore interface {
	Reconciliation(ctx context.Context, id uuid.UUID) (exchange.Reconciliation, error)
	WalletsAfter(ctx context.Context, n exchange.Network, after uuid.UUID, limit int) ([]exchange.Wallet, error)
	DepositCursor(ctx context.Context, n exchange.Network) (exchange.DepositCursor, bool, error)
	CompareReadings(ctx context.Context, n exchange.Network, readings []exchange.WalletReading) ([]exchange.Comparison, error)
	RecordComparisons(ctx context.Context, b exchange.ReconciledBatch) (exchange.Reconciliation, error)
}

// BalanceReader is the part of a network's driver that reads what addresses hold at a final block.
type BalanceReader interface {
	Network() exchange.Network
	Supports(a money.Asset) error
	Balance(ctx context.Context, address string, a money.Asset) (chain.Balance, error)
}

// Comparing holds the wallets of one network against the ledger.
type Comparing struct {
	Store  ComparingStore
	Client BalanceReader
	Poll   time.Duration // between two looks at how far the watch over the chain came; about the block time
	// Patience is how long a batch waits for the watch to come to the blocks at which it read.
	Patience time.Duration
}

// walletsPerBatch bounds one step of a run: its reads, its transaction, and what a crash repeats.
const walletsPerBatch = 50

// DefaultPatience is how long a batch waits for the watch over its network.
const DefaultPatience = 2 * time.Minute

// CompareInput names the run that a batch belongs to.
type CompareInput struct {
	RunID   uuid.UUID        `json:"run_id"`
	Network exchange.Network `json:"network"`
}

// Compared says whether there may be more wallets.
type Compared struct {
	More        bool `json:"more"`
	Differences int  `json:"differences,omitempty"` // of the run so far
}

// CompareWallets compares the next wallets of a run. How far the run came is in its row, so a step that
// runs twice does the batch once and then the next one. What differs is read a second time, from a later
// block, before it is believed: one node that lies or lags raises no alarm by itself.
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

// questions asks for every asset that the network's wallets can hold as it is configured.
func (c *Comparing) questions(wallets []exchange.Wallet) []question {
	var all []question
	for _, asset := range c.Client.Network().WalletAssets() {
		if c.Client.Supports(asset) != nil {
			continue
		}
		for _, w := range wallets {
			all = append(all, question{w.ID, w.Address, asset})
		}
	}
	return all
}

// compare reads what the chain says, waits until the ledger has come to the same blocks, and compares. It
// counts the questions to which the chain's answer made no sense.
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

// confirm compares again what differs. A second answer that makes no sense leaves the pair for another run.
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

// read asks the chain, several questions at a time. One whose answer makes no sense stops nothing; a chain
// that can't be reached stops the batch.
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

// await lets the watch over the chain come to the newest block of the readings. When it does not within
// the patience, what it has not come to is deferred by the comparison.
func (c *Comparing) await(ctx context.Context, readings []exchange.WalletReading) error {
	var newest uint64
	for _, r := range readings {
		newest = max(newest, r.Block.Number)
	}
	for end := time.Now().Add(c.Patience); ; {
		cursor, _, err := c.Store.DepositCursor(ctx, c.Client.Network())
		if err != nil || cursor.Final.Number >= newest || !time.Now().Before(end) {
			return err
		}
		if err := pauseFor(ctx, c.Poll); err != nil {
			return err
		}
	}
}

// heartbeatPause is the longest silence of a step that waits.
const heartbeatPause = 10 * time.Second

// pauseFor waits and says that the step is alive. It ends with an error when the step is to end; another
// process then takes it up.
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
