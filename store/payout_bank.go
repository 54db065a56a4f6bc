package store

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

// Orders that are paid out by bank. An officer pays and confirms with the bank's reference; above a value another
// officer has to confirm the same. Confirmations are rows; the last one needed completes the order.

// BeginBankPayout puts an order's payout in the treasury's queue and reserves its money at the bank. A repeated call
// returns the current payout. CodeInsufficientFunds when the house has too little money at its bank; CodeStateConflict
// with the cause ErrUncleared when the sender of the crypto has to be screened again.
func (s *Store) BeginBankPayout(ctx context.Context, orderID uuid.UUID) (exchange.OrderPayout, error) {
	return change(ctx, s, "payout", orderID, func(ctx context.Context, t unitTx) (exchange.OrderPayout, exchange.Posting, error) {
		var none exchange.Posting
		o, before, err := t.lockedOrderPayout(ctx, orderID)
		if err != nil || before.Status == exchange.PayoutProcessing || before.Status == exchange.PayoutCompleted {
			return before, none, err
		}
		if before.Rail != exchange.PayoutByBank {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "The order is not paid out by bank.")
		}
		if err := t.sendersCleared(ctx, orderID); err != nil {
			return before, none, err
		}
		bank, err := t.bankWith(ctx, before.Amount)
		if err != nil {
			return before, none, err
		}
		hold, err := uuid.NewV7()
		if err != nil {
			return before, none, err
		}
		p := before
		p.Status, p.HoldID = exchange.PayoutProcessing, hold
		if p, err = t.movePayout(ctx, o, before, p, flow); err != nil {
			return before, none, err
		}
		return p, exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
			ID: hold, Key: "bank_payout:" + orderID.String() + ":" + strconv.FormatInt(p.Version, 10), Account: bank,
			Amount: p.Amount, ObjectType: "order", ObjectID: orderID,
		}}}}, nil
	})
}

const confirmationColumns = `c.id, c.order_id, c.withdrawal_id, c.refund_id, c.officer_id, c.reference, c.paid_on, c.amount||' KES' AS amount, c.note, c.created_at`

const readConfirmations = `SELECT ` + confirmationColumns + ` FROM bank_confirmations c
WHERE c.order_id = ANY ($1::uuid[]) AND c.withdrawn_at IS NULL ORDER BY c.created_at, c.id`

const readConfirmation = `SELECT ` + confirmationColumns + ` FROM bank_confirmations c WHERE c.id = $1`

const insertConfirmation = `
INSERT INTO bank_confirmations (id, order_id, officer_id, reference, paid_on, amount, note, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

const withdrawConfirmation = `UPDATE bank_confirmations SET withdrawn_at = $2 WHERE id = $1 AND withdrawn_at IS NULL`

// SaveBankConfirmation stores an officer's confirmation that the bank has paid an order out, and completes the order
// when it is the last one that its amount requires: done is true then. A repeated request changes nothing. Another
// confirmation by the same officer replaces the earlier one while the order waits.
//
// CodeInvalid for an amount that is not the payout's or a day that is not between the order's and today; CodeConflict
// when another officer has given another reference, or the reference paid another order; CodeStateConflict when the
// order waits for no bank payout; CodeForbidden for an officer who may not confirm it.
func (s *Store) SaveBankConfirmation(ctx context.Context, c exchange.BankConfirmation, by exchange.Principal) (done bool, err error) {
	c.Reference = exchange.BankReference(c.Reference)
	return change(ctx, s, "payment by bank", c.OrderID, func(ctx context.Context, t unitTx) (bool, exchange.Posting, error) {
		var none exchange.Posting
		o, p, err := t.lockedOrderPayout(ctx, c.OrderID)
		if err != nil {
			return false, none, err
		}
		if known, err := t.saidBefore(ctx, c); err != nil || known {
			return p.Status == exchange.PayoutCompleted, none, err
		}
		if p.Rail != exchange.PayoutByBank || p.Status != exchange.PayoutProcessing {
			return false, none, exchange.Errorf(exchange.CodeStateConflict, "The order does not wait for a payment by bank.")
		}
		c.CreatedAt = t.s.now()
		if err := fits(c, o, p); err != nil {
			return false, none, err
		}
		if err := t.agree(ctx, o, c, by); err != nil {
			return false, none, err
		}
		v, err := t.judge(ctx, exchange.ReleasePayout, c.OrderID)
		if err != nil || !v.Pass {
			return false, none, t.say(ctx, o, exchange.WaitBankSecond, err)
		}
		posting, err := t.paidByBank(ctx, o, p, c.Reference, by)
		return true, posting, err
	})
}

// say stores what an order waits for, unless an earlier step failed.
func (t unitTx) say(ctx context.Context, before exchange.Order, detail string, err error) error {
	if err != nil || before.StatusDetail == detail {
		return err
	}
	o := before
	o.StatusDetail = detail
	_, err = t.saveOrder(ctx, "order.detail_changed", flow, before, o)
	return err
}

// paidByBank completes an order whose bank payout is confirmed by enough officers.
func (t unitTx) paidByBank(ctx context.Context, o exchange.Order, before exchange.OrderPayout, reference string, by exchange.Principal) (exchange.Posting, error) {
	p := before
	p.Status, p.Receipt = exchange.PayoutCompleted, reference
	if _, err := t.movePayout(ctx, o, before, p, by); err != nil {
		return exchange.Posting{}, err
	}
	bank, err := t.bankOf(ctx, before.HoldID, before.Amount.Asset())
	if err != nil {
		return exchange.Posting{}, err
	}
	posting, err := t.completeOffRamp(ctx, o, reference, bank, by)
	posting.Holds = append(posting.Holds, exchange.HoldOp{Verb: exchange.HoldCapture, Hold: exchange.Hold{ID: before.HoldID}})
	return posting, err
}

// saidBefore reports whether exactly this confirmation was stored before. Another one with its id is a conflict.
func (t unitTx) saidBefore(ctx context.Context, c exchange.BankConfirmation) (bool, error) {
	var rows []exchange.BankConfirmation
	if err := t.All(ctx, &rows, readConfirmation, c.ID); err != nil || len(rows) == 0 {
		return false, err
	}
	if old := rows[0]; old.OrderID != c.OrderID || old.OfficerID != c.OfficerID || !sameConfirmation(old, c) {
		return true, exchange.Errorf(exchange.CodeConflict, "The id belongs to another confirmation.")
	}
	return true, nil
}

func sameConfirmation(a, b exchange.BankConfirmation) bool {
	return a.Reference == b.Reference && a.PaidOn.Equal(b.PaidOn) && a.Amount.Equal(b.Amount) && a.Note == b.Note
}

// fits checks a confirmation against its order.
func fits(c exchange.BankConfirmation, o exchange.Order, p exchange.OrderPayout) error {
	if err := require(c.Amount.Equal(p.Amount), "/amount", "mismatch", "must be the amount that the order pays out"); err != nil {
		return err
	}
	opened, today := exchange.KenyanDay(o.CreatedAt), exchange.KenyanDay(c.CreatedAt)
	return require(!c.PaidOn.Before(opened) && !c.PaidOn.After(today), "/paid_on", "range", "must be between the day of the order and today")
}

// kenya is Kenya's time zone, which has no daylight saving time.
var kenya = time.FixedZone("EAT", 3*60*60)

// agree stores a confirmation beside those of other officers, and replaces the officer's own earlier one.
func (t unitTx) agree(ctx context.Context, o exchange.Order, c exchange.BankConfirmation, by exchange.Principal) error {
	if err := t.takeBackWeightless(ctx, c.OrderID); err != nil {
		return err
	}
	said, err := t.bankConfirmations(ctx, c.OrderID)
	if err != nil {
		return err
	}
	for _, other := range said {
		switch {
		case other.OfficerID == c.OfficerID && sameConfirmation(other, c):
			return exchange.Errorf(exchange.CodeConflict, "You have already confirmed this payment. Another officer has to confirm it.")
		case other.OfficerID == c.OfficerID:
			err = t.One(ctx, withdrawConfirmation, other.ID, c.CreatedAt)
		case other.Reference != c.Reference || !other.PaidOn.Equal(c.PaidOn):
			err = exchange.Errorf(exchange.CodeConflict, "Another officer has given another reference or day. Agree on the right one; the officer who was wrong then confirms again.")
		}
		if err != nil {
			return err
		}
	}
	var elsewhere bool
	if err := t.Get(ctx, &elsewhere, paidElsewhere, c.Reference, c.OrderID); err != nil {
		return err
	}
	if elsewhere {
		return exchange.Errorf(exchange.CodeConflict, "The reference belongs to the payment of another order.")
	}
	if err := t.One(ctx, insertConfirmation, c.ID, c.OrderID, c.OfficerID, c.Reference, c.PaidOn, c.Amount.Decimal(), c.Note, c.CreatedAt); err != nil {
		return err
	}
	return t.record(ctx, auditEvent{
		by: by, object: "bank_confirmation", id: c.ID, name: "bank_confirmation.saved", after: map[string]any{
			"id": c.ID, "order_id": o.ID, "officer_id": c.OfficerID, "amount": c.Amount.String(), "currency": c.Amount.Asset(),
			"reference": c.Reference, "paid_on": c.PaidOn.Format(time.DateOnly),
		},
	})
}

const paidElsewhere = `SELECT EXISTS (SELECT FROM bank_confirmations WHERE reference = $1 AND order_id IS DISTINCT FROM $2 AND withdrawn_at IS NULL)`

// bankConfirmations are the valid confirmations of an order.
func (t unitTx) bankConfirmations(ctx context.Context, orderID uuid.UUID) ([]exchange.BankConfirmation, error) {
	var rows []exchange.BankConfirmation
	if err := t.All(ctx, &rows, readConfirmations, pq.Array([]uuid.UUID{orderID})); err != nil {
		return nil, err
	}
	return rows, nil
}
