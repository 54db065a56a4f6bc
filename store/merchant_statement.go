package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The statement of a merchant: the movements of its shillings, as the ledger's account has them. What has been booked never changes,
// and the lines of an account have their ids in the order of their commits. So the sums of a statement and where its movements are
// are read at one moment, and the movements afterwards in pages, without a transaction that would last as long as the reader takes.

// Every line before the end of the period counts for the sums; the later ones only for the check against the balance.
const statementSums = `
SELECT a.id AS account, a.posted||' KES' AS posted, coalesce(x.opening, 0)||' KES' AS opening, coalesce(x.credits, 0)||' KES' AS credits,
    coalesce(x.debits, 0)||' KES' AS debits, coalesce(x.later, 0)||' KES' AS later, x.movements, coalesce(x.first - 1, 0) AS after, coalesce(x.last, 0) AS last
FROM ledger_accounts a CROSS JOIN LATERAL (
    SELECT -sum(l.amount) FILTER (WHERE e.at < $2) AS opening, -sum(l.amount) FILTER (WHERE e.at >= $3) AS later,
        -sum(l.amount) FILTER (WHERE e.at >= $2 AND e.at < $3 AND l.amount < 0) AS credits, sum(l.amount) FILTER (WHERE e.at >= $2 AND e.at < $3 AND l.amount > 0) AS debits,
        count(*) FILTER (WHERE e.at >= $2 AND e.at < $3) AS movements,
        min(l.id) FILTER (WHERE e.at >= $2 AND e.at < $3) AS first, max(l.id) FILTER (WHERE e.at >= $2 AND e.at < $3) AS last
    FROM ledger_lines l JOIN ledger_entries e ON e.id = l.entry_id WHERE l.account_id = a.id) x
WHERE a.code = $1`

// MerchantStatement sums up the movements of a merchant's shillings in a period of days. CodeNotFound for a merchant that the view
// does not see. StatementMovements reads the movements.
func (s *Store) MerchantStatement(ctx context.Context, v View, merchant uuid.UUID, from, to time.Time) (exchange.MerchantStatement, error) {
	all, owner, vendor := v.args()
	st := exchange.MerchantStatement{
		MerchantID: merchant, From: from, To: to, At: s.now(), Opening: money.Zero(money.KES), Credits: money.Zero(money.KES), Debits: money.Zero(money.KES),
		Closing: money.Zero(money.KES),
	}
	var m exchange.User
	if err := s.db.Get(ctx, &m, readMerchant, merchant, all, owner, vendor); err != nil {
		return st, translate(err, "merchant")
	}
	ref := exchange.Owned(exchange.AccFiatBalance, merchant, money.KES)
	sums, found, err := readFound[struct {
		Account                                 int64
		Posted, Opening, Credits, Debits, Later money.Amount
		Movements                               int
		After, Last                             int64
	}](ctx, s.db, statementSums, ref.Code(), kenyaMidnight(from), kenyaMidnight(to))
	if err != nil || !found {
		return st, translate(err, "statement")
	}
	st.Opening, st.Credits, st.Debits, st.Movements = sums.Opening, sums.Credits, sums.Debits, sums.Movements
	st.Closing, st.Lines = sums.Opening.Add(sums.Credits).Sub(sums.Debits), exchange.StatementExtent{Account: sums.Account, After: sums.After, Last: sums.Last}
	if !st.Closing.Add(sums.Later).Equal(sums.Posted) {
		return st, exchange.Errorf(exchange.CodeInternal, "the lines of %s don't add up to its balance", ref.Code())
	}
	return st, nil
}

// MerchantStatementBatch is how many movements of a merchant's statement are read at once.
const MerchantStatementBatch = 1000

const statementMovements = `
SELECT l.id AS line, e.at, e.kind AS entry, e.object_type, e.object_id, -l.amount AS amount,
    CASE WHEN o.id IS NOT NULL THEN o.crypto_amount||' '||o.asset WHEN e.kind = 'otc_withdrawal.sold' THEN w.source_amount||' '||w.source_asset
        WHEN e.kind = 'otc_withdrawal.bought' THEN w.payout_amount||' '||w.payout_asset END AS crypto,
    coalesce(nullif(o.momo_receipt, ''), nullif(o.payment_txn_id, ''), CASE WHEN x.line_id IS NULL THEN x.receipt END, d.payment_reference,
        CASE WHEN e.kind = 'otc_withdrawal.paid' THEN w.receipt END, '') AS reference
FROM ledger_lines l JOIN ledger_entries e ON e.id = l.entry_id
LEFT JOIN orders o ON e.object_type = 'order' AND o.id = e.object_id
LEFT JOIN payment_exceptions x ON e.object_type = 'payment_exception' AND x.id = e.object_id AND x.asset = 'KES'
LEFT JOIN otc_deposits d ON e.object_type = 'otc_deposit' AND d.id = e.object_id
LEFT JOIN otc_withdrawals w ON e.object_type = 'otc_withdrawal' AND w.id = e.object_id
WHERE l.account_id = $1 AND l.id > $2 AND l.id <= $3 AND e.at >= $4 AND e.at < $5 ORDER BY l.id LIMIT $6`

// StatementMovements reads the movements of a statement after a line, the oldest first, at most MerchantStatementBatch. balance is the
// balance before them. Without a result there are no more.
func (s *Store) StatementMovements(ctx context.Context, st exchange.MerchantStatement, after int64, balance money.Amount) ([]exchange.StatementMovement, error) {
	rows, err := readAll[struct {
		Line       int64
		At         time.Time
		Entry      string
		ObjectType string
		ObjectID   uuid.UUID
		Amount     decimal.Decimal
		Crypto     money.Amount
		Reference  string
	}](ctx, s.db, "statement", statementMovements, st.Lines.Account, after, st.Lines.Last, kenyaMidnight(st.From), kenyaMidnight(st.To), MerchantStatementBatch)
	if err != nil {
		return nil, err
	}
	all := make([]exchange.StatementMovement, len(rows))
	for i, r := range rows {
		change, err := amountOf(balance.Asset(), r.Amount)
		if err != nil {
			return nil, err
		}
		m := exchange.StatementMovement{
			Line: r.Line, At: r.At, Reason: exchange.ReasonOf(r.Entry, change.Positive()), ObjectType: r.ObjectType, ObjectID: r.ObjectID, Reference: r.Reference, Crypto: r.Crypto,
			Credit: money.Zero(balance.Asset()), Debit: money.Zero(balance.Asset()),
		}
		if balance = balance.Add(change); change.Positive() {
			m.Credit = change
		} else {
			m.Debit = change.Neg()
		}
		m.Balance = balance
		all[i] = m
	}
	return all, nil
}
