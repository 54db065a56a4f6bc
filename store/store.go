// Package store keeps Kivuko's books and objects in PostgreSQL.
//
// # Model
//
// Every object that moves money has a row with a status and a version. A change of an object is one database
// transaction: the row moves under the guard of its state machine, the ledger is posted, an event is appended with the
// object's state, and an audit row names who did it. Either all of it is stored or nothing.
//
// # The ledger
//
// Entries are immutable and sum to zero in every asset. The service never writes balances: a trigger applies the lines
// of an entry, and the amounts of holds, to the accounts, so a line without its effect can't exist. A check keeps the
// available balance of an account at zero or above unless its kind may be negative.
//
// # Writing
//
// Changes that post go through a coalescing writer (see ledger_writer.go), which combines changes that wait at the same
// moment into one transaction. This is only an optimisation: the statements contain every guard themselves, so several
// processes may write at once.
//
// # Repetition
//
// Callers are activities and retried requests, so every method that changes something may run twice with the same
// arguments: it then finds its earlier result by a business key or an id and returns it.
//
// # Errors
//
// Every error is an *exchange.Error. CodeUnavailable means that the outcome may be unknown: calling again with the
// same ids is safe and returns it.
package store

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"time"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// Options configure a Store.
type Options struct {
	MaxConns int              // connections in the pool; pg.DefaultMaxConns when zero
	Now      func() time.Time // the clock; the time in UTC with milliseconds when nil
	Logger   *slog.Logger     // slog.Default when nil
	Limits   Limits           // what customers may request; DefaultLimits where zero
	// Commits returns the watch over the commits of a change, see pg.Open; nil disables that.
	Commits func(context.Context) pg.Watch
}

// Store is a pool of connections and the writer in front of it. It is safe for concurrent use.
type Store struct {
	db     *pg.DB
	clock  func() time.Time
	log    *slog.Logger
	limits Limits
	writer *writer

	mu       sync.RWMutex
	accounts map[exchange.AccountRef]int64 // ids; accounts are never deleted
}

// Open connects to a migrated database. The caller must Close the store.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	db, err := pg.Open(ctx, url, o.MaxConns, o.Commits)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Store{db: db, clock: o.Now, log: o.Logger, limits: o.Limits.orDefault(), accounts: map[exchange.AccountRef]int64{}}
	s.writer = startWriter(s, shardsFor(db.MaxConns()))
	return s, nil
}

// Pool returns the pool of connections, for its statistics.
func (s *Store) Pool() *sql.DB { return s.db.Pool() }

// Close lets the writer finish its running transactions, refuses waiting changes, and closes the pool.
func (s *Store) Close() error {
	s.writer.close()
	return s.db.Close()
}

// Ping checks that the database responds.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// now is the store's time, in UTC with milliseconds, the precision of every stored time.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Millisecond) }

// write runs one constant statement as a transaction of its own, and returns how many rows it touched.
func (s *Store) write(ctx context.Context, what, query string, args ...any) (int64, error) {
	n, err := s.db.Exec(ctx, query, args...)
	return n, translate(err, what)
}

// unitTx is a transaction with what is to be written into the event log at its end.
type unitTx struct {
	pg.Tx
	s        *Store
	eventLog *eventLog
}

// inTx runs fn in a transaction of its own and commits unless fn fails. A deadlock or serialization
// failure repeats it, so fn must set its results anew each time.
func (s *Store) inTx(ctx context.Context, what string, fn func(unitTx) error) error {
	return translate(s.db.InTx(ctx, func(tx pg.Tx) error {
		t := unitTx{tx, s, &eventLog{}}
		if err := fn(t); err != nil {
			return err
		}
		return t.tell(ctx)
	}), what)
}
