package ledger

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"runtime"
	"sync"
	"time"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// The coalescing writer.
//
// Many changes lock the same few rows: an offer's hold, the provider's collection account. Writers that lock such a
// row one after another are as slow as the commit, and get slower the more of them wait. So each change is a unit; a
// shard takes it together with all other waiting units and writes them in one transaction. A single unit is written at
// once, without waiting for others and without reading first (see posting_fast.go).
//
// Every unit gets its own verdict. Units that only post are checked against the locked balances and written together
// with a few statements. Units with rows of their own run one after the other, each behind a savepoint. When the
// transaction as a whole fails (a deadlock with another process, a guard of the database, a lost connection), its
// units are repeated one by one.
//
// A caller whose context ends gets the context's error, but its unit may still commit: the caller has to repeat it,
// which is safe because every unit is idempotent.

// Limits of the writer.
const (
	maxBatchPostings = 256              // units that only post, in one transaction
	maxBatchChanges  = 16               // units with rows of their own, in one transaction
	shardQueue       = 2048             // units that may wait in one shard
	batchTimeout     = 30 * time.Second // the longest time of a transaction
)

var errQueueFull = exchange.Errorf(exchange.CodeUnavailable, "Too many changes are waiting. Try again.")

var errClosed = exchange.Errorf(exchange.CodeUnavailable, "The service is shutting down. Try again.")

// unit is one change. fn changes rows and returns what to post; without fn, posting is the whole unit.
type unit struct {
	ctx     context.Context //nolint:containedctx // the caller's, to skip abandoned units
	fn      func(context.Context, Tx) (exchange.Posting, error)
	posting exchange.Posting
	done    chan error // takes one verdict
	watch   func(committed bool)
}

type writer struct {
	l      *Ledger
	shards []chan *unit
	wg     sync.WaitGroup
	stop   context.CancelFunc
	ctx    context.Context //nolint:containedctx // the shards' context, ended by close

	mu     sync.RWMutex
	closed bool
}

// shardsFor leaves half of the pool to readers.
func shardsFor(conns int) int { return max(1, conns/2) }

func startWriter(l *Ledger, shards int) *writer {
	w := &writer{l: l}
	w.ctx, w.stop = context.WithCancel(context.Background())
	for range shards {
		shard := make(chan *unit, shardQueue)
		w.shards = append(w.shards, shard)
		w.wg.Go(func() { w.run(shard) })
	}
	return w
}

// close refuses new and waiting units, and returns when the running transactions have ended.
func (w *writer) close() {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	for _, shard := range w.shards {
		close(shard)
	}
	w.mu.Unlock()
	w.stop()
	w.wg.Wait()
}

// submit hands a unit to the shard of its hint and waits for the verdict. Units with the same hint share a shard, so
// that changes of one row share a transaction.
func (w *writer) submit(hint []byte, u *unit) error {
	u.done, u.watch = make(chan error, 1), w.l.db.Watch(u.ctx)
	h := fnv.New32a()
	_, _ = h.Write(hint) // never fails
	if err := w.enqueue(w.shards[int(h.Sum32())%len(w.shards)], u); err != nil {
		return err
	}
	select {
	case err := <-u.done:
		return err
	case <-u.ctx.Done():
		return u.ctx.Err()
	}
}

func (w *writer) enqueue(shard chan *unit, u *unit) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return errClosed
	}
	select {
	case shard <- u:
		return nil
	default:
		return errQueueFull
	}
}

func (w *writer) run(shard <-chan *unit) {
	for first := range shard {
		if w.ctx.Err() != nil {
			first.done <- errClosed
			continue
		}
		// Callers that just got their verdicts may have their next unit ready: yield the processor once. Nothing is
		// waited for, so a single caller loses nothing.
		runtime.Gosched()
		w.write(gather(first, shard))
	}
}

// gather takes the units that already wait, up to the limits of a batch.
func gather(first *unit, shard <-chan *unit) []*unit {
	batch, changes := []*unit{first}, 0
	if first.fn != nil {
		changes = 1
	}
	for len(batch) < maxBatchPostings && changes < maxBatchChanges {
		select {
		case u, open := <-shard:
			if !open {
				return batch
			}
			batch = append(batch, u)
			if u.fn != nil {
				changes++
			}
		default:
			return batch
		}
	}
	return batch
}

// write gives every unit of a batch its verdict.
func (w *writer) write(batch []*unit) {
	// The transaction belongs to several callers, so no single one's context governs it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), batchTimeout)
	defer cancel()
	live := batch[:0]
	for _, u := range batch {
		if err := u.ctx.Err(); err != nil {
			u.done <- err
			continue
		}
		live = append(live, u)
	}
	if len(live) > 1 {
		verdicts, err := w.together(ctx, live, false)
		if err == nil {
			for i, u := range live {
				u.done <- verdicts[i]
			}
			return
		}
		w.l.log.DebugContext(ctx, "batch repeated one by one", "units", len(live), "cause", err)
	}
	for _, u := range live {
		u.done <- w.alone(ctx, u)
	}
}

// alone writes one unit in a transaction of its own, and repeats it after a lost race. It tries the fast path first
// (see posting_fast.go), and the slow path when that was refused.
func (w *writer) alone(ctx context.Context, u *unit) error {
	if u.fn == nil && u.watch == nil && w.l.postAlone(ctx, u.posting) {
		return nil
	}
	fastPath := u.fn != nil
	return pg.Retry(ctx, func() error {
		verdicts, err := w.together(ctx, []*unit{u}, fastPath)
		if fastPath && errors.Is(err, errRefused) {
			fastPath = false
			verdicts, err = w.together(ctx, []*unit{u}, false)
		}
		if err != nil {
			return err
		}
		return verdicts[0]
	})
}

// together writes units in one transaction. err means that the whole transaction failed and left nothing behind; the
// verdicts are about the units. With fastPath, postings are written without reading the balances.
func (w *writer) together(ctx context.Context, units []*unit, fastPath bool) ([]error, error) {
	tx, err := w.l.db.Begin(ctx)
	if err != nil {
		return nil, err
	}
	b := &bookkeeper{l: w.l, t: w.l.tx(tx), fastPath: fastPath, fresh: map[exchange.AccountRef]int64{}}
	verdicts, err := w.inside(ctx, b, units)
	if err == nil {
		err = b.t.log.write(ctx, tx)
	}
	if err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	var watches []pg.Watch
	for i, u := range units {
		if verdicts[i] == nil {
			watches = append(watches, u.watch)
		}
	}
	if err := tx.Commit(ctx, watches...); err != nil {
		return nil, err
	}
	w.l.remember(b.fresh)
	return verdicts, nil
}

func (w *writer) inside(ctx context.Context, b *bookkeeper, units []*unit) ([]error, error) {
	verdicts := make([]error, len(units))
	var postings []exchange.Posting
	var posters []int
	for i, u := range units {
		if u.fn == nil {
			postings, posters = append(postings, u.posting), append(posters, i)
			continue
		}
		before := maps.Clone(b.fresh)
		refused, err := b.refusable(ctx, len(units) > 1, u)
		if err != nil {
			return nil, err
		}
		if verdicts[i] = refused; refused != nil {
			b.fresh = before // its new accounts are undone with it
		}
	}
	if len(postings) == 0 {
		return verdicts, nil
	}
	results, err := b.post(ctx, postings)
	if err != nil {
		return nil, err
	}
	for j, i := range posters {
		verdicts[i] = results[j]
	}
	return verdicts, nil
}

// refusable runs a unit. One of several is refused alone: its own work is undone, and the transaction goes on.
func (b *bookkeeper) refusable(ctx context.Context, several bool, u *unit) (refused, err error) {
	if !several {
		return nil, runUnit(ctx, b, u)
	}
	return b.t.Savepoint(ctx, func() error { return runUnit(ctx, b, u) })
}

func runUnit(ctx context.Context, b *bookkeeper, u *unit) error {
	p, err := u.fn(ctx, b.t)
	if err != nil {
		return err
	}
	if b.fastPath {
		if done, err := b.postDirectly(ctx, p); done || err != nil {
			return err
		}
	}
	verdicts, err := b.post(ctx, []exchange.Posting{p})
	if err != nil {
		return err
	}
	return verdicts[0]
}
