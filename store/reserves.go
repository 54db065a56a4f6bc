package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// ReconciliationFilter narrows a list of comparisons.
type ReconciliationFilter struct {
	Network exchange.Network
	Status  exchange.ReconciliationStatus
}

// ListReconciliations pages through the comparisons, newest first, with their number.
func (s *Store) ListReconciliations(ctx context.Context, f ReconciliationFilter, p Page) ([]exchange.Reconciliation, int, error) {
	var w where
	w.eq("network", string(f.Network))
	w.eq("status", string(f.Status))
	return readPage[exchange.Reconciliation](ctx, s, "reconciliation", list{columns: runColumns, from: "reconciliation_runs", where: w, order: "started_at DESC, id DESC"}, p)
}

// DifferenceFilter narrows a list of differences.
type DifferenceFilter struct {
	Network  exchange.Network
	Status   exchange.DifferenceStatus
	Asset    money.Asset
	WalletID uuid.UUID
}

// ListDifferences pages through the differences, newest first, with their number.
func (s *Store) ListDifferences(ctx context.Context, f DifferenceFilter, p Page) ([]exchange.ReconciliationDifference, int, error) {
	var w where
	w.eq("network", string(f.Network))
	w.eq("status", string(f.Status))
	w.eq("asset", string(f.Asset))
	w.id("wallet_id", f.WalletID)
	return readPage[exchange.ReconciliationDifference](ctx, s, "difference", list{columns: differenceColumns, from: "reconciliation_differences", where: w, order: "opened_at DESC, id DESC"}, p)
}

// ListReconciliationItems pages through the differences that one run found, with their number.
func (s *Store) ListReconciliationItems(ctx context.Context, runID uuid.UUID, p Page) ([]exchange.ReconciliationItem, int, error) {
	if _, err := s.Reconciliation(ctx, runID); err != nil {
		return nil, 0, err
	}
	var w where
	w.id("i.run_id", runID)
	const columns = `i.run_id, i.difference_id, i.wallet_id, i.ledger||' '||i.asset AS ledger, i.chain||' '||i.asset AS amount,
		i.fees||' '||i.asset AS fees, false AS deferred, i.block AS "block.number", i.block_id AS "block.id", '' AS "block.parent", i.block_time AS "block.time",
		false AS "block.skipped", r.network`
	var rows []exchange.ReconciliationItem
	total, err := s.page(ctx, &rows, list{
		columns: columns, from: "reconciliation_items i JOIN reconciliation_runs r ON r.id = i.run_id", where: w, order: "i.wallet_id, i.asset",
	}, p)
	if err != nil {
		return nil, 0, translate(err, "difference")
	}
	return rows, total, nil
}

// Liabilities to others, the house's own equity and the assets behind both, by asset and in one snapshot. The house's own are the
// coins of its treasury, gas and shared wallets, its shillings as a merchant, kept crypto that is still on its way to the treasury, and
// what it put in and earned, less what it spent. What a swap collected into the treasury is owed to its owner until the second
// leg, or the refund, is final. What lies in an account whose owners are others than were agreed is left out: it may not be ours any more. By the
// ledger alone, liabilities and equity together are custody and float.
const sumAccounts = `
WITH kept AS (SELECT h.account_id, sum(h.amount) AS amount FROM holds h WHERE h.status = 'held' AND h.key LIKE 'exception:%:crypto' GROUP BY h.account_id),
swapped AS (SELECT h.account_id, sum(h.amount) AS amount FROM swaps s JOIN holds h ON h.id = s.return_hold_id AND h.status = 'held'
    WHERE s.status NOT IN ('completed', 'refunded', 'cancelled', 'expired', 'failed') AND coalesce(s.owner_id, s.vendor_id) IS NOT NULL GROUP BY h.account_id),
accounts AS (
    SELECT a.asset, a.kind, a.posted, a.debit_normal, coalesce(k.amount, 0) AS kept, coalesce(b.amount, 0) AS swapped,
        CASE WHEN d.id IS NOT NULL THEN a.posted ELSE 0 END AS lost, a.kind = ANY ($1) AS liability, w.id IS NOT NULL OR a.owner_id IS NOT DISTINCT FROM $3 AS house
    FROM ledger_accounts a LEFT JOIN wallets w ON w.id = a.owner_id AND a.kind = 'wallet_balance' AND w.purpose IN ('treasury', 'gas', 'multisig')
        LEFT JOIN multisig_accounts d ON d.id = a.owner_id AND a.kind = 'custody' AND d.status = 'differs'
        LEFT JOIN kept k ON k.account_id = a.id AND a.kind = 'wallet_balance' LEFT JOIN swapped b ON b.account_id = a.id)
SELECT asset, coalesce(sum(CASE WHEN house THEN swapped ELSE posted - kept END) FILTER (WHERE liability), 0) AS owed,
    coalesce(sum(CASE WHEN liability AND NOT house THEN kept WHEN debit_normal THEN -posted ELSE posted - swapped END) FILTER (WHERE kind <> 'custody' AND kind <> ALL ($2)), 0) - sum(lost) AS equity,
    coalesce(sum(posted) FILTER (WHERE kind = ANY ($2)), 0) AS float, coalesce(sum(posted) FILTER (WHERE kind = 'custody'), 0) - sum(lost) AS custody
FROM accounts GROUP BY asset`

// The last completed run of each watched network, with its results; null columns where there is none.
const lastRuns = `
SELECT c.network, r.finished_at, t.asset, coalesce(t.chain - t.ledger, 0) AS discrepancy FROM deposit_cursors c
LEFT JOIN LATERAL (SELECT id, finished_at FROM reconciliation_runs WHERE network = c.network AND status = 'completed'
    ORDER BY finished_at DESC LIMIT 1) r ON true
LEFT JOIN reconciliation_totals t ON t.run_id = r.id`

const insertReserve = `
INSERT INTO reserve_reports (day, asset, owed, equity, custody, discrepancy, float, compared_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT DO NOTHING`

const reserveColumns = `day, asset, owed||' '||asset AS owed, equity||' '||asset AS equity, custody||' '||asset AS custody, discrepancy||' '||asset AS discrepancy,
	float||' '||asset AS float, compared_at, created_at`

const readReserves = `SELECT ` + reserveColumns + ` FROM reserve_reports WHERE day = $1 ORDER BY asset`

// reserveSum is what the accounts and the last runs say about an asset.
type reserveSum struct {
	Asset          money.Asset
	Owed, Equity   decimal.Decimal
	Custody, Float decimal.Decimal
	Discrepancy    decimal.Decimal `db:"-"`
	ComparedAt     sql.NullTime    `db:"-"`
}

// WriteReserves writes the report of a day, one line for each asset. Only the first call of a day writes it; a later
// call returns it.
func (s *Store) WriteReserves(ctx context.Context, day time.Time) ([]exchange.ReserveLine, error) {
	day = day.UTC().Truncate(24 * time.Hour)
	measured, err := s.measureReserves(ctx)
	if err != nil {
		return nil, err
	}
	var written []exchange.ReserveLine
	err = s.inTx(ctx, "reserve report", func(t unitTx) error {
		if err := t.All(ctx, &written, readReserves, day); err != nil {
			return err
		}
		if len(written) == 0 {
			for _, m := range measured {
				_, err := t.Exec(ctx, insertReserve, day, m.Asset, m.Owed, m.Equity, m.Custody, m.Discrepancy, m.Float, m.ComparedAt, t.s.now())
				if err != nil {
					return err
				}
			}
			return t.All(ctx, &written, readReserves, day)
		}
		return nil
	})
	return written, err
}

// measureReserves adds up the accounts and the last runs.
func (s *Store) measureReserves(ctx context.Context) ([]reserveSum, error) {
	var sums []reserveSum
	var runs []foundRun
	err := s.db.Planned(ctx, func(t pg.Tx) error {
		if err := t.Built(ctx, &sums, sumAccounts, pq.Array(exchange.OwedKinds()), pq.Array(exchange.FloatKinds()), exchange.PlatformTreasury); err != nil {
			return err
		}
		return t.Built(ctx, &runs, lastRuns)
	})
	if err != nil {
		return nil, translate(err, "reserve report")
	}
	return reserveLines(sums, runs), nil
}

// foundRun is the result of a network's last completed run for one asset.
type foundRun struct {
	Network     exchange.Network
	FinishedAt  sql.NullTime
	Asset       sql.NullString
	Discrepancy decimal.Decimal
}

// reserveLines makes a line of each asset, even an unused one.
func reserveLines(sums []reserveSum, runs []foundRun) []reserveSum {
	of := map[money.Asset]*reserveSum{}
	for i := range sums {
		of[sums[i].Asset] = &sums[i]
	}
	all := make([]reserveSum, 0, len(money.Assets()))
	for _, asset := range money.Assets() {
		line := reserveSum{Asset: asset}
		if known := of[asset]; known != nil {
			line = *known
		}
		oldest, missing := sql.NullTime{}, asset.Fiat()
		for _, r := range runs {
			if !slices.Contains(r.Network.WalletAssets(), asset) {
				continue
			}
			if r.Asset.String == string(asset) {
				line.Discrepancy = line.Discrepancy.Add(r.Discrepancy)
			}
			missing = missing || !r.FinishedAt.Valid
			if !oldest.Valid || r.FinishedAt.Time.Before(oldest.Time) {
				oldest = r.FinishedAt
			}
		}
		if !missing {
			line.ComparedAt = oldest
		}
		all = append(all, line)
	}
	return all
}

// ListReserves pages through the lines of the daily reports, newest day first, with their number.
func (s *Store) ListReserves(ctx context.Context, asset money.Asset, from, to time.Time, p Page) ([]exchange.ReserveLine, int, error) {
	var w where
	w.eq("asset", string(asset))
	w.between("day", from, to)
	return readPage[exchange.ReserveLine](ctx, s, "reserve report", list{columns: reserveColumns, from: "reserve_reports", where: w, order: "day DESC, asset"}, p)
}
