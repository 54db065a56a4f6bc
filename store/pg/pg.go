// Package pg is the store's way to PostgreSQL: a pool with prepared statements, transactions that are
// repeated when they lose against another one, and errors that say what to do next.
//
// It knows no table. What a statement means is the store's.
package pg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

// DefaultMaxConns is the size of a pool. Pools are small on purpose: a few connections per core give more throughput
// than many, because requests then wait in the process instead of on locks.
const DefaultMaxConns = 8

// The server's own limits of a statement: maxLockWait of its waiting for a lock, maxStatement of all of it. They bound statements
// that run without a deadline, see detached, and those whose process has gone.
const (
	maxLockWait  = 30 * time.Second
	maxStatement = 2 * time.Minute
)

// Watch is called around the commit of a change that wrote something: before it, and after it.
type Watch = func(committed bool)

// DB is a pool of connections. It is safe for concurrent use.
type DB struct {
	pool    *sqlx.DB
	commits func(context.Context) Watch

	mu       sync.RWMutex
	prepared map[string]*sqlx.Stmt
	missing  map[string]bool // queries that a transaction had to prepare for itself
}

// Open connects to a database. A maxConns of zero means DefaultMaxConns, a nil connect Connect. commits, if not nil, returns the
// Watch for a change; then everything is written in transactions.
func Open(ctx context.Context, url string, maxConns int, connect func(dsn string) (*sql.DB, error), commits func(context.Context) Watch) (*DB, error) {
	if connect == nil {
		connect = Connect
	}
	connected, err := connect(withSettings(url, commits != nil))
	if err != nil {
		return nil, err
	}
	pool := sqlx.NewDb(connected, "postgres")
	if maxConns == 0 {
		maxConns = DefaultMaxConns
	}
	pool.SetMaxOpenConns(maxConns)
	pool.SetMaxIdleConns(maxConns)
	d := &DB{pool: pool, commits: commits, prepared: map[string]*sqlx.Stmt{}, missing: map[string]bool{}}
	if err := d.Ping(ctx); err != nil {
		_ = pool.Close()
		return nil, err
	}
	return d, nil
}

// withSettings makes sessions prefer indexes. Statements are prepared once, and a plan made while a table was small
// would keep scanning it as it grows, until its statistics are updated. Planned turns this off for its queries. Where
// commits are watched, PostgreSQL refuses writes outside of our transactions, which could not be watched.
func withSettings(dsn string, watched bool) string {
	settings := fmt.Sprintf("enable_seqscan=off jit=off lock_timeout=%d statement_timeout=%d idle_in_transaction_session_timeout=%[2]d",
		maxLockWait.Milliseconds(), maxStatement.Milliseconds())
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

// Pool returns the pool of connections, for its statistics.
func (d *DB) Pool() *sql.DB { return d.pool.DB }

// MaxConns is the size of the pool.
func (d *DB) MaxConns() int { return d.pool.Stats().MaxOpenConnections }

// Close closes the pool.
func (d *DB) Close() error { return Translate(d.pool.Close(), "store") }

// Ping checks that the database responds.
func (d *DB) Ping(ctx context.Context) error { return Translate(d.pool.PingContext(ctx), "database") }

// statement prepares a constant query once per pool. Never pass queries built at run time: the map only grows.
func (d *DB) statement(ctx context.Context, query string) (*sqlx.Stmt, error) {
	d.mu.RLock()
	st := d.prepared[query]
	d.mu.RUnlock()
	if st != nil {
		return st, nil
	}
	st, err := d.pool.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if other := d.prepared[query]; other != nil {
		_ = st.Close() //nolint:sqlclosecheck // only the one that came second
		return other, nil
	}
	d.prepared[query] = st
	return st, nil
}

// Get runs a constant query for one row outside a transaction.
func (d *DB) Get(ctx context.Context, dest any, query string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	st, err := d.statement(ctx, query) //nolint:sqlclosecheck // kept by the pool for good
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(d.detached(ctx), args...)
	return get(rows, err, dest)
}

// All runs a constant query for many rows outside a transaction.
func (d *DB) All(ctx context.Context, dest any, query string, args ...any) error {
	st, err := d.statement(ctx, query) //nolint:sqlclosecheck // kept by the pool for good
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(ctx, args...)
	return all(rows, err, dest)
}

// Built runs a query that was built for its arguments, with ? for each, for many rows outside a transaction.
func (d *DB) Built(ctx context.Context, dest any, query string, args ...any) error {
	rows, err := d.pool.QueryContext(ctx, sqlx.Rebind(sqlx.DOLLAR, query), args...)
	return all(rows, err, dest)
}

// Exec runs one constant statement as a transaction of its own, and returns how many rows it touched.
func (d *DB) Exec(ctx context.Context, query string, args ...any) (n int64, err error) {
	if d.commits != nil {
		err = d.InTx(ctx, func(t Tx) error {
			n, err = t.Exec(ctx, query, args...)
			return err
		})
		return n, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	st, err := d.statement(ctx, query) //nolint:sqlclosecheck // kept by the pool for good
	if err != nil {
		return 0, err
	}
	r, err := st.ExecContext(d.detached(ctx), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// detached is a context for one short statement; the driver would watch it with two goroutines, which cost more than
// the statement. The statement can only wait for a lock, which the server's limits bound, or for a host that vanished, which
// the dialer notices. If no connection is free it has to wait for one first, and keeps its context.
func (d *DB) detached(ctx context.Context) context.Context {
	if pool := d.pool.Stats(); pool.InUse >= pool.MaxOpenConnections {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// Planned runs queries that are planned for their arguments, in one read-only snapshot.
func (d *DB) Planned(ctx context.Context, fn func(Tx) error) error {
	t, err := d.Snapshot(ctx)
	if err != nil {
		return err
	}
	if _, err := t.tx.ExecContext(ctx, `SET LOCAL enable_seqscan = on`); err != nil {
		return errors.Join(err, t.Rollback())
	}
	return errors.Join(fn(t), t.Rollback())
}
