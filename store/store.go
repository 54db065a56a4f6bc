// Package store keeps Kivuko's books and objects in PostgreSQL.
//
// # Model
//
// Every object that moves money has a row with a status and a version. A change of an object is one database
// transaction: the row moves under the guard of its state machine, the ledger is posted, an event is appended with the
// object's state, and an audit row names who did it. Either all of it is stored or nothing.
//
// The ledger, the event log and the writer that combines changes into transactions are the package store/ledger.
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
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/ledger"
	"kivuko/store/pg"
)

// Options configure a Store.
type Options struct {
	MaxConns int // connections in the pool; pg.DefaultMaxConns when zero
	// Connect makes the pool of connections; pg.Connect when nil. Tests keep theirs for the next test.
	Connect func(dsn string) (*sql.DB, error)
	Now     func() time.Time // the clock; the time in UTC with milliseconds when nil
	Logger  *slog.Logger     // slog.Default when nil
	Limits  Limits           // what customers may request; DefaultLimits where zero
	// AuditKeys compute the links of the audit log's chain: the first one new links, all of them old ones. None where nothing is
	// sealed or verified.
	AuditKeys []exchange.AuditKey
	// Commits returns the watch over the commits of a change, see pg.Open; nil disables that.
	Commits func(context.Context) pg.Watch
}

// Store is a pool of connections and the writer in front of it. It is safe for concurrent use.
type Store struct {
	db     *pg.DB
	clock  func() time.Time
	log    *slog.Logger
	limits Limits
	audit  []exchange.AuditKey
	ledger *ledger.Ledger
}

// Open connects to a migrated database. The caller must Close the store.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	db, err := pg.Open(ctx, url, o.MaxConns, o.Connect, o.Commits)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Store{db: db, clock: o.Now, log: o.Logger, limits: o.Limits.orDefault(), audit: o.AuditKeys}
	s.ledger = ledger.Open(db, s.now, o.Logger)
	return s, nil
}

// Pool returns the pool of connections, for its statistics.
func (s *Store) Pool() *sql.DB { return s.db.Pool() }

// Close lets the writer finish its running transactions, refuses waiting changes, and closes the pool.
func (s *Store) Close() error {
	s.ledger.Close()
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

// unitTx is a transaction of the store.
type unitTx struct {
	ledger.Tx
	s *Store
}

// inTx runs fn in a transaction of its own and commits unless fn fails. A deadlock or serialization
// failure repeats it, so fn must set its results anew each time.
func (s *Store) inTx(ctx context.Context, what string, fn func(unitTx) error) error {
	return translate(s.ledger.InTx(ctx, func(t ledger.Tx) error { return fn(unitTx{t, s}) }), what)
}

// change runs fn and books the posting that it returns, together with other changes that wait (see ledger.Change). fn
// may run several times and must have no effect except through its transaction; the last run's result is returned.
func change[T any](ctx context.Context, s *Store, what string, hint uuid.UUID,
	fn func(context.Context, unitTx) (T, exchange.Posting, error),
) (T, error) {
	var zero T
	box := new(T) // written by the writer, and read only after its verdict
	err := s.ledger.Change(ctx, hint, func(ctx context.Context, t ledger.Tx) (exchange.Posting, error) {
		v, p, err := fn(ctx, unitTx{t, s})
		*box = v
		return p, err
	})
	if err != nil {
		return zero, translate(err, what)
	}
	return *box, nil
}

// document is a value as a jsonb argument, NULL for nil.
func document(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, exchange.Wrap(exchange.CodeInternal, err, "a document can't be encoded as JSON")
	}
	return string(b), nil
}
