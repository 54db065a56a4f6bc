package store

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The provider's limit on what one payee gets by mobile money per day, in Kenya's time. It is checked under a lock of
// the payee, so that two concurrent payments can't exceed it together.

const lockPayee = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko payee ' || $1, 0))`

// promisedToPayee is what sales by other customers promise a phone or have paid it since a moment, plus other payments
// made or possible: refunds, also those that officers paid, and payouts of given-up sales.
const promisedToPayee = `
SELECT (SELECT coalesce(sum(o.fiat_amount), 0) FROM orders o WHERE o.payment_phone = $1 AND o.payment_method = 'momo' AND o.order_type LIKE 'OFF\_RAMP%' AND o.id <> $3
        AND (o.status IN ('pending', 'confirming', 'processing') OR (o.status = 'completed' AND o.completed_at >= $2)))
    + (SELECT coalesce(sum(a.amount), 0) FROM payment_attempts a LEFT JOIN orders o ON o.id = a.order_id
        WHERE a.direction = 'payout' AND a.phone = $1 AND (o.id IS NULL OR o.status NOT IN ('processing', 'completed'))
            AND (a.status IN ('created', 'unknown', 'accepted') OR (a.status = 'succeeded' AND a.settled_at >= $2)))
    + (SELECT coalesce(sum(f.amount), 0) FROM refunds f WHERE f.rail = 'momo' AND f.status = 'completed' AND f.paid_by IS NULL
        AND f.phone = $1 AND f.completed_at >= $2 AND NOT EXISTS (SELECT FROM payment_attempts a WHERE a.receipt = f.receipt AND a.receipt <> ''))`

// kenyaMidnight is the start of the day in Kenya.
func kenyaMidnight(at time.Time) time.Time {
	y, m, d := at.In(kenya).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, kenya)
}

// promisable refuses a sale that would exceed its payee's daily limit together with the payouts already promised.
func (t unitTx) promisable(ctx context.Context, o exchange.Order, pointer string) error {
	if o.PaymentMethod != exchange.PaymentMethodMomo {
		return nil
	}
	terms, err := t.termsAt(ctx, t.s.now())
	if err != nil {
		return err
	}
	if _, err := t.Exec(ctx, lockPayee, o.PaymentPhone.Digits()); err != nil {
		return err
	}
	var sum decimal.Decimal
	if err := t.Get(ctx, &sum, promisedToPayee, o.PaymentPhone.Digits(), kenyaMidnight(t.s.now()), o.ID); err != nil {
		return err
	}
	promised, err := amountOf(money.KES, sum)
	if err != nil {
		return err
	}
	return require(promised.Add(o.Price.Fiat).Cmp(terms.PayeeDay) <= 0, pointer, "payee_day",
		"brings this payee more than "+terms.PayeeDay.String()+" KES today, the mobile money provider's daily limit for one payee")
}

// payeeHasRoom returns CodeLimitReached for a payout above the remainder of its payee's daily limit. It can be made
// tomorrow. The database checks the attempt again; here the payee is locked before the rows of events.
func (t unitTx) payeeHasRoom(ctx context.Context, p exchange.Payable) error {
	var room bool
	err := t.Get(ctx, &room, `SELECT payee_has_room($1, $2, $3)`, p.Phone.Digits(), p.Amount.Decimal(), t.s.now())
	if err == nil && !room {
		err = exchange.Errorf(exchange.CodeLimitReached, "The payee has reached the mobile money operator's daily limit. The payout can be made tomorrow.")
	}
	return err
}
