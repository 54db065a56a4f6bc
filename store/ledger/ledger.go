// Package ledger keeps the books: it applies postings to accounts and holds, and appends what changes to the event log,
// in the transaction of the change that it belongs to.
//
// # The books
//
// Entries are immutable and sum to zero in every asset. The code never writes balances: a trigger applies the lines of
// an entry, and the amounts of holds, to the accounts, so a line without its effect can't exist. A check keeps the
// available balance of an account at zero or above unless its kind may be negative.
//
// # Writing
//
// Changes that post go through a coalescing writer (see writer.go), which combines changes that wait at the same moment
// into one transaction. This is only an optimisation: the statements contain every guard themselves, so several
// processes may write at once.
//
// It knows no object but accounts, entries and holds. Its errors are those of PostgreSQL, of the caller's functions,
// and *exchange.Error for what it refuses itself; the store translates them.
package ledger

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// Ledger writes the books of one database. It is safe for concurrent use.
type Ledger struct {
	db     *pg.DB
	now    func() time.Time
	log    *slog.Logger
	writer *writer

	mu       sync.RWMutex
	accounts map[exchange.AccountRef]int64 // ids; accounts are never deleted
}

// Open returns the ledger of a database. now is the time of what is written. The caller must Close it before db.
func Open(db *pg.DB, now func() time.Time, log *slog.Logger) *Ledger {
	l := &Ledger{db: db, now: now, log: log, accounts: map[exchange.AccountRef]int64{}}
	l.writer = startWriter(l, shardsFor(db.MaxConns()))
	return l
}

// Close refuses new and waiting changes, and returns when the running transactions have ended.
func (l *Ledger) Close() { l.writer.close() }

// Post books a posting atomically. An entry whose key was booked with the same content, and a repeated hold step,
// change nothing; a key with another content is CodeConflict, too small a balance CodeInsufficientFunds. Growing a
// hold is the one step whose repetition can't be detected, so it needs an entry beside it or a caller that guards it.
func (l *Ledger) Post(ctx context.Context, p exchange.Posting) error {
	return l.writer.submit(meetingPoint(p), &unit{ctx: ctx, posting: p})
}

// meetingPoint is a key that concurrent postings like this one probably share.
func meetingPoint(p exchange.Posting) []byte {
	switch {
	case len(p.Entries) > 0 && len(p.Entries[0].Lines) > 0:
		return []byte(p.Entries[0].Lines[0].Account.Code())
	case len(p.Holds) > 0 && p.Holds[0].Hold.Account.Kind != "":
		return []byte(p.Holds[0].Hold.Account.Code())
	case len(p.Holds) > 0:
		return p.Holds[0].Hold.ID[:]
	}
	return nil
}

// Change runs fn and books the posting that it returns, in one transaction with other changes that wait. fn may run
// several times and must have no effect except through its transaction. The hint names the object that concurrent
// changes share. A caller whose context ends gets the context's error, but its change may still be committed.
func (l *Ledger) Change(ctx context.Context, hint uuid.UUID, fn func(context.Context, Tx) (exchange.Posting, error)) error {
	return l.writer.submit(hint[:], &unit{ctx: ctx, fn: fn})
}

// InTx runs fn in a transaction of its own and commits unless fn fails. A deadlock or serialization
// failure repeats it, so fn must set its results anew each time.
func (l *Ledger) InTx(ctx context.Context, fn func(Tx) error) error {
	return l.db.InTx(ctx, func(tx pg.Tx) error {
		t := l.tx(tx)
		if err := fn(t); err != nil {
			return err
		}
		return t.log.write(ctx, tx)
	})
}

// Snapshot starts a read-only transaction that sees the database as of one moment. It ends with Rollback.
func (l *Ledger) Snapshot(ctx context.Context) (Tx, error) {
	tx, err := l.db.Snapshot(ctx)
	return l.tx(tx), err
}

// Tx is a transaction with what is to be written into the event log at its end.
type Tx struct {
	pg.Tx
	log *eventLog
	now func() time.Time
}

func (l *Ledger) tx(tx pg.Tx) Tx { return Tx{tx, &eventLog{}, l.now} }

// Savepoint runs fn so that its failure undoes its own work and records only. The error is about the transaction,
// which can't go on then; refused is what fn returned otherwise.
func (t Tx) Savepoint(ctx context.Context, fn func() error) (refused, err error) {
	noted := len(t.log.lines)
	refused, err = t.Tx.Savepoint(ctx, fn)
	if refused != nil {
		t.log.lines = t.log.lines[:noted] // what was undone did not happen
	}
	return refused, err
}
