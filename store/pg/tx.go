package pg

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"
)

// maxRetries bounds how often a transaction that lost a race is repeated.
const maxRetries = 8

// Tx is a transaction with the pool's prepared statements.
//
// Its statements run under the transaction's context, which the driver watches for the whole transaction; when it
// ends, the driver asks the server to stop. Watching each statement too would only add a goroutine, which costs more
// than many statements.
type Tx struct {
	tx *sqlx.Tx
	db *DB
}

// Begin starts a transaction, after preparing the statements that earlier ones used unprepared.
func (d *DB) Begin(ctx context.Context) (Tx, error) {
	d.mu.Lock()
	var missing []string
	for q := range d.missing {
		missing = append(missing, q)
	}
	clear(d.missing)
	d.mu.Unlock()
	for _, q := range missing {
		if _, err := d.statement(ctx, q); err != nil { //nolint:sqlclosecheck // kept by the pool for good
			return Tx{}, err
		}
	}
	tx, err := d.pool.BeginTxx(ctx, nil)
	return Tx{tx, d}, err
}

// Snapshot starts a read-only transaction that sees the database as of one moment. It ends with Rollback.
func (d *DB) Snapshot(ctx context.Context) (Tx, error) {
	tx, err := d.pool.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	return Tx{tx, d}, err
}

// InTx runs fn in a transaction of its own and commits unless fn fails. It is repeated like Retry's.
func (d *DB) InTx(ctx context.Context, fn func(Tx) error) error {
	watch := d.Watch(ctx)
	return Retry(ctx, func() error {
		t, err := d.Begin(ctx)
		if err != nil {
			return err
		}
		if err := fn(t); err != nil {
			return errors.Join(err, t.Rollback())
		}
		return t.Commit(ctx, watch)
	})
}

// Retry repeats fn while it fails because of a deadlock or a serialization failure, a few times, so fn must set its
// results anew each time.
func Retry(ctx context.Context, fn func() error) (err error) {
	for try := range maxRetries {
		if err = fn(); !LostRace(err) {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
	return err
}

// Get runs a constant query for one row.
func (t Tx) Get(ctx context.Context, dest any, query string, args ...any) error {
	return t.run(ctx, query, func(ctx context.Context, st *sqlx.Stmt) error {
		rows, err := st.QueryContext(ctx, args...)
		return get(rows, err, dest)
	})
}

// All runs a constant query for many rows.
func (t Tx) All(ctx context.Context, dest any, query string, args ...any) error {
	return t.run(ctx, query, func(ctx context.Context, st *sqlx.Stmt) error {
		rows, err := st.QueryContext(ctx, args...)
		return all(rows, err, dest)
	})
}

// Built runs a query that was built for its arguments, with ? for each, for many rows.
func (t Tx) Built(ctx context.Context, dest any, query string, args ...any) error {
	rows, err := t.tx.QueryContext(ctx, sqlx.Rebind(sqlx.DOLLAR, query), args...)
	return all(rows, err, dest)
}

// BuiltOne is Built for one row.
func (t Tx) BuiltOne(ctx context.Context, dest any, query string, args ...any) error {
	rows, err := t.tx.QueryContext(ctx, sqlx.Rebind(sqlx.DOLLAR, query), args...)
	return get(rows, err, dest)
}

// Exec runs a constant statement and returns how many rows it touched.
func (t Tx) Exec(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = t.run(ctx, query, func(ctx context.Context, st *sqlx.Stmt) error {
		r, err := st.ExecContext(ctx, args...)
		if err == nil {
			n, err = r.RowsAffected()
		}
		return err
	})
	return n, err
}

// One runs a statement that must touch exactly one row; ErrChangedMeanwhile when it does not.
func (t Tx) One(ctx context.Context, query string, args ...any) error {
	n, err := t.Exec(ctx, query, args...)
	if err == nil && n != 1 {
		err = ErrChangedMeanwhile
	}
	return err
}

// run prepares a statement and runs do with it, unless the transaction's context has ended.
func (t Tx) run(ctx context.Context, query string, do func(context.Context, *sqlx.Stmt) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	inside := context.WithoutCancel(ctx)
	st, err := t.statement(inside, query)
	if err == nil {
		err = do(inside, st)
	}
	if err != nil && ctx.Err() != nil {
		return errors.Join(ctx.Err(), err) // the ended context has ended the transaction
	}
	return err
}

// statement binds a prepared statement to the transaction. A statement that the pool does not know yet is prepared on
// the transaction's own connection, because requesting another connection while holding one can deadlock a busy pool;
// the next transaction finds it prepared.
func (t Tx) statement(ctx context.Context, query string) (*sqlx.Stmt, error) {
	t.db.mu.RLock()
	st := t.db.prepared[query]
	t.db.mu.RUnlock()
	if st != nil {
		return t.tx.StmtxContext(ctx, st), nil
	}
	t.db.mu.Lock()
	t.db.missing[query] = true
	t.db.mu.Unlock()
	return t.tx.PreparexContext(ctx, query)
}

// Savepoint runs fn so that its failure undoes its own work only. The error is about the transaction, which can't go
// on then; refused is what fn returned otherwise.
func (t Tx) Savepoint(ctx context.Context, fn func() error) (refused, err error) {
	if _, err := t.tx.ExecContext(ctx, `SAVEPOINT inner_step`); err != nil {
		return nil, err
	}
	refused = fn()
	if Fatal(refused) {
		return nil, refused
	}
	end := `RELEASE SAVEPOINT inner_step`
	if refused != nil {
		end = `ROLLBACK TO SAVEPOINT inner_step; ` + end
	}
	_, err = t.tx.ExecContext(ctx, end)
	return refused, err
}

// Watch returns the function to call around the commit of a change, nil where commits are not watched. It is called
// on the goroutine of the caller that requests the change.
func (d *DB) Watch(ctx context.Context) Watch {
	if d.commits == nil {
		return nil
	}
	return d.commits(ctx)
}

// Commit commits. Watches are called before it, when the transaction has written something, and after it.
func (t Tx) Commit(ctx context.Context, watches ...Watch) error {
	if t.db.commits == nil {
		return t.tx.Commit()
	}
	var wrote bool
	if err := t.tx.GetContext(ctx, &wrote, `SELECT pg_current_xact_id_if_assigned() IS NOT NULL`); err != nil {
		return errors.Join(err, t.Rollback())
	}
	if !wrote {
		return t.tx.Commit()
	}
	for _, watch := range watches {
		watch(false)
	}
	err := t.tx.Commit()
	for _, watch := range watches {
		watch(true)
	}
	return err
}

// Rollback undoes what was done. A transaction that is over stays as it is.
func (t Tx) Rollback() error {
	if err := t.tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}
