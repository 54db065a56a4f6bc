package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// cursorRow is a row of deposit_cursors with the newest block that was seen above it.
type cursorRow struct {
	Network     exchange.Network
	Started     int64
	FinalNumber int64
	FinalID     string
	FinalTime   sql.NullTime
	LinkID      string
	StartedAt   time.Time
	UpdatedAt   time.Time
	TipNumber   sql.NullInt64
	TipID       sql.NullString
	TipParent   sql.NullString
	TipTime     sql.NullTime
	TipLink     sql.NullString
}

func (r cursorRow) cursor() exchange.DepositCursor {
	c := exchange.DepositCursor{
		Network: r.Network, Started: height(r.Started), LinkID: r.LinkID, StartedAt: r.StartedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
		Final: exchange.ChainBlock{Number: height(r.FinalNumber), ID: r.FinalID, Time: utc(r.FinalTime), Skipped: r.FinalID == ""},
	}
	c.Tip, c.TipLink = c.Final, c.LinkID
	if r.TipNumber.Valid {
		c.Tip = exchange.ChainBlock{
			Number: height(r.TipNumber.Int64), ID: r.TipID.String, Parent: r.TipParent.String, Time: utc(r.TipTime), Skipped: r.TipID.String == "",
		}
	}
	if r.TipLink.Valid {
		c.TipLink = r.TipLink.String
	}
	return c
}

// height is a block number as the database has it; it is never negative there.
func height(n int64) uint64 { return uint64(max(n, 0)) }

// blockNumber is a block number as the database stores it. Numbers are far from the limit.
func blockNumber(n uint64) int64 { return int64(n) } //nolint:gosec // G115: see above

const readCursor = `
SELECT c.network, c.started, c.final_number, c.final_id, c.final_time, c.link_id, c.started_at, c.updated_at,
    tip.number AS tip_number, tip.id AS tip_id, tip.parent AS tip_parent, tip.at AS tip_time, link.id AS tip_link
FROM deposit_cursors c
LEFT JOIN LATERAL (SELECT number, id, parent, at FROM deposit_blocks b WHERE b.network = c.network ORDER BY number DESC LIMIT 1) tip ON true
LEFT JOIN LATERAL (SELECT id FROM deposit_blocks b WHERE b.network = c.network AND NOT skipped ORDER BY number DESC LIMIT 1) link ON true
WHERE c.network = $1`

// DepositCursor reads how far the deposits of a network were read; false before the first start.
func (s *Store) DepositCursor(ctx context.Context, n exchange.Network) (exchange.DepositCursor, bool, error) {
	var rows []cursorRow
	if err := s.db.All(ctx, &rows, readCursor, n); err != nil || len(rows) == 0 {
		return exchange.DepositCursor{}, false, translate(err, "deposit cursor")
	}
	return rows[0].cursor(), true, nil
}

// depositsLock is the lock object that serialises all changes of a network's deposits.
func depositsLock(n exchange.Network) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("kivuko deposits "+string(n)))
}

// watching is the principal of the chain watch.
var watching = exchange.System("deposits")

// lockDeposits serialises everything that concerns a network's deposits: blocks, and flows that begin to wait, so that
// a wait and its money can't miss each other.
const lockDeposits = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko deposits ' || $1::text, 0))`

func (t unitTx) lockDeposits(ctx context.Context, n exchange.Network) error {
	_, err := t.Exec(ctx, lockDeposits, n)
	return err
}

// depositCursor reads the cursor of a network whose deposits are locked.
func (t unitTx) depositCursor(ctx context.Context, n exchange.Network) (exchange.DepositCursor, bool, error) {
	var rows []cursorRow
	if err := t.All(ctx, &rows, readCursor, n); err != nil || len(rows) == 0 {
		return exchange.DepositCursor{}, false, err
	}
	return rows[0].cursor(), true, nil
}

const insertCursor = `
INSERT INTO deposit_cursors (network, started, final_number, final_id, final_time, link_id, started_at, updated_at)
VALUES ($1, $2, $2, $3, $4, $3, $5, $5)`

// StartDeposits sets where the reading of a network's deposits begins: after the given block, which must be final. If
// it has begun already, nothing changes and the existing cursor is returned.
func (s *Store) StartDeposits(ctx context.Context, n exchange.Network, after exchange.ChainBlock) (exchange.DepositCursor, error) {
	return change(ctx, s, "deposit cursor", depositsLock(n), func(ctx context.Context, t unitTx) (exchange.DepositCursor, exchange.Posting, error) {
		var none exchange.Posting
		if err := t.lockDeposits(ctx, n); err != nil {
			return exchange.DepositCursor{}, none, err
		}
		if c, found, err := t.depositCursor(ctx, n); err != nil || found {
			return c, none, err
		}
		if _, err := t.Exec(ctx, insertCursor, n, blockNumber(after.Number), after.ID, nullTime(after.Time), t.s.now()); err != nil {
			return exchange.DepositCursor{}, none, err
		}
		c, _, err := t.depositCursor(ctx, n)
		if err != nil {
			return c, none, err
		}
		return c, none, t.record(ctx, auditEvent{
			by: watching, object: "deposit_cursor", id: depositsLock(n), name: "deposit_cursor.started",
			after: map[string]any{"network": n, "block": after.Number, "block_id": after.ID},
		})
	})
}

const advanceCursor = `
UPDATE deposit_cursors SET final_number = $2, final_id = $3, final_time = coalesce($4, final_time), link_id = CASE WHEN $3 = '' THEN link_id ELSE $3 END,
    updated_at = $5
WHERE network = $1 AND final_number = $2 - 1`

const dropFinalBlocks = `DELETE FROM deposit_blocks WHERE network = $1 AND number <= $2`

const dropBlocksFrom = `DELETE FROM deposit_blocks WHERE network = $1 AND number >= $2`

const readSeenID = `SELECT id FROM deposit_blocks WHERE network = $1 AND number = $2`

// advance moves the cursor to a final block after all its movements were processed. It reports whether the blocks seen
// above it belong to another fork; those are dropped.
func (t unitTx) advance(ctx context.Context, n exchange.Network, b exchange.ChainBlock) (forked bool, err error) {
	var seen []string
	if err := t.All(ctx, &seen, readSeenID, n, blockNumber(b.Number)); err != nil {
		return false, err
	}
	if len(seen) == 1 && seen[0] != b.ID {
		forked = true
		if _, err := t.Exec(ctx, dropBlocksFrom, n, blockNumber(b.Number)); err != nil {
			return forked, err
		}
	}
	if _, err := t.Exec(ctx, dropFinalBlocks, n, blockNumber(b.Number)); err != nil {
		return forked, err
	}
	return forked, t.One(ctx, advanceCursor, n, blockNumber(b.Number), b.ID, nullTime(b.Time), t.s.now())
}

const insertSeenBlock = `INSERT INTO deposit_blocks (network, number, id, parent, skipped, at) VALUES ($1, $2, $3, $4, $5, $6)`

const deleteSeenBlock = `DELETE FROM deposit_blocks WHERE network = $1 AND number = $2 AND id = $3
    AND NOT EXISTS (SELECT FROM deposit_blocks WHERE network = $1 AND number > $2)`

// DropSeenBlock drops the newest seen block because the chain replaced it, and orphans its movements. It changes
// nothing when the block is no longer the newest.
func (s *Store) DropSeenBlock(ctx context.Context, n exchange.Network, b exchange.ChainBlock) error {
	_, err := change(ctx, s, "block", depositsLock(n), func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		var none exchange.Posting
		if err := t.lockDeposits(ctx, n); err != nil {
			return struct{}{}, none, err
		}
		gone, err := t.Exec(ctx, deleteSeenBlock, n, blockNumber(b.Number), b.ID)
		if err == nil && gone == 1 {
			err = t.orphan(ctx, n, b.Number, maxHeight)
		}
		return struct{}{}, none, err
	})
	return err
}
