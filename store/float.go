package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const checkColumns = `ticket, utility||' KES' AS utility, working||' KES' AS working, booked||' KES' AS booked, held||' KES' AS held,
	collected||' KES' AS collected, open, difference||' KES' AS difference, notified_at, received_at`

// The float according to the books, in one statement so that all values are of one moment.
// floatBooks are the books' present values of the float.
type floatBooks struct {
	Booked, Held, Collected money.Amount
	Open                    int
}

const readFloatBooks = `
SELECT coalesce(sum(posted) FILTER (WHERE kind = 'momo_payout'), 0)||' KES' AS booked, coalesce(sum(held) FILTER (WHERE kind = 'momo_payout'), 0)||' KES' AS held,
    coalesce(sum(posted) FILTER (WHERE kind = 'momo_collection'), 0)||' KES' AS collected,
    (SELECT count(*) FROM payment_attempts WHERE direction = 'payout' AND status IN ('created', 'unknown', 'accepted')) AS open
FROM ledger_accounts WHERE code IN ('momo_payout:house:KES', 'momo_collection:house:KES')`

const insertCheck = `
INSERT INTO float_reports (ticket, utility, working, booked, held, collected, open, difference, notified_at, received_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (ticket) DO NOTHING`

const readCheck = `SELECT ` + checkColumns + ` FROM float_reports WHERE ticket = $1`

// RecordFloatReport stores the provider's report about our accounts beside the books' present values, once per query.
// It changes no balance: the books are authoritative until an officer finds the cause of a difference. CodeInvalid for
// a report that does not name both accounts.
func (s *Store) RecordFloatReport(ctx context.Context, r exchange.FloatReport) (exchange.FloatCheck, error) {
	utility, knowsUtility := r.Account(exchange.FloatUtility)
	working, knowsWorking := r.Account(exchange.FloatWorking)
	if r.Ticket == "" || !knowsUtility || !knowsWorking {
		return exchange.FloatCheck{}, exchange.Errorf(exchange.CodeInvalid, "The report must contain the utility and the working account.")
	}
	var check exchange.FloatCheck
	err := s.inTx(ctx, "float report", func(t unitTx) error {
		var books floatBooks
		if err := t.Get(ctx, &books, readFloatBooks); err != nil {
			return err
		}
		now, at := s.now(), r.At
		if at.IsZero() {
			at = now
		}
		difference := exchange.FloatDifference(utility.Current, books.Booked, books.Held)
		if _, err := t.Exec(ctx, insertCheck, r.Ticket, utility.Current.Decimal(), working.Current.Decimal(), books.Booked.Decimal(), books.Held.Decimal(), books.Collected.Decimal(), books.Open,
			difference.Decimal(), at, now); err != nil {
			return err
		}
		return t.Get(ctx, &check, readCheck, r.Ticket)
	})
	return check, err
}

const readLastChecks = `SELECT ` + checkColumns + ` FROM float_reports ORDER BY received_at DESC, ticket LIMIT $1`

// shownChecks is how many of the provider's reports are shown.
const shownChecks = 10

// FloatState is what can be paid out to phones, and what blocks payouts.
func (s *Store) FloatState(ctx context.Context, provider string) (exchange.FloatState, error) {
	var state exchange.FloatState
	var err error
	for _, a := range []struct {
		kind exchange.AccountKind
		to   *exchange.Account
	}{{exchange.AccMomoPayout, &state.Payout}, {exchange.AccMomoCollection, &state.Collection}} {
		ref := exchange.House(a.kind, money.KES)
		if *a.to, err = s.Account(ctx, ref); exchange.CodeOf(err) == exchange.CodeNotFound {
			*a.to = exchange.Account{Ref: ref, Posted: money.Zero(money.KES), Held: money.Zero(money.KES)}
		} else if err != nil {
			return state, err
		}
	}
	var books floatBooks
	if err := s.db.Get(ctx, &books, readFloatBooks); err != nil {
		return state, translate(err, "float")
	}
	state.Open = books.Open
	if err := s.db.All(ctx, &state.Reports, readLastChecks, shownChecks); err != nil {
		return state, translate(err, "float report")
	}
	state.Disagrees = disagrees(state.Reports)
	if state.Breaker, err = s.Breaker(ctx, provider); err != nil {
		return state, err
	}
	if state.Moves, err = s.openFloatMoves(ctx); err != nil {
		return state, err
	}
	state.Terms, err = s.TermsAt(ctx, s.now())
	return state, err
}

// disagrees reports whether the provider and the books differ by the same amount twice, with nothing under way. A
// payment between the two readings explains a single difference.
func disagrees(newest []exchange.FloatCheck) bool {
	if len(newest) < 2 {
		return false
	}
	a, b := newest[0], newest[1]
	return a.Open == 0 && b.Open == 0 && !a.Difference.IsZero() && a.Difference.Equal(b.Difference)
}

const readStandingBalances = `SELECT ` + callbackColumns + ` FROM momo_callbacks
WHERE attempt_id IS NULL AND standing AND kind = 'balance' AND received_at >= $1 ORDER BY received_at DESC, id DESC LIMIT $2`

// BalanceCallbacks lists the provider's balance callbacks since a time, newest first.
func (s *Store) BalanceCallbacks(ctx context.Context, since time.Time) ([]exchange.MomoCallback, error) {
	return readAll[exchange.MomoCallback](ctx, s.db, "callback", readStandingBalances, since, maxCallbacksRead)
}

const readChargesOff = `SELECT attempt_id, expected, reported FROM payout_charges WHERE reported <> expected AND fixed_at IS NULL ORDER BY created_at LIMIT $1`

const lockChargeOff = `SELECT attempt_id, expected, reported FROM payout_charges WHERE attempt_id = $1 AND reported <> expected AND fixed_at IS NULL FOR UPDATE`

const fixCharge = `UPDATE payout_charges SET fixed_at = $2 WHERE attempt_id = $1`

type chargeRow struct {
	AttemptID uuid.UUID
	Expected  decimal.Decimal
	Reported  decimal.Decimal
}

// maxChargeFixes bounds one call; the next one continues.
const maxChargeFixes = 200

// FixCharges books the difference between the provider's actual charge and its terms, once for each payout. One
// without enough float is left for the next call. It returns how many it booked.
func (s *Store) FixCharges(ctx context.Context) (int, error) {
	var rows []chargeRow
	if err := s.db.All(ctx, &rows, readChargesOff, maxChargeFixes); err != nil {
		return 0, translate(err, "charge")
	}
	fixed := 0
	for _, r := range rows {
		done, err := s.fixCharge(ctx, r.AttemptID)
		if exchange.CodeOf(err) == exchange.CodeInsufficientFunds {
			continue
		}
		if err != nil {
			return fixed, err
		}
		if done {
			fixed++
		}
	}
	return fixed, nil
}

func (s *Store) fixCharge(ctx context.Context, attempt uuid.UUID) (bool, error) {
	return change(ctx, s, "charge", attempt, func(ctx context.Context, t unitTx) (bool, exchange.Posting, error) {
		var none exchange.Posting
		var rows []chargeRow
		if err := t.All(ctx, &rows, lockChargeOff, attempt); err != nil || len(rows) == 0 {
			return false, none, err
		}
		more, err := amountOf(money.KES, rows[0].Reported.Sub(rows[0].Expected))
		if err != nil {
			return false, none, err
		}
		if err := t.One(ctx, fixCharge, attempt, t.s.now()); err != nil {
			return false, none, err
		}
		return true, exchange.Posting{Entries: []exchange.Entry{chargeEntry(attempt, "payout:"+attempt.String()+":charge:fix", more)}}, nil
	})
}
