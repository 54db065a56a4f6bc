package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// reconciling is the principal of comparisons.
var reconciling = exchange.System("reconciliation")

const runColumns = `id, network, status, detail, cursor, compared, deferred, differences, started_at, finished_at`

func runSnapshot(r exchange.Reconciliation) map[string]any {
	return map[string]any{
		"id": r.ID, "network": r.Network, "status": r.Status, "detail": r.Detail, "compared": r.Compared, "deferred": r.Deferred,
		"differences": r.Differences,
	}
}

const readRun = `SELECT ` + runColumns + ` FROM reconciliation_runs WHERE id = $1`

const lockRun = readRun + ` FOR NO KEY UPDATE`

// Reconciliation reads one comparison of a network.
func (s *Store) Reconciliation(ctx context.Context, id uuid.UUID) (exchange.Reconciliation, error) {
	return readOne[exchange.Reconciliation](ctx, s.db, "reconciliation", readRun, id)
}

const watchedNetworks = `SELECT network FROM deposit_cursors ORDER BY network`

// ReconciledNetworks lists the networks that can be compared: those whose blocks are read into the ledger.
func (s *Store) ReconciledNetworks(ctx context.Context) ([]exchange.Network, error) {
	var all []exchange.Network
	return all, translate(s.db.All(ctx, &all, watchedNetworks), "deposit cursor")
}

const runningRun = `SELECT ` + runColumns + ` FROM reconciliation_runs WHERE network = $1 AND status = 'running' FOR NO KEY UPDATE`

const insertRun = `INSERT INTO reconciliation_runs (id, network, status, started_at) VALUES ($1, $2, 'running', $3) RETURNING ` + runColumns

// Superseded is the failure reason of a run whose flow was terminated.
const Superseded = "superseded"

// BeginReconciliation opens a run of a network. A repeated call returns the existing run. Another run that is still
// open has lost its flow, because a network has one flow at a time: it is marked as failed.
func (s *Store) BeginReconciliation(ctx context.Context, id uuid.UUID, n exchange.Network) (exchange.Reconciliation, error) {
	var begun exchange.Reconciliation
	err := s.inTx(ctx, "reconciliation", func(t unitTx) error {
		var rows []exchange.Reconciliation
		if err := t.All(ctx, &rows, lockRun, id); err != nil {
			return err
		}
		if len(rows) == 0 {
			if err := t.supersede(ctx, n); err != nil {
				return err
			}
			var r exchange.Reconciliation
			if err := t.Get(ctx, &r, insertRun, id, n, t.s.now()); err != nil {
				return err
			}
			rows = append(rows, r)
		}
		var err error
		begun = rows[0]
		if begun.Network != n {
			err = exchange.Errorf(exchange.CodeConflict, "The id belongs to a reconciliation of %s.", begun.Network)
		}
		return err
	})
	return begun, err
}

func (t unitTx) supersede(ctx context.Context, n exchange.Network) error {
	var rows []exchange.Reconciliation
	if err := t.All(ctx, &rows, runningRun, n); err != nil || len(rows) == 0 {
		return err
	}
	old := rows[0]
	return t.endRun(ctx, old, exchange.ReconciliationFailed, Superseded)
}

const endRun = `UPDATE reconciliation_runs SET status = $2, detail = $3, finished_at = $4 WHERE id = $1 AND status = ANY ($5)`

func (t unitTx) endRun(ctx context.Context, r exchange.Reconciliation, to exchange.ReconciliationStatus, detail string) error {
	if err := exchange.ReconciliationMachine.Allow(r.Status, to); err != nil {
		return err
	}
	before := r
	r.Status, r.Detail, r.FinishedAt = to, clip(detail, 200), t.s.now()
	if err := t.One(ctx, endRun, r.ID, to, r.Detail, r.FinishedAt, pq.Array(exchange.ReconciliationMachine.Sources(to))); err != nil {
		return err
	}
	return t.record(ctx, auditEvent{by: reconciling, object: "reconciliation", id: r.ID, name: "reconciliation." + string(to), before: runSnapshot(before), after: runSnapshot(r)})
}

// FinishReconciliation ends a run. An ended one stays as it is.
func (s *Store) FinishReconciliation(ctx context.Context, id uuid.UUID, to exchange.ReconciliationStatus, detail string) (exchange.Reconciliation, error) {
	var ended exchange.Reconciliation
	err := s.inTx(ctx, "reconciliation", func(t unitTx) error {
		var r exchange.Reconciliation
		if err := t.Get(ctx, &r, lockRun, id); err != nil {
			return err
		}
		before := r
		if ended = before; before.Status != exchange.ReconciliationRunning {
			return nil
		}
		if err := t.endRun(ctx, before, to, detail); err != nil {
			return err
		}
		if err := t.Get(ctx, &r, readRun, id); err != nil {
			return err
		}
		ended = r
		return nil
	})
	return ended, err
}

const openDifferences = `SELECT count(*) FROM reconciliation_differences WHERE network = $1 AND status = 'open'`

// OpenDifferences counts the open differences of a network.
func (s *Store) OpenDifferences(ctx context.Context, n exchange.Network) (int, error) {
	var count int
	return count, translate(s.db.Get(ctx, &count, openDifferences, n), "difference")
}

const walletsAfter = `SELECT ` + walletColumns + ` FROM wallets WHERE network = $1 AND id > $2 ORDER BY id LIMIT $3`

// WalletsAfter lists the wallets of a network after one of them, in the order of their ids, which is roughly
// their order of creation.
func (s *Store) WalletsAfter(ctx context.Context, n exchange.Network, after uuid.UUID, limit int) ([]exchange.Wallet, error) {
	return readAll[exchange.Wallet](ctx, s.db, "wallet", walletsAfter, n, after, limit)
}

// The ledger's values of a wallet at a block, from one snapshot:
//
//   - booked: the entries, and separately those for later blocks (later), by the block of their movement, transaction or opening balance
//     (for the part of found gas that a deposit explains, by the block of the fee where it was found); entries without
//     a block count in any;
//   - moving: what our payments moved by then without being booked yet: their transaction is alive in our rows, and the
//     watch, which has passed the block, has seen its transfer become final;
//   - fees: the fees of live transactions, included or not: at most one of those with one number is ever included, so a
//     payment costs at most the highest of its limits.
const compareReadings = `
WITH asked AS (
    SELECT * FROM unnest($2::uuid[], $3::text[], $4::bigint[]) AS a (wallet_id, asset, block)
), later AS MATERIALIZED (
    SELECT l.account_id, d.block, l.amount FROM chain_deposits d
        JOIN ledger_keys e ON e.key = 'chain_deposit:' || d.id JOIN ledger_lines l ON l.entry_id = e.entry_id
        WHERE d.network = $1 AND d.status = 'final' AND d.block > $5
    UNION ALL
    SELECT l.account_id, t.block, l.amount FROM chain_attempts t
        JOIN ledger_keys e ON e.key IN ('chain_attempt:' || t.id || ':gas',
            CASE t.status WHEN 'succeeded' THEN 'chain_payment:' || t.payment_id || ':completed' ELSE 'chain_attempt:' || t.id || ':fee' END)
        JOIN ledger_lines l ON l.entry_id = e.entry_id
        WHERE t.network = $1 AND t.status IN ('succeeded', 'failed') AND t.block > $5
    UNION ALL
    SELECT acc.id, f.block, -g.amount FROM gas_found f JOIN gas_nettings g ON g.attempt_id = f.attempt_id
        JOIN ledger_accounts acc ON acc.code = 'custody:' || f.wallet_id || ':' || f.asset
        WHERE f.asset = $6 AND f.block > $5
    UNION ALL
    SELECT l.account_id, a.opened_block, l.amount FROM multisig_accounts a
        JOIN ledger_keys e ON e.key = 'multisig_account:' || a.id || ':opening' JOIN ledger_lines l ON l.entry_id = e.entry_id
        WHERE a.network = $1 AND a.opened_block > $5
), alive AS MATERIALIZED (
    SELECT t.tx_id, t.fee_limit, p.id, p.asset, p.amount, p.from_address, p.to_address, coalesce(p.fee_wallet_id, p.wallet_id) AS payer
        FROM chain_attempts t JOIN chain_payments p ON p.id = t.payment_id
        WHERE t.network = $1 AND t.status IN ('signed', 'broadcast', 'included', 'replaced')
), moving AS MATERIALIZED (
    SELECT DISTINCT ON (v.id) d.wallet_id, d.from_wallet_id, v.asset, v.amount, d.block FROM alive v
        JOIN chain_deposits d ON d.network = $1 AND d.tx_id = v.tx_id
        WHERE d.kind = 'own' AND d.status = 'final' AND d.payment_id = v.id AND (d.asset, d.amount, d.from_address, d.to_address)
            = (v.asset, v.amount, v.from_address, v.to_address)
        ORDER BY v.id, d.event_index
), cursor AS (
    SELECT started, final_number FROM deposit_cursors WHERE network = $1
)
SELECT a.wallet_id, a.asset, a.block, coalesce(acc.posted, 0) AS posted,
    coalesce((SELECT sum(l.amount) FROM later l WHERE l.account_id = acc.id AND l.block > a.block), 0) AS later,
    coalesce((SELECT sum(CASE WHEN m.wallet_id = a.wallet_id THEN m.amount ELSE 0 END - CASE WHEN m.from_wallet_id = a.wallet_id THEN m.amount ELSE 0 END)
        FROM moving m WHERE m.asset = a.asset AND m.block <= a.block), 0) AS moving,
    CASE WHEN a.asset = $6 THEN coalesce((SELECT sum(f.most) FROM (SELECT max(v.fee_limit) AS most FROM alive v WHERE v.payer = a.wallet_id GROUP BY v.id) f), 0)
        ELSE 0 END AS fees,
    NOT EXISTS (SELECT FROM cursor c WHERE c.final_number >= a.block AND c.started <= a.block) AS deferred
FROM asked a LEFT JOIN ledger_accounts acc ON acc.code = 'custody:' || a.wallet_id || ':' || a.asset`

// ledgerRow is the ledger's values for one reading.
type ledgerRow struct {
	WalletID                    uuid.UUID
	Asset                       money.Asset
	Block                       int64
	Posted, Later, Moving, Fees decimal.Decimal
	Deferred                    bool
}

// CompareReadings compares the chain's balances of wallets with the ledger as of the same blocks. The blocks must be
// final. A comparison at a block that the watch has not passed yet is deferred.
func (s *Store) CompareReadings(ctx context.Context, n exchange.Network, readings []exchange.WalletReading) ([]exchange.Comparison, error) {
	if len(readings) == 0 {
		return nil, nil
	}
	type pair struct {
		wallet uuid.UUID
		asset  money.Asset
	}
	var (
		wallets, assets []string
		blocks          []int64
		least           = int64(maxHeight)
		asked           = map[pair]exchange.WalletReading{}
	)
	for _, r := range readings {
		at := blockNumber(r.Block.Number)
		wallets, assets, blocks = append(wallets, r.WalletID.String()), append(assets, string(r.Amount.Asset())), append(blocks, at)
		least = min(least, at)
		asked[pair{r.WalletID, r.Amount.Asset()}] = r
	}
	var rows []ledgerRow
	err := s.db.Planned(ctx, func(t pg.Tx) error {
		return t.Built(ctx, &rows, compareReadings, n, pq.Array(wallets), pq.Array(assets), pq.Array(blocks), least, n.NativeCoin())
	})
	if err != nil {
		return nil, translate(err, "ledger")
	}
	return convert(rows, func(r ledgerRow) (exchange.Comparison, error) {
		c := exchange.Comparison{WalletReading: asked[pair{r.WalletID, r.Asset}], Deferred: r.Deferred}
		var err error
		if c.Ledger, err = amountOf(r.Asset, r.Posted.Sub(r.Later).Add(r.Moving)); err != nil {
			return c, err
		}
		c.Fees, err = amountOf(r.Asset, r.Fees)
		return c, err
	})
}
