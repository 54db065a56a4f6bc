// Package store keeps Kivuko's books and objects in PostgreSQL.
//
// # Model
//
// Every object that moves money has a row with a status and a version. A change of an object is one
// database transaction: the row moves under the guard of its state machine, the ledger is posted, an
// event is appended with the object as of then, and an audit row says who did it. Either all of it
// is there or nothing.
//
// # The ledger
//
// Entries are immutable and sum to zero in every asset. Balances are never written by the service: a
// trigger applies the lines of an entry, and the amounts of holds, to the accounts, so a line without
// its effect can't exist. A check keeps the available balance of an account at zero or above unless
// its kind may go below.
//
// # Writing
//
// Changes that post pass through a coalescing writer (see writer.go), which puts changes that wait at
// the same moment into one transaction. It is an optimisation only: the statements hold every guard
// themselves, so several processes may write at once.
//
// # What repeats
//
// Callers are activities and retried requests, so every method that changes something may run twice
// with the same arguments: it then finds its own work by a business key or an id and returns it.
//
// # Errors
//
// Every error is an *exchange.Error. CodeUnavailable means that the outcome may be unknown: calling
// again with the same ids is safe and tells.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver named "postgres"

	"kivuko/exchange"
)

// DefaultMaxConns is the size of a pool. Pools stay small on purpose: a handful of connections per
// core gives more throughput than many, because waiting happens in the process instead of on locks.
const DefaultMaxConns = 8

// Options configure a Store.
type Options struct {
	MaxConns int              // connections in the pool; DefaultMaxConns when zero
	Now      func() time.Time // the clock; the time in UTC with milliseconds when nil
	Logger   *slog.Logger     // slog.Default when nil
	Limits   Limits           // what customers may ask for at a time; DefaultLimits where zero
	// Commits watches commits, see commit; nil: they are not watched. A store that is watched writes in transactions alone.
	Commits func(context.Context) func(committed bool)
}

// Store is a pool of connections and the writer in front of it. It is safe for concurrent use.
type Store struct {
	db      *sqlx.DB
	clock   func() time.Time
	log     *slog.Logger
	limits  Limits
	writer  *writer
	commits func(context.Context) func(committed bool)

	mu       sync.RWMutex
	prepared map[string]*sqlx.Stmt
	wanted   map[string]bool               // queries that a transaction used unprepared
	accounts map[exchange.AccountRef]int64 // ids; accounts are never deleted
}

// Open connects to a migrated database. The caller must Close the store.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	db, err := sqlx.Open("postgres", withSettings(url, o.Commits != nil))
	if err != nil {
		return nil, exchange.Wrap(exchange.CodeInternal, err, "The database URL can't be read.")
	}
	if o.MaxConns == 0 {
		o.MaxConns = DefaultMaxConns
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	db.SetMaxOpenConns(o.MaxConns)
	db.SetMaxIdleConns(o.MaxConns)
	s := &Store{
		db: db, clock: o.Now, log: o.Logger, limits: o.Limits.orDefault(), commits: o.Commits, prepared: map[string]*sqlx.Stmt{}, wanted: map[string]bool{},
		accounts: map[exchange.AccountRef]int64{},
	}
	if err := s.Ping(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	s.writer = startWriter(s, lanesFor(o.MaxConns))
	return s, nil
}

// Pool returns the pool of connections, whose statistics are measured.
func (s *Store) Pool() *sql.DB { return s.db.DB }

// maxLockWait is how long a statement waits for a lock. It bounds what nobody watches over, see unwatched.
const maxLockWait = 30 * time.Second

// withSettings makes sessions prefer indexes. Statements are prepared once, and a plan that was made while
// a table was small would go on reading all of it as it grows, until the statistics are next renewed.
// Lists, which are planned each time, turn this off (see page). Where commits are watched, PostgreSQL refuses what is
// written outside of a transaction of ours, which could not be watched.
func withSettings(dsn string, watched bool) string {
	settings := fmt.Sprintf("enable_seqscan=off jit=off lock_timeout=%d", maxLockWait.Milliseconds())
	if watched {
		settings += " default_transaction_read_only=on"
	}
	if !strings.Contains(dsn, "://") {
		return dsn + " " + settings
	}
	join := "?"
	if strings.Contains(dsn, "?") {
		join = "&"
	}
	return dsn + join + strings.ReplaceAll(settings, " ", "&")
}

// Close lets the writer finish what it has begun, refuses what still waits, and closes the pool.
func (s *Store) Close() error {
	s.writer.close()
	return translate(s.db.Close(), "store")
}

// Ping asks the database whether it is there.
func (s *Store) Ping(ctx context.Context) error { return translate(s.db.PingContext(ctx), "database") }

// now is the store's time, in UTC with milliseconds, the precision of every stored time.
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Millisecond) }

// statement prepares a constant query once per pool. Queries built at run time must not come here,
// because the map only grows.
func (s *Store) statement(ctx context.Context, query string) (*sqlx.Stmt, error) {
	s.mu.RLock()
	st := s.prepared[query]
	s.mu.RUnlock()
	if st != nil {
		return st, nil
	}
	st, err := s.db.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.prepared[query]; other != nil {
		_ = st.Close() //nolint:sqlclosecheck // only the one that came second
		return other, nil
	}
	s.prepared[query] = st
	return st, nil
}

// read runs a prepared query for one row outside a transaction.
func (s *Store) read(ctx context.Context, dest any, query string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	st, err := s.statement(ctx, query) //nolint:sqlclosecheck // kept, by the pool for good or by the transaction to its end
	if err != nil {
		return err
	}
	return st.GetContext(s.unwatched(ctx), dest, args...)
}

// write runs one prepared statement as a transaction of its own, and returns how many rows it touched.
func (s *Store) write(ctx context.Context, what, query string, args ...any) (n int64, err error) {
	if s.commits != nil {
		err = s.inTx(ctx, what, func(t unitTx) error {
			n, err = t.exec(ctx, query, args...)
			return err
		})
		return n, err
	}
	if err := ctx.Err(); err != nil {
		return 0, translate(err, what)
	}
	st, err := s.statement(ctx, query) //nolint:sqlclosecheck // kept by the pool for good
	if err != nil {
		return 0, translate(err, what)
	}
	r, err := st.ExecContext(s.unwatched(ctx), args...)
	if err != nil {
		return 0, translate(err, what)
	}
	n, err = r.RowsAffected()
	return n, translate(err, what)
}

// unwatched is a context for one statement that touches a row or two, which the driver would watch with two
// goroutines that take longer than the statement. All that it could wait for is a lock, and maxLockWait ends
// that. Where no connection is free the statement has to wait for one first, and stays watched.
func (s *Store) unwatched(ctx context.Context) context.Context {
	if pool := s.db.Stats(); pool.InUse >= pool.MaxOpenConnections {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// readAll runs a prepared query for many rows outside a transaction.
func (s *Store) readAll(ctx context.Context, dest any, query string, args ...any) error {
	st, err := s.statement(ctx, query) //nolint:sqlclosecheck // kept, by the pool for good or by the transaction to its end
	if err != nil {
		return err
	}
	return st.SelectContext(ctx, dest, args...)
}

// unitTx is a transaction with the store's prepared statements.
//
// Its statements run under the transaction's context, which the driver watches from its beginning to its end
// and ends by asking the server to stop. A second watch over each statement would add nothing but a goroutine,
// which takes longer than many a statement.
type unitTx struct {
	tx      *sqlx.Tx
	s       *Store
	journal *journal
}

func (t unitTx) get(ctx context.Context, dest any, query string, args ...any) error {
	return t.run(ctx, query, func(ctx context.Context, st *sqlx.Stmt) error { return st.GetContext(ctx, dest, args...) })
}

func (t unitTx) all(ctx context.Context, dest any, query string, args ...any) error {
	return t.run(ctx, query, func(ctx context.Context, st *sqlx.Stmt) error { return st.SelectContext(ctx, dest, args...) })
}

// exec runs a statement and returns how many rows it touched.
func (t unitTx) exec(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = t.run(ctx, query, func(ctx context.Context, st *sqlx.Stmt) error {
		r, err := st.ExecContext(ctx, args...)
		if err == nil {
			n, err = r.RowsAffected()
		}
		return err
	})
	return n, err
}

// run prepares a statement and does something with it, unless the transaction's time is over.
func (t unitTx) run(ctx context.Context, query string, do func(context.Context, *sqlx.Stmt) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	inside := context.WithoutCancel(ctx)
	st, err := t.s.statementIn(inside, t.tx, query)
	if err == nil {
		err = do(inside, st)
	}
	if err != nil && ctx.Err() != nil {
		return errors.Join(ctx.Err(), err) // the watch has ended the transaction
	}
	return err
}

// one runs a statement that must touch exactly one row.
func (t unitTx) one(ctx context.Context, query string, args ...any) error {
	n, err := t.exec(ctx, query, args...)
	if err == nil && n != 1 {
		err = errChangedMeanwhile
	}
	return err
}

// statementIn binds a prepared statement to a transaction. A statement that the pool does not know
// yet is prepared on the transaction's own connection, because asking the pool for another connection
// while holding one can lock a busy pool up; the next transaction finds it prepared.
func (s *Store) statementIn(ctx context.Context, tx *sqlx.Tx, query string) (*sqlx.Stmt, error) {
	s.mu.RLock()
	st := s.prepared[query]
	s.mu.RUnlock()
	if st != nil {
		return tx.StmtxContext(ctx, st), nil
	}
	s.mu.Lock()
	s.wanted[query] = true
	s.mu.Unlock()
	return tx.PreparexContext(ctx, query)
}

// begin starts a transaction, after preparing what earlier ones had to use unprepared.
func (s *Store) begin(ctx context.Context) (*sqlx.Tx, error) {
	s.mu.Lock()
	var missing []string
	for q := range s.wanted {
		missing = append(missing, q)
	}
	clear(s.wanted)
	s.mu.Unlock()
	for _, q := range missing {
		if _, err := s.statement(ctx, q); err != nil { //nolint:sqlclosecheck // kept, by the pool for good or by the transaction to its end
			return nil, err
		}
	}
	return s.db.BeginTxx(ctx, nil)
}

// maxRetries bounds how often a transaction that lost against another one is repeated.
const maxRetries = 8

// inTx runs fn in a transaction of its own and commits unless fn fails. A deadlock or serialization
// failure repeats it, so fn must set its results anew each time.
func (s *Store) inTx(ctx context.Context, what string, fn func(unitTx) error) error {
	var err error
	watch := s.watch(ctx)
	for try := range maxRetries {
		if err = s.once(ctx, fn, watch); !lostRace(err) {
			break
		}
		if err := pause(ctx, try); err != nil {
			return translate(err, what)
		}
	}
	return translate(err, what)
}

func (s *Store) once(ctx context.Context, fn func(unitTx) error, watch func(committed bool)) error {
	tx, err := s.begin(ctx)
	if err != nil {
		return err
	}
	t := unitTx{tx, s, &journal{}}
	err = fn(t)
	if err == nil {
		err = t.tell(ctx)
	}
	if err != nil {
		return errors.Join(err, rollback(tx))
	}
	return s.commit(ctx, tx, watch)
}

// watch returns what is to be called around the commit of a change, nil where commits are not watched. It is called by who
// asks for the change, on the goroutine of the caller.
func (s *Store) watch(ctx context.Context) func(committed bool) {
	if s.commits == nil {
		return nil
	}
	return s.commits(ctx)
}

// commit commits a transaction. Those who watch are called before, when it has written something, and after.
func (s *Store) commit(ctx context.Context, tx *sqlx.Tx, watches ...func(committed bool)) error {
	if s.commits == nil {
		return tx.Commit()
	}
	var wrote bool
	if err := tx.GetContext(ctx, &wrote, `SELECT pg_current_xact_id_if_assigned() IS NOT NULL`); err != nil {
		return errors.Join(err, rollback(tx))
	}
	if !wrote {
		return tx.Commit()
	}
	for _, watch := range watches {
		watch(false)
	}
	err := tx.Commit()
	for _, watch := range watches {
		watch(true)
	}
	return err
}

func rollback(tx *sqlx.Tx) error {
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}
