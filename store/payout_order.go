package store

import (
	"context"
	"database/sql"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// Payouts of orders that sell crypto.

const orderPayoutColumns = `p.id AS order_id, p.rail, p.amount||' '||p.asset AS amount, p.phone, p.status, p.paid_by, p.hold_id, p.receipt, p.refused_code, p.doubted, p.claimed,
	(SELECT o.payment_reference FROM orders o WHERE o.id = p.id) AS reference, p.created_at, p.updated_at, p.completed_at, p.version`

func orderPayoutSnapshot(p exchange.OrderPayout) map[string]any {
	return map[string]any{
		"order_id": p.OrderID, "rail": p.Rail, "amount": p.Amount.String(), "currency": p.Amount.Asset(), "phone_number": p.Phone.String(),
		"status": p.Status, "receipt": p.Receipt, "refused_code": p.RefusedCode, "version": p.Version,
	}
}

func (t unitTx) recordPayout(ctx context.Context, o exchange.Order, before *exchange.OrderPayout, p exchange.OrderPayout, by exchange.Principal) error {
	f := auditEvent{
		by: by, object: "order_payout", id: p.OrderID, name: "order_payout." + string(p.Status), owner: o.CustomerID, vendor: o.VendorID,
		after: orderPayoutSnapshot(p),
	}
	if before != nil {
		f.before = orderPayoutSnapshot(*before)
	}
	return t.record(ctx, f)
}

const insertOrderPayout = `
INSERT INTO order_payouts AS p (id, rail, asset, amount, phone, status, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, 'pending', $6, $6) RETURNING ` + orderPayoutColumns

// openOrderPayout opens the payout of an order's shillings to its payee. The caller has already stored the order as
// processing, with its final price.
func (t unitTx) openOrderPayout(ctx context.Context, o exchange.Order) error {
	var p exchange.OrderPayout
	err := t.Get(ctx, &p, insertOrderPayout, o.ID, o.PaymentMethod, o.Price.Fiat.Asset(), o.Price.Fiat.Decimal(), o.PaymentPhone.Digits(), t.s.now())
	if err != nil {
		return err
	}
	return t.recordPayout(ctx, o, nil, p, flow)
}

const readOrderPayout = `SELECT ` + orderPayoutColumns + ` FROM order_payouts p WHERE p.id = $1`

const lockOrderPayout = readOrderPayout + ` FOR NO KEY UPDATE`

// OrderPayout reads the payout of an order.
func (s *Store) OrderPayout(ctx context.Context, orderID uuid.UUID) (exchange.OrderPayout, error) {
	var r exchange.OrderPayout
	if err := s.db.Get(ctx, &r, readOrderPayout, orderID); err != nil {
		return exchange.OrderPayout{}, translate(err, "payout of the order")
	}
	return r, nil
}

// lockedOrderPayout reads and locks an order and its payout, the order first as everywhere.
func (t unitTx) lockedOrderPayout(ctx context.Context, orderID uuid.UUID) (exchange.Order, exchange.OrderPayout, error) {
	o, err := t.lockedOrder(ctx, orderID)
	if err != nil {
		return o, exchange.OrderPayout{}, err
	}
	var r exchange.OrderPayout
	if err := t.Get(ctx, &r, lockOrderPayout, orderID); err != nil {
		return o, exchange.OrderPayout{}, translate(err, "payout of the order")
	}
	return o, r, nil
}

const saveOrderPayout = `
UPDATE order_payouts AS p SET status = $2, paid_by = $3, hold_id = $4, receipt = $5, refused_code = $6, completed_at = $7, updated_at = $8, version = version + 1
WHERE p.id = $1 AND p.version = $9 AND p.status = ANY ($10) RETURNING ` + orderPayoutColumns

// movePayout stores a payout in another state, with its event and audit row.
func (t unitTx) movePayout(ctx context.Context, o exchange.Order, before, p exchange.OrderPayout, by exchange.Principal) (exchange.OrderPayout, error) {
	if err := exchange.OrderPayoutMachine.Allow(before.Status, p.Status); err != nil {
		return before, err
	}
	var completed sql.NullTime
	if p.Status == exchange.PayoutCompleted {
		completed = nullTime(t.s.now())
	}
	var rows []exchange.OrderPayout
	err := t.All(ctx, &rows, saveOrderPayout, p.OrderID, p.Status, nullID(p.PaidBy), nullID(p.HoldID), p.Receipt, clip(p.RefusedCode, 40), completed,
		t.s.now(), before.Version, pq.Array(exchange.OrderPayoutMachine.Sources(p.Status)))
	if err == nil && len(rows) == 0 {
		err = pg.ErrChangedMeanwhile
	}
	if err != nil {
		return before, err
	}
	p = rows[0]
	return p, t.recordPayout(ctx, o, &before, p, by)
}

// cancelOrderPayout gives up paying an order out, because its crypto is refunded. The order has to end as failed in
// the same transaction. An order without an open payout is left as it is. CodeStateConflict while an attempt may have
// moved money, and after one has.
func (t unitTx) cancelOrderPayout(ctx context.Context, o exchange.Order, by exchange.Principal) error {
	var rows []exchange.OrderPayout
	if err := t.All(ctx, &rows, lockOrderPayout, o.ID); err != nil || len(rows) == 0 {
		return err
	}
	before := rows[0]
	if before.Status == exchange.PayoutCancelled {
		return nil
	}
	if before.Status != exchange.PayoutPending && before.Status != exchange.PayoutRefused {
		return exchange.Errorf(exchange.CodeStateConflict, "The payout of the order is %s, so the crypto can't be refunded now.", before.Status)
	}
	if o.Status == exchange.OrderCompleted {
		return exchange.Errorf(exchange.CodeStateConflict, "The order is paid out, so the crypto can't be refunded.")
	}
	p := before
	p.Status = exchange.PayoutCancelled
	if _, err := t.movePayout(ctx, o, before, p, by); err != nil {
		return err
	}
	return t.endUnpassed(ctx, exchange.ReleasePayout, o.ID)
}

// orderPayout is the payout of an order as an object of payouts.
type orderPayout struct {
	o exchange.Order
	p exchange.OrderPayout
}

func payableOrder(p exchange.OrderPayout) exchange.Payable {
	return exchange.Payable{
		Object: exchange.OrderObject(p.OrderID), OrderID: p.OrderID, Amount: p.Amount, Phone: p.Phone, Reference: p.Reference,
		Status: string(p.Status), Paid: p.Status == exchange.PayoutCompleted, Receipt: p.Receipt, Claimed: p.Claimed,
	}
}

func readOrderPayable(ctx context.Context, s *Store, id uuid.UUID) (exchange.Payable, error) {
	p, err := s.OrderPayout(ctx, id)
	return payableOrder(p), err
}

func lockOrderPayoutObject(ctx context.Context, t unitTx, id uuid.UUID) (payoutObject, error) {
	o, p, err := t.lockedOrderPayout(ctx, id)
	return &orderPayout{o, p}, err
}

func (x *orderPayout) parties() (owner, vendor uuid.UUID) { return x.o.CustomerID, x.o.VendorID }

func (x *orderPayout) owes() exchange.Payable { return payableOrder(x.p) }

func (x *orderPayout) over() bool {
	return x.p.Status == exchange.PayoutCompleted || x.p.Status == exchange.PayoutCancelled
}

func (x *orderPayout) underWay() bool { return x.p.Status == exchange.PayoutProcessing }

// ready returns CodeStateConflict when the order no longer pays anything out, and with the cause ErrUncleared when the
// sender of the crypto has to be screened again.
func (x *orderPayout) ready(ctx context.Context, t unitTx) (bool, error) {
	if x.p.Rail != exchange.PayoutByMomo || (x.p.Status != exchange.PayoutPending && x.p.Status != exchange.PayoutRefused) {
		return false, exchange.Errorf(exchange.CodeStateConflict, "A payout that is %s can't take another attempt.", x.p.Status)
	}
	return true, t.sendersCleared(ctx, x.o.ID)
}

func (x *orderPayout) begin(ctx context.Context, t unitTx) error {
	p := x.p
	p.Status = exchange.PayoutProcessing
	_, err := t.movePayout(ctx, x.o, x.p, p, flow)
	return t.say(ctx, x.o, exchange.WaitPayout, err)
}

func (x *orderPayout) complete(ctx context.Context, t unitTx, a exchange.PaymentAttempt, receipt string) (exchange.Posting, error) {
	p := x.p
	p.Status, p.PaidBy, p.Receipt = exchange.PayoutCompleted, a.ID, receipt
	var err error
	if x.p, err = t.movePayout(ctx, x.o, x.p, p, flow); err != nil {
		return exchange.Posting{}, err
	}
	return t.completeOffRamp(ctx, x.o, receipt, exchange.House(exchange.AccMomoPayout, a.Amount.Asset()), flow)
}

// again stops the refund of the crypto: the payee may keep the shillings instead.
func (x *orderPayout) again(ctx context.Context, t unitTx) error { return t.stopRefund(ctx, x.o) }

func (x *orderPayout) refuse(ctx context.Context, t unitTx, code string) error {
	p := x.p
	p.Status, p.RefusedCode = exchange.PayoutRefused, code
	var err error
	x.p, err = t.movePayout(ctx, x.o, x.p, p, flow)
	return err
}

func (x *orderPayout) doubt(ctx context.Context, t unitTx, claimed bool) error {
	if claimed {
		return t.applyClaim(ctx, x.o)
	}
	_, err := t.Exec(ctx, endClaimOfOrder, x.o.ID)
	return err
}

// completeOffRamp ends an order that was paid out of an account of the house: the vendor's shillings pay for it, and
// the rounding difference stays with the house.
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
				exchange.Credit(exchange.House(exchange.AccFees, money.KES), o.Price.Fee),
			),
		}},
	}, nil
}

// stopRefund parks the refund of an order for an officer if nothing of it has left yet: the payee may have been paid.
func (t unitTx) stopRefund(ctx context.Context, o exchange.Order) error {
	r, found, err := t.maybeRefund(ctx, readRefundOfOrder+` FOR NO KEY UPDATE`, o.ID)
	if err != nil || !found {
		return err
	}
	return t.stopCryptoRefund(ctx, o, r)
}

const (
	doubtPayout     = `UPDATE order_payouts SET doubted = true WHERE id = $1 AND NOT doubted`
	claimPayout     = `UPDATE order_payouts SET doubted = true, claimed = true WHERE id = $1 AND NOT (doubted AND claimed)`
	endClaimOfOrder = `UPDATE order_payouts SET claimed = false WHERE id = $1 AND claimed`
	// isDismissed reports whether an officer has dismissed the present claim and let the refund continue.
	isDismissed = `SELECT EXISTS (SELECT FROM order_payouts p JOIN refunds r ON r.order_id = p.id WHERE p.id = $1 AND p.claimed AND r.dismissed_by IS NOT NULL)`
)

// applyClaim marks the payout of a locked order as claimed and stops its refund, unless an officer has dismissed that
// claim.
func (t unitTx) applyClaim(ctx context.Context, o exchange.Order) error {
	var dismissed bool
	if err := t.Get(ctx, &dismissed, isDismissed, o.ID); err != nil || dismissed {
		return err
	}
	if _, err := t.Exec(ctx, claimPayout, o.ID); err != nil {
		return err
	}
	return t.stopRefund(ctx, o)
}
