package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const differenceColumns = `id, network, wallet_id AS "latest.wallet_id", status, exception_id, ledger||' '||asset AS "latest.ledger",
	chain||' '||asset AS "latest.amount", fees||' '||asset AS "latest.fees", false AS "latest.deferred", block AS "latest.block.number",
	block_id AS "latest.block.id", '' AS "latest.block.parent", block_time AS "latest.block.time", false AS "latest.block.skipped", first_run, last_run,
	runs, opened_at, updated_at, closed_at, version`

func differenceSnapshot(d exchange.ReconciliationDifference) map[string]any {
	return map[string]any{
		"id": d.ID, "network": d.Network, "wallet_id": d.Latest.WalletID, "asset": d.Latest.Amount.Asset(), "status": d.Status,
		"ledger": d.Latest.Ledger.String(), "chain": d.Latest.Amount.String(), "block": d.Latest.Block.Number, "exception_id": d.ExceptionID,
		"runs": d.Runs, "version": d.Version,
	}
}

const saveRun = `UPDATE reconciliation_runs SET cursor = $2, compared = compared + $3, deferred = deferred + $4, differences = differences + $5 WHERE id = $1 RETURNING ` + runColumns

// RecordComparisons stores the results of a batch in one transaction: the run's counts and totals, each difference,
// and the alarms that they open or close. A batch is recorded only once; a run that has ended or is at another batch
// does not change. It returns the run as it is.
func (s *Store) RecordComparisons(ctx context.Context, b exchange.ReconciledBatch) (exchange.Reconciliation, error) {
	var now exchange.Reconciliation
	err := s.inTx(ctx, "reconciliation", func(t unitTx) error {
		var r exchange.Reconciliation
		if err := t.Get(ctx, &r, lockRun, b.RunID); err != nil {
			return err
		}
		run := r
		if now = run; run.Status != exchange.ReconciliationRunning || run.Cursor != b.After {
			return nil
		}
		compared, deferred, differences := 0, b.Unread, 0
		for _, c := range b.Comparisons {
			if c.Deferred {
				deferred++
				continue
			}
			compared++
			if c.Differs() {
				differences++
			}
			if err := t.settle(ctx, run, c); err != nil {
				return err
			}
		}
		if err := t.addTotals(ctx, run.ID, b.Comparisons); err != nil {
			return err
		}
		if err := t.Get(ctx, &r, saveRun, run.ID, b.Last, compared, deferred, differences); err != nil {
			return err
		}
		now = r
		return nil
	})
	return now, err
}

const addTotal = `
INSERT INTO reconciliation_totals (run_id, asset, ledger, chain) VALUES ($1, $2, $3, $4)
ON CONFLICT (run_id, asset) DO UPDATE SET ledger = reconciliation_totals.ledger + EXCLUDED.ledger, chain = reconciliation_totals.chain + EXCLUDED.chain`

// addTotals adds up the wallets' balances. Fees of pending transactions are no discrepancy: the ledger has them.
func (t unitTx) addTotals(ctx context.Context, run uuid.UUID, all []exchange.Comparison) error {
	ledger, chain := map[money.Asset]money.Amount{}, map[money.Asset]money.Amount{}
	add := func(to map[money.Asset]money.Amount, m money.Amount) {
		if sum, ok := to[m.Asset()]; ok {
			m = sum.Add(m)
		}
		to[m.Asset()] = m
	}
	for _, c := range all {
		if c.Deferred {
			continue
		}
		add(chain, c.Amount)
		if c.Agrees() {
			c.Ledger = c.Amount
		}
		add(ledger, c.Ledger)
	}
	for _, asset := range money.Assets() {
		if _, ok := chain[asset]; !ok {
			continue
		}
		if _, err := t.Exec(ctx, addTotal, run, asset, ledger[asset].Decimal(), chain[asset].Decimal()); err != nil {
			return err
		}
	}
	return nil
}

const lockDifference = `SELECT ` + differenceColumns + ` FROM reconciliation_differences WHERE wallet_id = $1 AND asset = $2 AND status = 'open' FOR NO KEY UPDATE`

// settle opens, keeps or closes the alarm of a wallet and an asset.
func (t unitTx) settle(ctx context.Context, run exchange.Reconciliation, c exchange.Comparison) error {
	var rows []exchange.ReconciliationDifference
	if err := t.All(ctx, &rows, lockDifference, c.WalletID, c.Amount.Asset()); err != nil {
		return err
	}
	if len(rows) == 0 && c.Agrees() {
		return nil
	}
	var d exchange.ReconciliationDifference
	var err error
	switch {
	case len(rows) == 0:
		d, err = t.openDifference(ctx, run, c)
	default:
		if d = rows[0]; c.Agrees() {
			return t.closeDifference(ctx, run, d)
		}
		err = t.keepDifference(ctx, run, d, c)
	}
	if err != nil {
		return err
	}
	return t.One(ctx, insertItem, run.ID, c.WalletID, c.Amount.Asset(), d.ID, c.Ledger.Decimal(), c.Amount.Decimal(), c.Fees.Decimal(),
		blockNumber(c.Block.Number), c.Block.ID, nullTime(c.Block.Time))
}

const insertItem = `
INSERT INTO reconciliation_items (run_id, wallet_id, asset, difference_id, ledger, chain, fees, block, block_id, block_time)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

const insertDifference = `
INSERT INTO reconciliation_differences (id, network, wallet_id, asset, status, exception_id, ledger, chain, fees, block, block_id, block_time,
    first_run, last_run, opened_at, updated_at)
VALUES ($1, $2, $3, $4, 'open', $5, $6, $7, $8, $9, $10, $11, $12, $12, $13, $13) RETURNING ` + differenceColumns

func (t unitTx) openDifference(ctx context.Context, run exchange.Reconciliation, c exchange.Comparison) (exchange.ReconciliationDifference, error) {
	var none exchange.ReconciliationDifference
	id, err := uuid.NewV7()
	if err != nil {
		return none, err
	}
	amount := c.Difference()
	if amount.Sign() < 0 {
		amount = amount.Neg()
	}
	x, err := t.openException(ctx, uuid.Nil, exchange.PaymentException{
		Kind: exchange.ExcReconciliation, Receipt: "reconciliation:" + id.String(), Amount: amount,
	})
	if err != nil {
		return none, err
	}
	var d exchange.ReconciliationDifference
	err = t.Get(ctx, &d, insertDifference, id, run.Network, c.WalletID, c.Amount.Asset(), x.ID, c.Ledger.Decimal(), c.Amount.Decimal(), c.Fees.Decimal(),
		blockNumber(c.Block.Number), c.Block.ID, nullTime(c.Block.Time), run.ID, t.s.now())
	if err != nil {
		return none, err
	}
	return d, t.record(ctx, auditEvent{by: reconciling, object: "reconciliation_difference", id: id, name: "reconciliation_difference.opened", after: differenceSnapshot(d)})
}

const keepDifference = `
UPDATE reconciliation_differences SET ledger = $2, chain = $3, fees = $4, block = $5, block_id = $6, block_time = $7, last_run = $8, runs = runs + 1,
    updated_at = $9, version = version + 1 WHERE id = $1 AND version = $10`

// keepDifference updates an open difference. It sends a new event only when the difference has changed.
func (t unitTx) keepDifference(ctx context.Context, run exchange.Reconciliation, d exchange.ReconciliationDifference, c exchange.Comparison) error {
	err := t.One(ctx, keepDifference, d.ID, c.Ledger.Decimal(), c.Amount.Decimal(), c.Fees.Decimal(), blockNumber(c.Block.Number), c.Block.ID,
		nullTime(c.Block.Time), run.ID, t.s.now(), d.Version)
	if err != nil || d.Latest.Difference().Equal(c.Difference()) {
		return err
	}
	before := d
	d.Latest, d.LastRun, d.Runs, d.Version = c, run.ID, d.Runs+1, d.Version+1
	return t.record(ctx, auditEvent{
		by: reconciling, object: "reconciliation_difference", id: d.ID, name: "reconciliation_difference.changed",
		before: differenceSnapshot(before), after: differenceSnapshot(d),
	})
}

const closeDifference = `
UPDATE reconciliation_differences SET status = 'closed', last_run = $2, closed_at = $3, updated_at = $3, version = version + 1
WHERE id = $1 AND version = $4 AND status = ANY ($5)`

// vanished is the note of an exception whose difference is gone.
const vanished = "The ledger and the chain agree again."

func (t unitTx) closeDifference(ctx context.Context, run exchange.Reconciliation, d exchange.ReconciliationDifference) error {
	if err := exchange.DifferenceMachine.Allow(d.Status, exchange.DifferenceClosed); err != nil {
		return err
	}
	now := t.s.now()
	err := t.One(ctx, closeDifference, d.ID, run.ID, now, d.Version, pq.Array(exchange.DifferenceMachine.Sources(exchange.DifferenceClosed)))
	if err != nil {
		return err
	}
	before := d
	d.Status, d.LastRun, d.ClosedAt, d.Version = exchange.DifferenceClosed, run.ID, now, d.Version+1
	err = t.record(ctx, auditEvent{
		by: reconciling, object: "reconciliation_difference", id: d.ID, name: "reconciliation_difference.closed",
		before: differenceSnapshot(before), after: differenceSnapshot(d),
	})
	if err != nil {
		return err
	}
	x, err := t.lockedException(ctx, d.ExceptionID)
	if err != nil || x.Status != exchange.ExcOpen {
		return err // an officer has settled it
	}
	_, err = t.moveException(ctx, x, exchange.ExcAccepted, vanished, reconciling)
	return err
}
