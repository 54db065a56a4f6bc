package store

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"kivuko/exchange"
)

// The coalescing writer.
//
// Money meets in few rows: an offer's hold, the operator's collection account. Writers that lock such
// a row one after another are as slow as the commit is, and get slower the more of them wait. So each
// change is a unit that a lane takes together with whatever else waits at that moment, and writes in
// one transaction. A unit that comes alone is written alone and at once; nobody waits for company, and
// nothing is read first (see direct.go).
//
// Every unit gets its own verdict. Units that post only are judged against the locked balances and
// written with a few statements for all of them. Units with rows of their own run one after the other
// behind a savepoint each. When the transaction as a whole fails (a deadlock with another process, a
// guard of the database, a lost connection), its units are repeated one by one.
//
// A caller whose context ends gets the context's error, and its unit may commit all the same: it has
// to ask again, which is safe because every unit is idempotent.

// Limits of the writer.
const (
	maxBatchPostings = 256              // units that post only, in one transaction
	maxBatchChanges  = 16               // units with rows of their own, in one transaction
	laneQueue        = 2048             // units that may wait in one lane
	batchTimeout     = 30 * time.Second // a transaction that takes longer is given up
)

var errQueueFull = exchange.Errorf(exchange.CodeUnavailable, "Too many changes are waiting; try again.")

var errClosed = exchange.Errorf(exchange.CodeUnavailable, "The service is shutting down; try again.")

// unit is one change. fn moves rows and says what to post; without fn, posting is all there is.
type unit struct {
	ctx     context.Context //nolint:containedctx // the caller's, to skip units that nobody waits for
	what    string
	fn      func(context.Context, unitTx) (exchange.Posting, error)
	posting exchange.Posting
	done    chan error // takes one verdict
	watch   func(committed bool)
}

type writer struct {
	s     *Store
	lanes []chan *unit
	wg    sync.WaitGroup
	stop  context.CancelFunc
	ctx   context.Context //nolint:containedctx // of the lanes, ended by close

	mu     sync.RWMutex
	closed bool
}

// lanesFor leaves half of the pool to readers.
func lanesFor(conns int) int { return max(1, conns/2) }

func startWriter(s *Store, lanes int) *writer {
	w := &writer{s: s}
	w.ctx, w.stop = context.WithCancel(context.Background())
	for range lanes {
		lane := make(chan *unit, laneQueue)
		w.lanes = append(w.lanes, lane)
		w.wg.Go(func() { w.run(lane) })
	}
	return w
}

// close refuses new units and those that wait, and returns when the running transactions ended.
func (w *writer) close() {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	for _, lane := range w.lanes {
		close(lane)
	}
	w.mu.Unlock()
	w.stop()
	w.wg.Wait()
}

// submit hands a unit to the lane of its hint and waits for the verdict. Units with the same hint
// share a lane, so that those that meet in one row meet in one transaction.
func (w *writer) submit(hint []byte, u *unit) error {
	u.done, u.watch = make(chan error, 1), w.s.watch(u.ctx)
	h := fnv.New32a()
	_, _ = h.Write(hint) // never fails
	if err := w.enqueue(w.lanes[int(h.Sum32())%len(w.lanes)], u); err != nil {
		return err
	}
	select {
	case err := <-u.done:
		return translate(err, u.what)
	case <-u.ctx.Done():
		return translate(u.ctx.Err(), u.what)
	}
}

func (w *writer) enqueue(lane chan *unit, u *unit) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return errClosed
	}
	select {
	case lane <- u:
		return nil
	default:
		return errQueueFull
	}
}

func (w *writer) run(lane <-chan *unit) {
	for first := range lane {
		if w.ctx.Err() != nil {
			first.done <- errClosed
			continue
		}
		// Those who got their verdicts just now may have their next unit at hand: give them the
		// processor once. Nothing is waited for, so a caller alone loses nothing.
		runtime.Gosched()
		w.write(gather(first, lane))
	}
}

// gather takes what waits already, up to the limits of a batch.
func gather(first *unit, lane <-chan *unit) []*unit {
	batch, changes := []*unit{first}, 0
	if first.fn != nil {
		changes = 1
	}
	for len(batch) < maxBatchPostings && changes < maxBatchChanges {
		select {
		case u, open := <-lane:
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
		w.s.log.DebugContext(ctx, "batch repeated one by one", "units", len(live), "cause", err)
	}
	for _, u := range live {
		u.done <- w.alone(ctx, u)
	}
}

// alone writes one unit in a transaction of its own, again when another transaction won a race. It posts
// at once first (see direct.go), and with a look at the balances when that was refused.
func (w *writer) alone(ctx context.Context, u *unit) error {
	if u.fn == nil && u.watch == nil && w.s.postAlone(ctx, u.posting) {
		return nil
	}
	hasty := u.fn != nil
	for try := 0; ; try++ {
		verdicts, err := w.together(ctx, []*unit{u}, hasty)
		if err == nil {
			return verdicts[0]
		}
		if hasty && errors.Is(err, errRefused) {
			hasty = false
			continue
		}
		if !lostRace(err) || try == maxRetries {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// together writes units in one transaction. The error is about the transaction as a whole, which then
// left nothing behind; the verdicts are about the units. Hasty units are posted without a look at the
// balances.
func (w *writer) together(ctx context.Context, units []*unit, hasty bool) ([]error, error) {
	tx, err := w.s.begin(ctx)
	if err != nil {
		return nil, err
	}
	b := &bookkeeper{t: unitTx{tx, w.s, &journal{}}, hasty: hasty, fresh: map[exchange.AccountRef]int64{}}
	verdicts, err := w.inside(ctx, b, units)
	if err == nil {
		err = b.t.tell(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, rollback(tx))
	}
	var watches []func(committed bool)
	for i, u := range units {
		if verdicts[i] == nil {
			watches = append(watches, u.watch)
		}
	}
	if err := w.s.commit(ctx, tx, watches...); err != nil {
		return nil, err
	}
	w.s.remember(b.fresh)
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
		before, noted := maps.Clone(b.fresh), len(b.t.journal.lines)
		err := savepoint(ctx, b.t.tx, len(units) > 1, func() error { return runUnit(ctx, b, u) })
		if fatal(err) || (err != nil && len(units) == 1) {
			return nil, err
		}
		if verdicts[i] = err; err != nil {
			b.fresh = before // accounts that it opened are undone with it, and so is what it noted
			b.t.journal.lines = b.t.journal.lines[:noted]
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

func runUnit(ctx context.Context, b *bookkeeper, u *unit) error {
	p, err := u.fn(ctx, b.t)
	if err != nil {
		return err
	}
	if b.hasty {
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

// fatal tells errors after which a transaction can't go on, even behind a savepoint.
func fatal(err error) bool {
	return err != nil && (lostRace(err) || connectionTrouble(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// savepoint runs fn so that its failure undoes its own work only.
func savepoint(ctx context.Context, tx *sqlx.Tx, needed bool, fn func() error) error {
	if !needed {
		return fn()
	}
	if _, err := tx.ExecContext(ctx, `SAVEPOINT unit`); err != nil {
		return err
	}
	verb := `RELEASE SAVEPOINT unit`
	err := fn()
	if fatal(err) {
		return err
	}
	if err != nil {
		verb = `ROLLBACK TO SAVEPOINT unit`
	}
	if _, verr := tx.ExecContext(ctx, verb); verr != nil {
		return verr
	}
	return err
}

// change runs fn as a unit. fn may run several times and must have no effect but through its
// transaction; the last run's result is the one returned. The hint names the object in which
// concurrent changes meet.
func change[T any](ctx context.Context, s *Store, what string, hint uuid.UUID,
	fn func(context.Context, unitTx) (T, exchange.Posting, error),
) (T, error) {
	var zero T
	box := new(T) // written by the lane, and read only after its verdict
	u := &unit{ctx: ctx, what: what, fn: func(ctx context.Context, t unitTx) (exchange.Posting, error) {
		v, p, err := fn(ctx, t)
		*box = v
		return p, err
	}}
	if err := s.writer.submit(hint[:], u); err != nil {
		return zero, err
	}
	return *box, nil
}
