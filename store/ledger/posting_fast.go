package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// A single unit is posted without reading first. Its statements contain the conditions on balances, and the tables
// enforce them too: unique keys, the sum of an entry, the available balance. A refused posting is undone and repeated
// with the slow path, which detects repetitions and explains refusals. So the fast path only handles success, by far
// the most frequent case.

// errRefused requests the slow path.
var errRefused = errors.New("store: a posting was not written at once")

// directly is a statement of a posting and the number of rows that it must touch.
type directly struct {
	query string
	args  []any
	rows  int64
}

// The accounts are locked first, in the order of their ids, as everywhere (see lockAccounts). The locks are counted because
// PostgreSQL stops at the first of them when it only has to know whether there are any. Lines get their ids under all locks of
// their accounts: so the lines of an account are in the order in which they were committed.
const captureHold = `
WITH locked AS MATERIALIZED (
    SELECT id FROM ledger_accounts WHERE id = ANY (ARRAY(SELECT unnest($2::bigint[]) UNION SELECT account_id FROM holds WHERE id = $1))
    ORDER BY id FOR NO KEY UPDATE)
UPDATE holds SET status = 'captured', updated_at = $3 WHERE id = $1 AND status = 'held' AND (SELECT count(*) FROM locked) > 0`

const splitHold = `
WITH locked AS MATERIALIZED (SELECT id FROM ledger_accounts WHERE id = $3::bigint FOR NO KEY UPDATE),
parent AS (
    UPDATE holds SET amount = amount - $5::numeric, updated_at = $8::timestamptz
    WHERE id = $4 AND account_id = $3::bigint AND status = 'held' AND amount >= $5::numeric AND EXISTS (SELECT FROM locked) RETURNING id)
INSERT INTO holds (id, key, account_id, parent_id, placed, amount, status, object_type, object_id, created_at, updated_at)
SELECT $1::uuid, $2, $3::bigint, parent.id, $5::numeric, $5::numeric, 'held', $6, $7::uuid, $8::timestamptz, $8::timestamptz FROM parent`

const placeHold = `
INSERT INTO holds (id, key, account_id, placed, amount, status, object_type, object_id, created_at, updated_at)
VALUES ($1, $2, $3, $4::numeric, $4::numeric, 'held', $5, $6, $7, $7)`

const insertLockedEntries = `
WITH locked AS MATERIALIZED (SELECT id FROM ledger_accounts WHERE id = ANY ($8::bigint[]) ORDER BY id FOR NO KEY UPDATE),
e AS (
    INSERT INTO ledger_entries (key, digest, kind, object_type, object_id, at)
    SELECT key, digest, kind, object_type, object_id, $6::timestamptz
    FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::uuid[]) AS n (key, digest, kind, object_type, object_id)
    WHERE (SELECT count(*) FROM locked) > 0
    RETURNING id, key)
INSERT INTO ledger_lines (entry_id, account_id, amount)
SELECT e.id, l.account_id, l.amount
FROM unnest($7::text[], $8::bigint[], $9::numeric[]) AS l (key, account_id, amount) JOIN e ON e.key = l.key`

// direct returns the statements of a posting in an order that keeps every account above its minimum: releases, lines,
// reservations. It returns false for a posting that needs the slow path: with new accounts, or with hold steps that
// depend on more than the hold.
func (l *Ledger) direct(p exchange.Posting) ([]directly, bool) {
	now := l.now()
	ids, ok := l.knownAccounts(p)
	if !ok || len(p.Holds) > 1 {
		return nil, false // several holds would lock several accounts, each by itself
	}
	var frees, reserves []directly
	for _, op := range p.Holds {
		h := op.Hold
		amount, account := h.Amount.Decimal(), ids[h.Account]
		switch op.Verb {
		case exchange.HoldCapture:
			frees = append(frees, directly{captureHold, []any{h.ID, pq.Array(linesOf(p, ids)), now}, 1})
		case exchange.HoldSplit:
			reserves = append(reserves, directly{splitHold, []any{h.ID, h.Key, account, h.ParentID, amount, h.ObjectType, h.ObjectID, now}, 1})
		case exchange.HoldPlace:
			reserves = append(reserves, directly{placeHold, []any{h.ID, h.Key, account, amount, h.ObjectType, h.ObjectID, now}, 1})
		case exchange.HoldGrow, exchange.HoldShrink, exchange.HoldRelease, exchange.HoldReturn:
			return nil, false
		}
	}
	if len(p.Entries) > 0 {
		frees = append(frees, entriesDirectly(p, ids, now))
	}
	return append(frees, reserves...), len(p.Entries) == 0 || len(reserves) == 0
}

func entriesDirectly(p exchange.Posting, ids map[exchange.AccountRef]int64, now time.Time) directly {
	var keys, kinds, types, lineKeys, amounts []string
	var digests [][]byte
	var objects []sql.NullString
	for _, e := range p.Entries {
		keys, kinds, types = append(keys, e.Key), append(kinds, e.Kind), append(types, e.ObjectType)
		digests = append(digests, digest(e))
		objects = append(objects, sql.NullString{String: e.ObjectID.String(), Valid: e.ObjectID != uuid.Nil})
		for _, l := range e.Lines {
			lineKeys, amounts = append(lineKeys, e.Key), append(amounts, l.Amount.Decimal().String())
		}
	}
	return directly{insertLockedEntries, []any{
		pq.Array(keys), pq.Array(digests), pq.Array(kinds), pq.Array(types), pq.Array(objects), now,
		pq.Array(lineKeys), pq.Array(linesOf(p, ids)), pq.Array(amounts),
	}, int64(len(lineKeys))}
}

// linesOf are the accounts of a posting's lines, in the lines' order.
func linesOf(p exchange.Posting, ids map[exchange.AccountRef]int64) []int64 {
	all := []int64{}
	for _, e := range p.Entries {
		for _, l := range e.Lines {
			all = append(all, ids[l.Account])
		}
	}
	return all
}

// knownAccounts are the ids of a posting's accounts, if all of them are known.
func (l *Ledger) knownAccounts(p exchange.Posting) (map[exchange.AccountRef]int64, bool) {
	ids := map[exchange.AccountRef]int64{}
	l.mu.RLock()
	defer l.mu.RUnlock()
	known := func(ref exchange.AccountRef) bool {
		id, ok := l.accounts[ref]
		ids[ref] = id
		return ok
	}
	for _, e := range p.Entries {
		for _, l := range e.Lines {
			if !known(l.Account) {
				return nil, false
			}
		}
	}
	return ids, !slices.ContainsFunc(p.Holds, func(op exchange.HoldOp) bool {
		names := op.Verb == exchange.HoldPlace || op.Verb == exchange.HoldSplit
		return names && !known(op.Hold.Account)
	})
}

// postAlone writes a posting that is a whole unit by one statement, which is its own transaction. It returns false
// when the posting needs the slow path or was refused.
func (l *Ledger) postAlone(ctx context.Context, p exchange.Posting) bool {
	if validPosting(p) != nil {
		return false
	}
	steps, ok := l.direct(p)
	if !ok || len(steps) != 1 {
		return false
	}
	// A statement that touches another number of rows has written nothing: it either does everything or finds no row.
	// Even a lost response is harmless: the keys show what was written.
	n, err := l.db.Exec(ctx, steps[0].query, steps[0].args...)
	return err == nil && n == steps[0].rows
}

// postDirectly writes the posting of a unit into its transaction, or returns errRefused; the transaction must then be
// rolled back.
func (b *bookkeeper) postDirectly(ctx context.Context, p exchange.Posting) (done bool, err error) {
	if err := validPosting(p); err != nil || len(p.Entries)+len(p.Holds) == 0 {
		return true, err
	}
	steps, ok := b.l.direct(p)
	if !ok {
		return false, nil
	}
	for _, step := range steps {
		n, err := b.t.Exec(ctx, step.query, step.args...)
		switch {
		case pg.Fatal(err):
			return false, err
		case err != nil:
			return false, fmt.Errorf("%w: %w", errRefused, err)
		case n != step.rows:
			return false, errRefused
		}
	}
	return true, nil
}
