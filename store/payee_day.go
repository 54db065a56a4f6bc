package store

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What one payee gets by mobile money in a day, by the operator's terms. Days are Kenya's. It is counted under a lock of
// the payee's, so that no two payments pass together that would not pass one after the other.

const lockPayee = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko payee ' || $1, 0))`

// paidToPayee is what was paid to a phone since a moment, or may be.
const paidToPayee = `
SELECT coalesce(sum(a.amount), 0) FROM payment_attempts a
WHERE a.direction = 'payout' AND a.phone = $1 AND (a.status IN ('created', 'unknown', 'accepted') OR (a.status = 'succeeded' AND a.settled_at >= $2))`

// promisedToPayee is what a phone is promised by the sales of others and was paid by them since a moment, and what else
// was paid to it or may be: refunds, and payouts of sales that were given up.
const promisedToPayee = `
SELECT (SELECT coalesce(sum(o.fiat_amount), 0) FROM orders o WHERE o.payment_phone = $1 AND o.payment_method = 'momo' AND o.order_type LIKE 'OFF\_RAMP%' AND o.id <> $3
        AND (o.status IN ('pending', 'confirming', 'processing') OR (o.status = 'completed' AND o.completed_at >= $2)))
    + (SELECT coalesce(sum(a.amount), 0) FROM payment_attempts a JOIN orders o ON o.id = a.order_id
        WHERE a.direction = 'payout' AND a.phone = $1 AND (a.refund_id IS NOT NULL OR o.status NOT IN ('processing', 'completed'))
            AND (a.status IN ('created', 'unknown', 'accepted') OR (a.status = 'succeeded' AND a.settled_at >= $2)))`

// kenyaMidnight is when the day began in Kenya.
func kenyaMidnight(at time.Time) time.Time {
	y, m, d := at.In(kenya).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, kenya)
}

// promisable refuses a sale of which the payee could not be paid today beside what it is promised already.
func (t unitTx) promisable(ctx context.Context, o exchange.Order, pointer string) error {
	if o.PaymentMethod != exchange.PaymentMethodMomo {
		return nil
	}
	terms, err := t.termsAt(ctx, t.s.now())
	if err != nil {
		return err
	}
	if _, err := t.exec(ctx, lockPayee, o.PaymentPhone.Digits()); err != nil {
		return err
	}
	var sum decimal.Decimal
	if err := t.get(ctx, &sum, promisedToPayee, o.PaymentPhone.Digits(), kenyaMidnight(t.s.now()), o.ID); err != nil {
		return err
	}
	promised, err := amountOf(money.KES, sum)
	if err != nil {
		return err
	}
	return require(promised.Add(o.Price.Fiat).Cmp(terms.PayeeDay) <= 0, pointer, "payee_day",
		"brings this payee more than "+terms.PayeeDay.String()+" KES today, which is the most that the mobile money operator pays to one")
}

// payeeHasRoom refuses a payout beyond what the operator pays its payee today: CodeLimitReached. Tomorrow it goes.
func (t unitTx) payeeHasRoom(ctx context.Context, p exchange.OrderPayout) error {
	terms, err := t.termsAt(ctx, t.s.now())
	if err != nil {
		return err
	}
	if _, err := t.exec(ctx, lockPayee, p.Phone.Digits()); err != nil {
		return err
	}
	var sum decimal.Decimal
	if err := t.get(ctx, &sum, paidToPayee, p.Phone.Digits(), kenyaMidnight(t.s.now())); err != nil {
		return err
	}
	paid, err := amountOf(money.KES, sum)
	if err != nil || paid.Add(p.Amount).Cmp(terms.PayeeDay) <= 0 || p.Amount.Cmp(terms.PayeeDay) > 0 {
		return err // of more than a day's most, which the terms allowed when it was promised, no day has room; the operator judges
	}
	return exchange.Errorf(exchange.CodeLimitReached, "The operator pays one payee at most %s KES a day; the payee gets the rest tomorrow.", terms.PayeeDay)
}
