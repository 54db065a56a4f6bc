package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Whether this database may ask the mobile money operator for anything. One that was put back from a backup may lack payouts
// that were made since, and would make them again. For the chains see chain_holds.go: they can be read, and the operator can't.

// released reports whether the database may send, before the first request of an empty one too.
func (t unitTx) released(ctx context.Context) (bool, error) {
	var is bool
	// The attempt that is being stored is the first of an empty database.
	err := t.Get(ctx, &is, `SELECT database_released() OR NOT EXISTS (SELECT FROM database_releases)
		AND (SELECT count(*) FROM (SELECT FROM payment_attempts LIMIT 2) a) = 1`)
	return is, err
}

// releaseReportAge is how old the operator's report may be that a release is compared with. It is asked for every few minutes.
const releaseReportAge = 30 * time.Minute

// releaseDoc is a release of the database as stored in a control change. The second officer sees the operator's report and
// the books' values when it came.
type releaseDoc struct {
	Database   string `json:"database"`
	Report     string `json:"report"` // the operator's id of our query
	Utility    string `json:"utility"`
	Booked     string `json:"booked"`
	Held       string `json:"held"`
	Difference string `json:"difference"`
	// What is sent after the release: the payouts that are owed by mobile money, with their sum, and how many of their flows
	// are parked. A payout that was made before must not be among them.
	Owed       int    `json:"owed"`
	OwedAmount string `json:"owed_amount"`
	Parked     int    `json:"parked"`
	Note       string `json:"note"`
}

// releaseWas is what a release replaces: the identity of the database that was released last.
type releaseWas struct {
	Database string `json:"database"`
}

const readRelease = `SELECT database_identity() AS here, coalesce((SELECT identity FROM database_releases ORDER BY number DESC LIMIT 1), '') AS last,
    database_released() AS released`

type release struct {
	Here, Last string
	Released   bool
}

const newestReport = `SELECT ticket, utility||' KES' AS utility, booked||' KES' AS booked, held||' KES' AS held, difference||' KES' AS difference
FROM float_reports WHERE received_at >= $1 ORDER BY received_at DESC LIMIT 1`

// readOwed is what is owed by mobile money and was not sent: neither an attempt of it may have paid, nor did two officers attest
// its payout.
const readOwed = `
WITH owed AS (
    SELECT p.id, p.id AS order_id, p.amount FROM order_payouts p WHERE p.rail = 'momo' AND p.status IN ('pending', 'refused')
    UNION ALL SELECT f.id, f.order_id, f.amount FROM refunds f WHERE f.rail = 'momo' AND f.status IN ('pending', 'failed', 'needs_review'))
SELECT count(*) AS owed, coalesce(sum(o.amount), 0)||' KES' AS amount,
    count(*) FILTER (WHERE EXISTS (SELECT FROM parked_flows k WHERE k.object_id IN (o.id, o.order_id))) AS parked
FROM owed o WHERE NOT EXISTS (SELECT FROM payout_attestations w WHERE w.lost AND w.object_id = o.id)`

type owedRow struct {
	Owed   int
	Amount money.Amount
	Parked int
}

// ProposeRelease proposes that requests to the mobile money operator go out from this database, which is another one than
// before. It takes effect when a second officer confirms it. Both compare the operator's statement with the books first: every
// payout since the backup must be settled by its receipt. CodeStateConflict when the database is released already, and when the
// operator has not reported our balances within half an hour.
func (s *Store) ProposeRelease(ctx context.Context, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var waits exchange.ControlChange
	err := s.inTx(ctx, "release", func(t unitTx) error {
		var r release
		if err := t.Get(ctx, &r, readRelease); err != nil {
			return err
		}
		if r.Released {
			return exchange.Errorf(exchange.CodeStateConflict, "The database is the one that was released last.")
		}
		var reports []struct {
			Ticket                            string
			Utility, Booked, Held, Difference money.Amount
		}
		if err := t.All(ctx, &reports, newestReport, t.s.now().Add(-releaseReportAge)); err != nil {
			return err
		}
		if len(reports) == 0 {
			return exchange.Errorf(exchange.CodeStateConflict, "The mobile money operator has not reported our balances yet. The books are compared with its report.")
		}
		f := reports[0]
		var owed owedRow
		err := t.Get(ctx, &owed, readOwed)
		if err != nil {
			return err
		}
		waits, err = t.propose(ctx, exchange.ControlDatabaseRelease, uuid.Nil, releaseWas{r.Last}, releaseDoc{
			Database: r.Here, Report: f.Ticket, Utility: plain(f.Utility), Booked: plain(f.Booked), Held: plain(f.Held), Difference: plain(f.Difference),
			Owed: owed.Owed, OwedAmount: plain(owed.Amount), Parked: owed.Parked, Note: clip(note, maxControlNote),
		}, by)
		return err
	})
	return waits, err
}

const insertDatabaseRelease = `INSERT INTO database_releases (identity, change_id) VALUES ($1, $2)`

// applyDatabaseRelease lets this database send. CodeStateConflict when it was put back again meanwhile.
func (t unitTx) applyDatabaseRelease(ctx context.Context, c exchange.ControlChange, _ exchange.Principal) error {
	var doc releaseDoc
	if err := json.Unmarshal(c.Change, &doc); err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "a stored release can't be read")
	}
	var r release
	if err := t.Get(ctx, &r, readRelease); err != nil {
		return err
	}
	if err := unchanged(c, releaseWas{r.Last}); err != nil {
		return err
	}
	if r.Here != doc.Database {
		return exchange.Errorf(exchange.CodeStateConflict, "The database was put back again since the release was proposed. Propose it again.")
	}
	return t.One(ctx, insertDatabaseRelease, doc.Database, c.ID)
}
