package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What an order that sells crypto pays out. The order is locked first, then its payout, then the attempt.

const orderPayoutColumns = `p.id, p.rail, p.asset, p.amount, p.phone, p.status, p.paid_by, p.hold_id, p.receipt, p.refused_code, p.doubted, p.claimed,
	p.created_at, p.updated_at, p.completed_at, p.version`

// orderPayoutRow is a row of order_payouts.
type orderPayoutRow struct {
	ID          uuid.UUID
	Rail        exchange.PayoutRail
	Asset       money.Asset
	Amount      decimal.Decimal
	Phone       exchange.Phone
	Status      exchange.PayoutStatus
	PaidBy      uuid.NullUUID `db:"paid_by"`
	HoldID      uuid.NullUUID `db:"hold_id"`
	Receipt     string
	RefusedCode string `db:"refused_code"`
	Doubted     bool
	Claimed     bool
	CreatedAt   time.Time    `db:"created_at"`
	UpdatedAt   time.Time    `db:"updated_at"`
	CompletedAt sql.NullTime `db:"completed_at"`
	Version     int64
}

func (r orderPayoutRow) payout() (exchange.OrderPayout, error) {
	m, err := amountOf(r.Asset, r.Amount)
	return exchange.OrderPayout{
		OrderID: r.ID, Rail: r.Rail, Amount: m, Phone: r.Phone, Status: r.Status, PaidBy: r.PaidBy.UUID, HoldID: r.HoldID.UUID, Receipt: r.Receipt,
		RefusedCode: r.RefusedCode, Doubted: r.Doubted, Claimed: r.Claimed, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), CompletedAt: utc(r.CompletedAt),
		Version: r.Version,
	}, err
}

func orderPayoutFact(p exchange.OrderPayout) map[string]any {
	return map[string]any{
		"order_id": p.OrderID, "rail": p.Rail, "amount": p.Amount.String(), "currency": p.Amount.Asset(), "phone_number": p.Phone.String(),
		"status": p.Status, "receipt": p.Receipt, "refused_code": p.RefusedCode, "version": p.Version,
	}
}

func (t unitTx) recordPayout(ctx context.Context, o exchange.Order, before *exchange.OrderPayout, p exchange.OrderPayout, by exchange.Principal) error {
	f := fact{
		by: by, object: "order_payout", id: p.OrderID, name: "order_payout." + string(p.Status), owner: o.CustomerID, vendor: o.VendorID,
		after: orderPayoutFact(p),
	}
	if before != nil {
		f.before = orderPayoutFact(*before)
	}
	return t.record(ctx, f)
}

const insertOrderPayout = `
INSERT INTO order_payouts AS p (id, rail, asset, amount, phone, status, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, 'pending', $6, $6) RETURNING ` + orderPayoutColumns

// openOrderPayout promises the payee of an order its shillings. The order is stored as processing before, with the
// price that holds.
func (t unitTx) openOrderPayout(ctx context.Context, o exchange.Order) error {
	var r orderPayoutRow
	err := t.get(ctx, &r, insertOrderPayout, o.ID, o.PaymentMethod, o.Price.Fiat.Asset(), o.Price.Fiat.Decimal(), o.PaymentPhone.Digits(), t.s.now())
	if err != nil {
		return err
	}
	p, err := r.payout()
	if err != nil {
		return err
	}
	return t.recordPayout(ctx, o, nil, p, flow)
}

const readOrderPayout = `SELECT ` + orderPayoutColumns + ` FROM order_payouts p WHERE p.id = $1`

const lockOrderPayout = readOrderPayout + ` FOR NO KEY UPDATE`

// OrderPayout reads what an order pays out.
func (s *Store) OrderPayout(ctx context.Context, orderID uuid.UUID) (exchange.OrderPayout, error) {
	var r orderPayoutRow
	if err := s.read(ctx, &r, readOrderPayout, orderID); err != nil {
		return exchange.OrderPayout{}, translate(err, "payout of the order")
	}
	return r.payout()
}

// lockedOrderPayout reads an order and its payout for change, the order first as everywhere.
func (t unitTx) lockedOrderPayout(ctx context.Context, orderID uuid.UUID) (exchange.Order, exchange.OrderPayout, error) {
	o, err := t.lockedOrder(ctx, orderID)
	if err != nil {
		return o, exchange.OrderPayout{}, err
	}
	var r orderPayoutRow
	if err := t.get(ctx, &r, lockOrderPayout, orderID); err != nil {
		return o, exchange.OrderPayout{}, translate(err, "payout of the order")
	}
	p, err := r.payout()
	return o, p, err
}

const saveOrderPayout = `
UPDATE order_payouts AS p SET status = $2, paid_by = $3, hold_id = $4, receipt = $5, refused_code = $6, completed_at = $7, updated_at = $8, version = version + 1
WHERE p.id = $1 AND p.version = $9 AND p.status = ANY ($10) RETURNING ` + orderPayoutColumns

// movePayout stores a payout that is in another state than before, with its event and audit row.
func (t unitTx) movePayout(ctx context.Context, o exchange.Order, before, p exchange.OrderPayout, by exchange.Principal) (exchange.OrderPayout, error) {
	if err := exchange.OrderPayoutMachine.Allow(before.Status, p.Status); err != nil {
		return before, err
	}
	var completed sql.NullTime
	if p.Status == exchange.PayoutCompleted {
		completed = nullTime(t.s.now())
	}
	var rows []orderPayoutRow
	err := t.all(ctx, &rows, saveOrderPayout, p.OrderID, p.Status, nullID(p.PaidBy), nullID(p.HoldID), p.Receipt, clip(p.RefusedCode, 40), completed,
		t.s.now(), before.Version, pq.Array(exchange.OrderPayoutMachine.Sources(p.Status)))
	if err == nil && len(rows) == 0 {
		err = errChangedMeanwhile
	}
	if err != nil {
		return before, err
	}
	if p, err = rows[0].payout(); err != nil {
		return before, err
	}
	return p, t.recordPayout(ctx, o, &before, p, by)
}

// cancelOrderPayout gives up paying an order out, because its crypto goes back. The order has to end as failed in the
// same transaction. An order without a payout, or with one that is cancelled, is left as it is. While an attempt may
// have moved money, and after one has, it is CodeStateConflict.
func (t unitTx) cancelOrderPayout(ctx context.Context, o exchange.Order, by exchange.Principal) error {
	var rows []orderPayoutRow
	if err := t.all(ctx, &rows, lockOrderPayout, o.ID); err != nil || len(rows) == 0 {
		return err
	}
	before, err := rows[0].payout()
	if err != nil || before.Status == exchange.PayoutCancelled {
		return err
	}
	if before.Status != exchange.PayoutPending && before.Status != exchange.PayoutRefused {
		return exchange.Errorf(exchange.CodeStateConflict, "The payout of the order is %s; the crypto can't be given back now.", before.Status)
	}
	if o.Status == exchange.OrderCompleted {
		return exchange.Errorf(exchange.CodeStateConflict, "The order is paid out; the crypto can't be given back.")
	}
	p := before
	p.Status = exchange.PayoutCancelled
	_, err = t.movePayout(ctx, o, before, p, by)
	return err
}

// BeginOrderPayout writes an attempt to pay an order out before the operator is asked for it, and reserves its money in
// the payout float together with what the operator charges; CodeInsufficientFunds when the float is short. Called again
// with the same attempt it returns what is there. CodeStateConflict while an attempt before it was not definitely
// refused, and when the order pays nothing out any more, and for the cause ErrUncleared when who sent the crypto has to be
// looked at again; CodeLimitReached when the payee gets no more today.
func (s *Store) BeginOrderPayout(ctx context.Context, orderID uuid.UUID, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	a.Direction, a.RefundID, a.OrderID = exchange.Payout, uuid.Nil, orderID
	return change(ctx, s, "payout", orderID, func(ctx context.Context, t unitTx) (exchange.PaymentAttempt, exchange.Posting, error) {
		var none exchange.Posting
		o, before, err := t.lockedOrderPayout(ctx, orderID)
		if err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		a.Amount, a.Phone = before.Amount, before.Phone
		old, found, err := t.beganBefore(ctx, a)
		if err != nil || found {
			return old, none, err
		}
		if before.Rail != exchange.PayoutByMomo || (before.Status != exchange.PayoutPending && before.Status != exchange.PayoutRefused) {
			return exchange.PaymentAttempt{}, none, exchange.Errorf(exchange.CodeStateConflict, "A payout that is %s takes no other attempt.", before.Status)
		}
		if before.Claimed {
			return exchange.PaymentAttempt{}, none, exchange.Errorf(exchange.CodeStateConflict,
				"A payout of the order that was refused is said to have been made. Another one begins when that is settled.")
		}
		if err := t.sendersCleared(ctx, orderID); err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		if err := t.payeeHasRoom(ctx, before); err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		p := before
		p.Status = exchange.PayoutProcessing
		_, err = t.movePayout(ctx, o, before, p, flow)
		if err := t.say(ctx, o, exchange.WaitPayout, err); err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		hold, err := uuid.NewV7()
		if err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		created, err := t.insertAttempt(ctx, a, hold)
		if err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		charge, err := t.charge(ctx, created.Amount)
		if err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		return created, exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
			ID: hold, Key: "payout:" + a.ID.String(), Account: exchange.House(exchange.AccMomoPayout, a.Amount.Asset()),
			Amount: a.Amount.Add(charge), ObjectType: "payment_attempt", ObjectID: a.ID,
		}}}}, t.recordAttempt(ctx, "created", o, created)
	})
}

// CompleteOrderPayout ends a payout that two witnesses prove: attempt, payout, order and ledger in one transaction.
// Called again it returns the payout as it is. An attempt that proves true after another payment, or after the crypto
// was promised back, is booked as paid twice, under an exception for a person; a refund that has not left yet waits
// for that person too. CodeConflict when the witnesses speak of another amount than was owed.
func (s *Store) CompleteOrderPayout(ctx context.Context, orderID, attemptID uuid.UUID, obs exchange.Observation) (exchange.OrderPayout, error) {
	if obs.Receipt == "" || len(obs.Receipt) > 40 {
		return exchange.OrderPayout{}, exchange.Errorf(exchange.CodeInvalid, "A payout is proven with its receipt.")
	}
	return change(ctx, s, "payout", orderID, func(ctx context.Context, t unitTx) (exchange.OrderPayout, exchange.Posting, error) {
		var none exchange.Posting
		o, before, err := t.lockedOrderPayout(ctx, orderID)
		if err != nil {
			return before, none, err
		}
		a, known, err := t.provenAttempt(ctx, o, before, attemptID, obs)
		if err != nil || known {
			return before, none, err
		}
		if before.Status == exchange.PayoutCompleted || before.Status == exchange.PayoutCancelled {
			p, err := t.paidBesides(ctx, o, a, obs)
			return before, p, err
		}
		holds, err := t.captureFloat(ctx, a.ID)
		if err != nil {
			return before, none, err
		}
		p := before
		p.Status, p.PaidBy, p.Receipt = exchange.PayoutCompleted, a.ID, obs.Receipt
		if p, err = t.movePayout(ctx, o, before, p, flow); err != nil {
			return before, none, err
		}
		posting, err := t.completeOffRamp(ctx, o, obs.Receipt, exchange.House(exchange.AccMomoPayout, a.Amount.Asset()), flow)
		if err != nil {
			return before, none, err
		}
		charge, err := t.charged(ctx, a, obs)
		posting.Entries = append(posting.Entries, charge...)
		posting.Holds = append(posting.Holds, holds...)
		return p, posting, err
	})
}

// provenAttempt stores the success of an attempt, and reports one that was booked before with the same receipt.
func (t unitTx) provenAttempt(ctx context.Context, o exchange.Order, p exchange.OrderPayout, id uuid.UUID, obs exchange.Observation) (exchange.PaymentAttempt, bool, error) {
	_, before, err := t.lockedAttempt(ctx, id)
	switch {
	case err != nil:
		return before, false, err
	case before.OrderID != o.ID || before.Direction != exchange.Payout || before.RefundID != uuid.Nil:
		return before, false, exchange.Errorf(exchange.CodeConflict, "The attempt does not pay the order out.")
	case obs.Amount.Positive() && !obs.Amount.Equal(p.Amount):
		return before, false, exchange.Errorf(exchange.CodeConflict, "The payout moved another amount than the order's.")
	case before.Status == exchange.AttemptSucceeded && before.Receipt == obs.Receipt:
		return before, true, nil
	case before.Status == exchange.AttemptSucceeded:
		return before, false, exchange.Errorf(exchange.CodeConflict, "The attempt was proven with another receipt.")
	}
	a := before
	a.Status, a.Soft, a.ResultCode, a.ResultText = exchange.AttemptSucceeded, false, obs.Code, clip(obs.Text, 500)
	a.Receipt, a.Moved, a.SettledAt = obs.Receipt, p.Amount, t.s.now()
	a, err = t.saveAttempt(ctx, o, before, a)
	return a, false, err
}

// completeOffRamp ends an order that was paid out of an account of the house: the vendor's shillings pay for it, and what
// rounding left over stays with the house.
func (t unitTx) completeOffRamp(ctx context.Context, before exchange.Order, receipt string, from exchange.AccountRef, by exchange.Principal) (exchange.Posting, error) {
	o := before
	o.Status, o.StatusDetail, o.PaymentTxnID = exchange.OrderCompleted, exchange.WaitNothing, receipt
	if from.Kind == exchange.AccMomoPayout {
		o.MomoReceipt = receipt
	}
	o, err := t.saveOrder(ctx, "order.completed", by, before, o)
	if err != nil {
		return exchange.Posting{}, err
	}
	return exchange.Posting{
		Holds: []exchange.HoldOp{{Verb: exchange.HoldCapture, Hold: exchange.Hold{ID: o.HoldID}}},
		Entries: []exchange.Entry{{
			Key: "order:" + o.ID.String() + ":completed", Kind: "order.completed", ObjectType: "order", ObjectID: o.ID,
			Lines: exchange.Lines(
				exchange.Debit(exchange.Owned(exchange.AccFiatBalance, o.VendorID, money.KES), o.Price.Vendor),
				exchange.Credit(from, o.Price.Fiat),
				exchange.Debit(exchange.House(exchange.AccRounding, money.KES), o.Price.Rounding),
			),
		}},
	}, nil
}

// paidBesides books a payout that was made beside another payment of the order, or after its crypto was promised back.
// The money is gone, so the books say so whatever else is wrong: the payee owes it, and a person decides.
func (t unitTx) paidBesides(ctx context.Context, o exchange.Order, a exchange.PaymentAttempt, obs exchange.Observation) (exchange.Posting, error) {
	holds, err := t.captureFloat(ctx, a.ID)
	if err != nil {
		return exchange.Posting{}, err
	}
	if err := t.stopRefund(ctx, o); err != nil {
		return exchange.Posting{}, err
	}
	x, err := t.openException(ctx, o, exchange.PaymentException{
		Kind: exchange.ExcPaidTwice, OrderID: o.ID, AttemptID: a.ID, Receipt: a.Receipt, Amount: a.Amount,
	})
	if err != nil {
		return exchange.Posting{}, err
	}
	charge, err := t.charged(ctx, a, obs)
	return exchange.Posting{Holds: holds, Entries: append(charge, exchange.Entry{
		Key: "payout:" + a.ID.String() + ":besides", Kind: "order_payout.paid_twice", ObjectType: "payment_exception", ObjectID: x.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccReceivable, a.Amount.Asset()), a.Amount),
			exchange.Credit(exchange.House(exchange.AccMomoPayout, a.Amount.Asset()), a.Amount),
		},
	})}, err
}

// stopRefund hands the refund of an order to a person, when nothing of it has left yet: the payee may have been paid.
func (t unitTx) stopRefund(ctx context.Context, o exchange.Order) error {
	r, found, err := t.maybeRefund(ctx, readRefundOfOrder+` FOR NO KEY UPDATE`, o.ID)
	if err != nil || !found {
		return err
	}
	return t.stopCryptoRefund(ctx, o, r)
}

const heldOfFailedPayouts = `
SELECT h.id FROM payment_attempts a JOIN holds h ON h.id = a.hold_id
WHERE a.order_id = $1 AND a.direction = 'payout' AND a.refund_id IS NULL AND a.status IN ('refused', 'failed') AND h.status = 'held' ORDER BY h.id`

const openOrderPayouts = `SELECT count(*) FROM payment_attempts
WHERE order_id = $1 AND direction = 'payout' AND refund_id IS NULL AND status IN ('created', 'unknown', 'accepted')`

// FailOrderPayout stores that a payout was definitely refused, with the operator's code, and frees the float. While an
// attempt may still move money it is CodeStateConflict. A payout that ended, or is refused, is returned as it is, and
// the float of attempts that failed is free.
func (s *Store) FailOrderPayout(ctx context.Context, orderID uuid.UUID, code string) (exchange.OrderPayout, error) {
	return change(ctx, s, "payout", orderID, func(ctx context.Context, t unitTx) (exchange.OrderPayout, exchange.Posting, error) {
		var none exchange.Posting
		o, p, err := t.lockedOrderPayout(ctx, orderID)
		if err != nil {
			return p, none, err
		}
		var ids []uuid.UUID
		if err := t.all(ctx, &ids, heldOfFailedPayouts, orderID); err != nil {
			return p, none, err
		}
		var free exchange.Posting
		for _, id := range ids {
			free.Holds = append(free.Holds, exchange.HoldOp{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: id}})
		}
		if p.Status == exchange.PayoutProcessing {
			var open int
			if err := t.get(ctx, &open, openOrderPayouts, orderID); err != nil {
				return p, none, err
			}
			if open > 0 {
				return p, none, exchange.Errorf(exchange.CodeStateConflict, "The payout of the order may still move money.")
			}
			before := p
			p.Status, p.RefusedCode = exchange.PayoutRefused, code
			if p, err = t.movePayout(ctx, o, before, p, flow); err != nil {
				return p, none, err
			}
		}
		return p, free, nil
	})
}

const (
	doubtPayout     = `UPDATE order_payouts SET doubted = true WHERE id = $1 AND NOT doubted`
	claimPayout     = `UPDATE order_payouts SET doubted = true, claimed = true WHERE id = $1 AND NOT (doubted AND claimed)`
	endClaimOfOrder = `UPDATE order_payouts SET claimed = false WHERE id = $1 AND claimed`
	// isDismissed tells of a claim that stands that a person has let the refund go on all the same.
	isDismissed = `SELECT EXISTS (SELECT FROM order_payouts p JOIN refunds r ON r.order_id = p.id WHERE p.id = $1 AND p.claimed AND r.dismissed_by IS NOT NULL)`
)

// heedClaim marks the payout of a locked order as claimed and stops its refund, unless a person has dismissed that claim.
func (t unitTx) heedClaim(ctx context.Context, o exchange.Order) error {
	var dismissed bool
	if err := t.get(ctx, &dismissed, isDismissed, o.ID); err != nil || dismissed {
		return err
	}
	if _, err := t.exec(ctx, claimPayout, o.ID); err != nil {
		return err
	}
	return t.stopRefund(ctx, o)
}

// DoubtOrderPayout stores that somebody claims that a payout was made which was taken for refused. No other attempt
// begins while it is claimed; a refund of the order that has not left yet waits for a person, and needs a second one from
// now on. Not claimed says that the operator has denied it since: the payout may be tried again, and stays doubted.
// The look at a late word repeats its claim until the operator denies it; one that a person has dismissed stops nothing
// again, and one that comes after a denial does.
func (s *Store) DoubtOrderPayout(ctx context.Context, orderID uuid.UUID, claimed bool) error {
	_, err := change(ctx, s, "payout", orderID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		o, _, err := t.lockedOrderPayout(ctx, orderID)
		switch {
		case err != nil:
		case !claimed:
			_, err = t.exec(ctx, endClaimOfOrder, orderID)
		default:
			err = t.heedClaim(ctx, o)
		}
		return struct{}{}, exchange.Posting{}, err
	})
	return err
}
