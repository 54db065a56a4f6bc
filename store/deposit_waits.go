package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

// MaxWakeups bounds how many signals are read at once.
const MaxWakeups = 100

const insertWakeup = `
INSERT INTO deposit_wakeups (id, network, wait_id, deposit_id, version, created_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`

const wokenBefore = `SELECT DISTINCT u.wait_id FROM deposit_wakeups u JOIN deposit_waits w ON w.id = u.wait_id
WHERE u.deposit_id = $1 AND w.ended_at IS NULL`

// wake writes the signals caused by a change of a movement. Empty movements, those below the minimum and those of our
// own payments, such as gas for the address, wake no flow. A flow that was shown a movement is also signalled when the
// movement disappears.
func (sc *scan) wake(ctx context.Context, d exchange.ChainDeposit) error {
	var waits []uuid.UUID
	least, limited := sc.minimum[d.Amount.Asset()]
	switch {
	case d.Status == exchange.DepositOrphaned:
		if err := sc.t.All(ctx, &waits, wokenBefore, d.ID); err != nil {
			return err
		}
	case d.Kind == exchange.DepositOwn: // the payment's own flow handles it
	case d.Kind == exchange.DepositUnmatched && !sc.leased[d.WalletID].IsZero(): // not for the order that has the address now
	case d.WalletID != uuid.Nil && d.Amount.Positive() && (!limited || d.Amount.Cmp(least) >= 0):
		waits = sc.waits[d.WalletID]
	}
	return sc.t.addWakeups(ctx, waits, d)
}

func (t unitTx) addWakeups(ctx context.Context, waits []uuid.UUID, d exchange.ChainDeposit) error {
	for _, w := range waits {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		if _, err := t.Exec(ctx, insertWakeup, id, d.Network, w, d.ID, d.Version, t.s.now()); err != nil {
			return err
		}
	}
	return nil
}

const walletAt = `SELECT id FROM wallets WHERE network = $1 AND address = $2`

const insertWait = `
INSERT INTO deposit_waits (id, wallet_id, workflow_id, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (wallet_id, workflow_id) WHERE ended_at IS NULL DO NOTHING`

const readWait = `SELECT id, wallet_id, workflow_id, created_at FROM deposit_waits WHERE wallet_id = $1 AND workflow_id = $2 AND ended_at IS NULL`

const depositsSince = `SELECT ` + depositColumns + ` FROM chain_deposits
WHERE wallet_id = $1 AND created_at >= $2 AND status IN ('seen', 'final') AND amount > 0 ORDER BY created_at LIMIT 100`

// AwaitDeposits registers a flow to be woken for every change of a movement into the wallet with the address.
// Movements since the given time wake it too, so that no money is missed in between. A repeated call returns the
// existing wait. CodeNotFound when no wallet of ours has the address.
func (s *Store) AwaitDeposits(ctx context.Context, n exchange.Network, address, workflowID string, since time.Time) (exchange.DepositWait, error) {
	return change(ctx, s, "wallet", depositsLock(n), func(ctx context.Context, t unitTx) (exchange.DepositWait, exchange.Posting, error) {
		var none exchange.Posting
		if err := t.lockDeposits(ctx, n); err != nil {
			return exchange.DepositWait{}, none, err
		}
		var wallet, id uuid.UUID
		if err := t.Get(ctx, &wallet, walletAt, n, address); err != nil {
			return exchange.DepositWait{}, none, err
		}
		id, err := uuid.NewV7()
		if err != nil {
			return exchange.DepositWait{}, none, err
		}
		if _, err := t.Exec(ctx, insertWait, id, wallet, workflowID, t.s.now()); err != nil {
			return exchange.DepositWait{}, none, err
		}
		var w exchange.DepositWait
		if err := t.Get(ctx, &w, readWait, wallet, workflowID); err != nil {
			return exchange.DepositWait{}, none, err
		}
		var came []exchange.ChainDeposit
		if err := t.All(ctx, &came, depositsSince, wallet, since); err != nil {
			return exchange.DepositWait{}, none, err
		}
		for _, d := range came {
			if err := t.addWakeups(ctx, []uuid.UUID{w.ID}, d); err != nil {
				return exchange.DepositWait{}, none, err
			}
		}
		return w, none, nil
	})
}

const endWait = `
UPDATE deposit_waits w SET ended_at = $4 FROM wallets a
WHERE a.id = w.wallet_id AND a.network = $1 AND a.address = $2 AND w.workflow_id = $3 AND w.ended_at IS NULL`

// EndDepositWait ends a wait of AwaitDeposits. It may be called again.
func (s *Store) EndDepositWait(ctx context.Context, n exchange.Network, address, workflowID string) error {
	return s.inTx(ctx, "deposit wait", func(t unitTx) error {
		if err := t.lockDeposits(ctx, n); err != nil {
			return err
		}
		_, err := t.Exec(ctx, endWait, n, address, workflowID, t.s.now())
		return err
	})
}

const dueWakeups = `
SELECT u.id, coalesce(w.workflow_id, intent_flow('proposal.open', u.proposal_id)) AS workflow_id, u.deposit_id
FROM deposit_wakeups u LEFT JOIN deposit_waits w ON w.id = u.wait_id
WHERE u.network = $1 AND u.sent_at IS NULL ORDER BY u.created_at, u.id LIMIT $2`

// DueWakeups reads the unsent signals of a network, oldest first, at most MaxWakeups.
func (s *Store) DueWakeups(ctx context.Context, n exchange.Network) ([]exchange.DepositWakeup, error) {
	var rows []struct {
		ID         uuid.UUID
		WorkflowID string
		DepositID  uuid.NullUUID
	}
	if err := s.db.All(ctx, &rows, dueWakeups, n, MaxWakeups); err != nil {
		return nil, translate(err, "wakeup")
	}
	due := make([]exchange.DepositWakeup, len(rows))
	for i, r := range rows {
		due[i] = exchange.DepositWakeup{ID: r.ID, WorkflowID: r.WorkflowID, DepositID: r.DepositID.UUID}
	}
	return due, nil
}

const markWoken = `UPDATE deposit_wakeups SET sent_at = $2 WHERE id = ANY ($1::uuid[]) AND sent_at IS NULL`

// RecordWoken records that signals were sent, or that their flow no longer exists.
func (s *Store) RecordWoken(ctx context.Context, ids []uuid.UUID) error {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return s.inTx(ctx, "wakeup", func(t unitTx) error {
		_, err := t.Exec(ctx, markWoken, pq.Array(texts), t.s.now())
		return err
	})
}

// quarantine sets a movement aside for an officer, once for each reason.
func (sc *scan) quarantine(ctx context.Context, m exchange.ChainMovement, why exchange.QuarantineReason, detail string) error {
	return sc.t.setAside(ctx, alarm{network: sc.network, block: sc.block, movement: m, why: why, detail: detail})
}

// quarantineRow is a row of deposit_quarantine.
type quarantineRow struct {
	ID        uuid.UUID
	Network   exchange.Network
	Block     int64
	TxID      string
	Index     int64 `db:"event_index"`
	Reason    exchange.QuarantineReason
	Detail    string
	Payload   []byte
	CreatedAt time.Time
}

const quarantineColumns = `id, network, block, tx_id, event_index, reason, detail, payload, created_at`

const openQuarantine = `SELECT ` + quarantineColumns + ` FROM deposit_quarantine
WHERE network = $1 AND settled_at IS NULL ORDER BY created_at LIMIT 100`

// OpenQuarantine reads the unsettled movements of a network, oldest first, at most a hundred.
func (s *Store) OpenQuarantine(ctx context.Context, n exchange.Network) ([]exchange.QuarantinedMovement, error) {
	var rows []quarantineRow
	if err := s.db.All(ctx, &rows, openQuarantine, n); err != nil {
		return nil, translate(err, "quarantine")
	}
	return convert(rows, func(r quarantineRow) (exchange.QuarantinedMovement, error) {
		return exchange.QuarantinedMovement{
			ID: r.ID, Network: r.Network, Block: height(r.Block), TxID: r.TxID, Index: uint32(r.Index), //nolint:gosec // G115: it was one when it was written
			Reason: r.Reason, Detail: r.Detail, Payload: json.RawMessage(r.Payload), CreatedAt: r.CreatedAt.UTC(),
		}, nil
	})
}

const settleQuarantine = `UPDATE deposit_quarantine SET settled_at = $2, note = $3 WHERE id = $1 AND settled_at IS NULL`

// guarded runs fn behind a savepoint. A failure of fn itself is undone and returned as refusal; err means that the
// whole transaction can't continue.
func (t unitTx) guarded(ctx context.Context, fn func() error) (refusal, err error) {
	refusal, err = t.Savepoint(ctx, fn)
	if err == nil && exchange.CodeOf(translate(refusal, "movement")) == exchange.CodeUnavailable {
		return nil, refusal
	}
	return refusal, err
}
