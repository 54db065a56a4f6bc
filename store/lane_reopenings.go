package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const reopeningColumns = `id, wallet_id, foreign_nonce, next_before, next_after, block, block_id, reason, reopened_by, reopened_at`

// reopeningRow is a row of lane_reopenings.
type reopeningRow struct {
	ID         uuid.UUID
	WalletID   uuid.UUID     `db:"wallet_id"`
	Foreign    sql.NullInt64 `db:"foreign_nonce"`
	Before     int64         `db:"next_before"`
	After      int64         `db:"next_after"`
	Block      int64
	BlockID    string `db:"block_id"`
	Reason     string
	ReopenedBy uuid.UUID `db:"reopened_by"`
	ReopenedAt time.Time `db:"reopened_at"`
}

func (r reopeningRow) reopening() exchange.LaneReopening {
	o := exchange.LaneReopening{
		ID: r.ID, WalletID: r.WalletID, Before: height(r.Before), After: height(r.After), Block: exchange.ChainBlock{Number: height(r.Block), ID: r.BlockID},
		Reason: r.Reason, ReopenedBy: r.ReopenedBy, ReopenedAt: r.ReopenedAt.UTC(),
	}
	if r.Foreign.Valid {
		n := height(r.Foreign.Int64)
		o.Foreign = &n
	}
	return o
}

const readReopening = `SELECT ` + reopeningColumns + ` FROM lane_reopenings WHERE id = $1`

const insertReopening = `
INSERT INTO lane_reopenings (` + reopeningColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING ` + reopeningColumns

const undecided = `
SELECT EXISTS (SELECT FROM chain_attempts WHERE lane = $1 AND status IN ('signed', 'broadcast', 'included', 'replaced')) AS sent,
    EXISTS (SELECT FROM cold_drafts WHERE lane = $1 AND status = 'open') AS handed_out`

// ReopenLane lets a wallet whose sequence is closed send again, from the number that the final chain counts.
// count must have been read from the chain for this decision. The id names it: called again, it returns what
// was done. CodeStateConflict when the lane is open, when the chain may still count more or counts less than
// was given out, and while a transaction of the lane is undecided.
func (s *Store) ReopenLane(ctx context.Context, id, walletID uuid.UUID, reason string, count exchange.SenderCount, by exchange.Principal) (exchange.LaneReopening, error) {
	var done exchange.LaneReopening
	if err := require(reason != "" && len([]rune(reason)) <= exchange.MaxLaneReason, "/note", "required", "must say why, in at most 500 characters"); err != nil {
		return done, err
	}
	err := s.inTx(ctx, "lane", func(t unitTx) error {
		var old []reopeningRow
		if err := t.all(ctx, &old, readReopening, id); err != nil {
			return err
		}
		if len(old) == 1 {
			if done = old[0].reopening(); done.WalletID != walletID {
				return exchange.Errorf(exchange.CodeConflict, "The id belongs to another wallet's lane.")
			}
			return nil
		}
		lane, err := t.closedLane(ctx, walletID, count)
		if err != nil {
			return err
		}
		var r reopeningRow
		err = t.get(ctx, &r, insertReopening, id, walletID, lane.Foreign, lane.Next, blockNumber(count.Final), blockNumber(count.Block.Number), count.Block.ID,
			reason, by.UserID, t.s.now())
		if err != nil {
			return err
		}
		done = r.reopening()
		before := map[string]any{"next": lane.Next, "foreign_nonce": nil}
		if lane.Foreign.Valid {
			before["foreign_nonce"] = lane.Foreign.Int64
		}
		return t.audit(ctx, by, "wallet.lane_reopened", "wallet", walletID, before,
			map[string]any{"reopening_id": id, "next": count.Final, "block": count.Block.Number, "block_id": count.Block.ID, "reason": reason})
	})
	return done, err
}

// closedLane locks the lane of a wallet, and says why it can't be opened again.
func (t unitTx) closedLane(ctx context.Context, walletID uuid.UUID, count exchange.SenderCount) (laneRow, error) {
	refuse := func(format string, args ...any) (laneRow, error) {
		return laneRow{}, exchange.Errorf(exchange.CodeStateConflict, format, args...)
	}
	var rows []laneRow
	if err := t.all(ctx, &rows, lockLane, walletID); err != nil {
		return laneRow{}, err
	}
	if len(rows) == 0 {
		return refuse("The wallet has no lane: nothing was sent from it, or its network numbers no transactions.")
	}
	lane := rows[0]
	final, next := count.Final, height(lane.Next)
	var open struct {
		Sent      bool
		HandedOut bool `db:"handed_out"`
	}
	if err := t.get(ctx, &open, undecided, walletID); err != nil {
		return lane, err
	}
	switch {
	case !lane.Foreign.Valid && final <= next:
		return refuse("The lane is open: the chain counts %d transactions and the next number is %d.", final, next)
	case open.Sent:
		return refuse("A transaction of ours may still be included. Wait until every payment of the wallet is decided.")
	case open.HandedOut:
		return refuse("A transaction of the wallet was handed out for signing. Wait until it comes back or lapses.")
	case count.Latest != final:
		return refuse("The chain counts %d transactions, of which %d are final. Wait for the others.", count.Latest, final)
	case final < next || (lane.Foreign.Valid && final <= height(lane.Foreign.Int64)):
		return refuse("The final chain counts %d transactions of the wallet, and numbers up to %d were given out. The node is behind, or of another chain.", final, next)
	}
	return lane, nil
}
