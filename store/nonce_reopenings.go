package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const reopeningColumns = `id, wallet_id, foreign_nonce, next_before, next_after, block, block_id, reason, reopened_by, reopened_at`

// reopeningRow is a row of nonce_sequence_reopenings.
type reopeningRow struct {
	ID         uuid.UUID
	WalletID   uuid.UUID
	Foreign    sql.NullInt64 `db:"foreign_nonce"`
	Before     int64         `db:"next_before"`
	After      int64         `db:"next_after"`
	Block      int64
	BlockID    string
	Reason     string
	ReopenedBy uuid.UUID
	ReopenedAt time.Time
}

func (r reopeningRow) reopening() exchange.NonceSequenceReopening {
	o := exchange.NonceSequenceReopening{
		ID: r.ID, WalletID: r.WalletID, Before: height(r.Before), After: height(r.After), Block: exchange.ChainBlock{Number: height(r.Block), ID: r.BlockID},
		Reason: r.Reason, ReopenedBy: r.ReopenedBy, ReopenedAt: r.ReopenedAt.UTC(),
	}
	if r.Foreign.Valid {
		n := height(r.Foreign.Int64)
		o.Foreign = &n
	}
	return o
}

const readReopening = `SELECT ` + reopeningColumns + ` FROM nonce_sequence_reopenings WHERE id = $1`

const insertReopening = `
INSERT INTO nonce_sequence_reopenings (` + reopeningColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING ` + reopeningColumns

const undecided = `
SELECT EXISTS (SELECT FROM chain_attempts WHERE nonce_wallet = $1 AND status IN ('signed', 'broadcast', 'included', 'replaced')) AS sent,
    EXISTS (SELECT FROM cold_drafts WHERE nonce_wallet = $1 AND status = 'open') AS handed_out`

// ReopenNonceSequence lets a wallet whose sequence is closed send again, from the number that the final chain counts.
// count must have been read from the chain for this decision. The id identifies the reopening: a repeated call returns
// its result. CodeStateConflict when the sequence is open, when the chain's count may still grow or is below the
// numbers already used, and while a transaction of the sequence is undecided.
func (s *Store) ReopenNonceSequence(ctx context.Context, id, walletID uuid.UUID, reason string, count exchange.SenderCount, by exchange.Principal) (exchange.NonceSequenceReopening, error) {
	var done exchange.NonceSequenceReopening
	if err := require(reason != "" && len([]rune(reason)) <= exchange.MaxReopeningReason, "/note", "required", "must say why, in at most 500 characters"); err != nil {
		return done, err
	}
	err := s.inTx(ctx, "sequence", func(t unitTx) error {
		var old []reopeningRow
		if err := t.All(ctx, &old, readReopening, id); err != nil {
			return err
		}
		if len(old) == 1 {
			if done = old[0].reopening(); done.WalletID != walletID {
				return exchange.Errorf(exchange.CodeConflict, "The id belongs to another wallet's sequence.")
			}
			return nil
		}
		sequence, err := t.closedNonceSequence(ctx, walletID, count)
		if err != nil {
			return err
		}
		var r reopeningRow
		err = t.Get(ctx, &r, insertReopening, id, walletID, sequence.Foreign, sequence.Next, blockNumber(count.Final), blockNumber(count.Block.Number), count.Block.ID,
			reason, by.UserID, t.s.now())
		if err != nil {
			return err
		}
		done = r.reopening()
		before := map[string]any{"next": sequence.Next, "foreign_nonce": nil}
		if sequence.Foreign.Valid {
			before["foreign_nonce"] = sequence.Foreign.Int64
		}
		return t.audit(ctx, by, "wallet.nonce_sequence_reopened", "wallet", walletID, before,
			map[string]any{"reopening_id": id, "next": count.Final, "block": count.Block.Number, "block_id": count.Block.ID, "reason": reason})
	})
	return done, err
}

// closedNonceSequence locks the sequence of a wallet, and returns why it can't be reopened.
func (t unitTx) closedNonceSequence(ctx context.Context, walletID uuid.UUID, count exchange.SenderCount) (nonceSequenceRow, error) {
	refuse := func(format string, args ...any) (nonceSequenceRow, error) {
		return nonceSequenceRow{}, exchange.Errorf(exchange.CodeStateConflict, format, args...)
	}
	var rows []nonceSequenceRow
	if err := t.All(ctx, &rows, lockNonceSequence, walletID); err != nil {
		return nonceSequenceRow{}, err
	}
	if len(rows) == 0 {
		return refuse("The wallet has no sequence: nothing was sent from it, or its network does not number transactions.")
	}
	sequence := rows[0]
	final, next := count.Final, height(sequence.Next)
	var open struct {
		Sent      bool
		HandedOut bool
	}
	if err := t.Get(ctx, &open, undecided, walletID); err != nil {
		return sequence, err
	}
	switch {
	case !sequence.Foreign.Valid && final <= next:
		return refuse("The sequence is open: the chain counts %d transactions and the next number is %d.", final, next)
	case open.Sent:
		return refuse("A transaction of ours may still be included. Wait until every payment of the wallet is decided.")
	case open.HandedOut:
		return refuse("A transaction of the wallet was handed out for signing. Wait until it is returned or lapses.")
	case count.Latest != final:
		return refuse("The chain counts %d transactions, of which %d are final. Wait for the others.", count.Latest, final)
	case final < next || (sequence.Foreign.Valid && final <= height(sequence.Foreign.Int64)):
		return refuse("The final chain counts %d transactions of the wallet, but numbers up to %d were used. The node is behind, or on another chain.", final, next)
	}
	return sequence, nil
}
