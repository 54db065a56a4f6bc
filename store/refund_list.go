package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// RefundFilter narrows a list of refunds.
type RefundFilter struct {
	ID          uuid.UUID
	Status      exchange.RefundStatus
	Asset       money.Asset
	OrderID     uuid.UUID
	ExceptionID uuid.UUID
	Rail        exchange.RefundRail
	// CreatedFrom is inclusive and CreatedTo exclusive; zero is open.
	CreatedFrom, CreatedTo time.Time
	View                   *View // restricts to refunds that concern the view; nil is all
}

const refundColumns = `id, rail, order_id, attempt_id, exception_id, amount||' '||asset AS amount, coalesce(phone, '') AS phone, reason, status, detail, receipt,
	bank_name AS "payee.bank_name", bank_code AS "payee.bank_code", branch AS "payee.branch", swift_code AS "payee.swift_code", account_name AS "payee.account_name",
	account_number AS "payee.account_number", payee_reason AS "payee.reason", bank_hold_id, begun_at, statement_line_id AS line_id,
	(SELECT a.owner_id FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = bank_hold_id) AS bank_id,
	claimed, deposit_id, wallet_id, coalesce(network, '') AS network, address, hold_id, value||' KES' AS value, digest, requested_by, addressed_by,
	created_at, updated_at, completed_at, version`

// refundSnapshot omits the reason: parties of the order read events, and it may reveal that screening refused the
// sender.
func refundSnapshot(r exchange.Refund, detail string) map[string]any {
	f := map[string]any{
		"id": r.ID, "rail": r.Rail, "order_id": nullID(r.OrderID), "exception_id": nullID(r.ExceptionID), "amount": r.Amount.String(),
		"currency": r.Amount.Asset(), "status": r.Status, "detail": detail, "receipt": r.Receipt, "version": r.Version,
	}
	switch r.Rail {
	case exchange.RefundOnChain:
		f["network"], f["address"] = r.Network, r.Address
	case exchange.RefundByMomo:
		f["phone_number"] = r.Phone.String()
	case exchange.RefundByBank: // an account at a bank is personal data
	}
	return f
}

const insertRefund = `
INSERT INTO refunds (id, order_id, attempt_id, collection, exception_id, asset, amount, phone, reason, status, requested_by, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10, $11, $11) RETURNING ` + refundColumns

// openRefund opens a refund of a collection, requested by the principal's user, or by rule where it has none. The
// database refuses one that exceeds the collection's remainder, and one by rule that no rule allows.
func (t unitTx) openRefund(ctx context.Context, o exchange.Order, f exchange.Refund, collection string, by exchange.Principal) (exchange.Refund, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return f, err
	}
	var r exchange.Refund
	err = t.Get(ctx, &r, insertRefund, id, f.OrderID, f.AttemptID, collection, nullID(f.ExceptionID), f.Amount.Asset(), f.Amount.Decimal(),
		f.Phone.Digits(), clip(f.Reason, 200), nullID(by.UserID), t.s.now())
	if err != nil {
		return f, err
	}
	f = r
	return f, t.record(ctx, auditEvent{by: by, object: "refund", id: id, name: "refund.pending", owner: o.CustomerID, vendor: o.VendorID, after: refundSnapshot(f, "")})
}

const readRefund = `SELECT ` + refundColumns + ` FROM refunds WHERE id = $1`

const readRefundOfException = `SELECT ` + refundColumns + ` FROM refunds WHERE exception_id = $1 AND NOT (rail = 'bank' AND status = 'failed')`

const readRefundOfOrder = `SELECT ` + refundColumns + ` FROM refunds WHERE order_id = $1 AND exception_id IS NULL`

const lockRefund = `SELECT ` + refundColumns + ` FROM refunds WHERE id = $1 FOR NO KEY UPDATE`

const orderOfRefund = `SELECT order_id FROM refunds WHERE id = $1`

// Refund reads a refund.
func (s *Store) Refund(ctx context.Context, id uuid.UUID) (exchange.Refund, error) {
	var r exchange.Refund
	if err := s.db.Get(ctx, &r, readRefund, id); err != nil {
		return exchange.Refund{}, translate(err, "refund")
	}
	return r, nil
}

// The refunds that concern a customer or a merchant: those of its orders and of its payment exceptions.
const (
	refundsOfCustomer = `SELECT id FROM refunds WHERE order_id IN (SELECT id FROM orders WHERE customer_id = ? AND deleted_at IS NULL)
UNION ALL SELECT id FROM refunds WHERE exception_id IN (` + exceptionsOfCustomer + `)`
	refundsOfMerchant = `SELECT id FROM refunds WHERE order_id IN (SELECT id FROM orders WHERE (vendor_id = ? OR customer_id = ?) AND deleted_at IS NULL)
UNION ALL SELECT id FROM refunds WHERE exception_id IN (` + exceptionsOfMerchant + `)`
)

// ListRefunds pages through the refunds, newest first, with their number.
func (s *Store) ListRefunds(ctx context.Context, f RefundFilter, p Page) ([]exchange.Refund, int, error) {
	var w where
	w.concerns(f.View, "id", refundsOfCustomer, refundsOfMerchant)
	w.id("id", f.ID)
	w.eq("status", string(f.Status))
	w.eq("asset", string(f.Asset))
	w.id("order_id", f.OrderID)
	w.id("exception_id", f.ExceptionID)
	w.eq("rail", string(f.Rail))
	w.between("created_at", f.CreatedFrom, f.CreatedTo)
	var rows []exchange.Refund
	total, err := s.page(ctx, &rows, list{columns: refundColumns, from: "refunds", where: w, order: "created_at DESC, id DESC"}, p)
	if err != nil {
		return nil, 0, translate(err, "refund")
	}
	return rows, total, nil
}

func (t unitTx) refundOf(ctx context.Context, exceptionID uuid.UUID) (exchange.Refund, bool, error) {
	return t.maybeRefund(ctx, readRefundOfException, exceptionID)
}

func (t unitTx) maybeRefund(ctx context.Context, query string, key uuid.UUID) (exchange.Refund, bool, error) {
	var rows []exchange.Refund
	if err := t.All(ctx, &rows, query, key); err != nil || len(rows) == 0 {
		return exchange.Refund{}, false, err
	}
	return rows[0], true, nil
}

// lockedRefund reads and locks a mobile money refund and its order. One in crypto is CodeStateConflict: no payout or
// receipt of the provider ends it.
func (t unitTx) lockedRefund(ctx context.Context, id uuid.UUID) (exchange.Order, exchange.Refund, error) {
	o, r, err := t.lockedAnyRefund(ctx, id)
	if err == nil && r.Rail != exchange.RefundByMomo {
		err = exchange.Errorf(exchange.CodeStateConflict, "The refund is not paid by mobile money.")
	}
	return o, r, err
}

// lockedAnyRefund reads and locks a refund and its order, the order first as everywhere. The order is zero when the
// money belongs to no order.
func (t unitTx) lockedAnyRefund(ctx context.Context, id uuid.UUID) (exchange.Order, exchange.Refund, error) {
	var orderID uuid.NullUUID
	if err := t.Get(ctx, &orderID, orderOfRefund, id); err != nil {
		return exchange.Order{}, exchange.Refund{}, translate(err, "refund")
	}
	var o exchange.Order
	if orderID.Valid {
		var err error
		if o, err = t.lockedOrder(ctx, orderID.UUID); err != nil {
			return o, exchange.Refund{}, err
		}
	}
	var r exchange.Refund
	if err := t.Get(ctx, &r, lockRefund, id); err != nil {
		return o, exchange.Refund{}, translate(err, "refund")
	}
	return o, r, nil
}

const saveRefund = `
UPDATE refunds SET status = $2, detail = $3, receipt = $4, paid_by = $5, completed_at = $6, updated_at = $7, version = version + 1,
    claimed = claimed AND $2 <> 'completed'
WHERE id = $1 AND version = $8 AND status = ANY ($9) RETURNING ` + refundColumns

// moveRefund stores another status of a refund, with its event and audit row.
func (t unitTx) moveRefund(ctx context.Context, o exchange.Order, before exchange.Refund, to exchange.RefundStatus, detail, receipt string, paidBy uuid.UUID, by exchange.Principal) (exchange.Refund, error) {
	if err := exchange.RefundMachine.Allow(before.Status, to); err != nil {
		return before, err
	}
	var completed sql.NullTime
	if to == exchange.RefundCompleted {
		completed = nullTime(t.s.now())
	}
	var rows []exchange.Refund
	err := t.All(ctx, &rows, saveRefund, before.ID, to, clip(detail, 200), receipt, nullID(paidBy), completed, t.s.now(), before.Version,
		pq.Array(exchange.RefundMachine.Sources(to)))
	if err == nil && len(rows) == 0 {
		err = pg.ErrChangedMeanwhile
	}
	if err != nil {
		return before, err
	}
	r := rows[0]
	if to == exchange.RefundCompleted {
		if err := t.endUnpassed(ctx, exchange.ReleaseRefund, r.ID); err != nil {
			return r, err
		}
	}
	return r, t.record(ctx, auditEvent{
		by: by, object: "refund", id: r.ID, name: "refund." + string(to), owner: o.CustomerID, vendor: o.VendorID,
		before: refundSnapshot(before, ""), after: refundSnapshot(r, detail),
	})
}

// refundPayout is a mobile money refund as an object of payouts.
type refundPayout struct {
	o exchange.Order
	r exchange.Refund
}

func payableRefund(r exchange.Refund) exchange.Payable {
	return exchange.Payable{
		Object: exchange.RefundObject(r.ID), OrderID: r.OrderID, Amount: r.Amount, Phone: r.Phone, Reference: "Refund",
		Status: string(r.Status), Paid: r.Status == exchange.RefundCompleted, Receipt: r.Receipt, Claimed: r.Claimed,
	}
}

func readRefundPayable(ctx context.Context, s *Store, id uuid.UUID) (exchange.Payable, error) {
	r, err := s.Refund(ctx, id)
	return payableRefund(r), err
}

func lockRefundPayoutObject(ctx context.Context, t unitTx, id uuid.UUID) (payoutObject, error) {
	o, r, err := t.lockedRefund(ctx, id)
	return &refundPayout{o, r}, err
}

func (x *refundPayout) parties() (owner, vendor uuid.UUID) { return x.o.CustomerID, x.o.VendorID }

func (x *refundPayout) owes() exchange.Payable { return payableRefund(x.r) }

func (x *refundPayout) over() bool { return x.r.Status == exchange.RefundCompleted }

func (x *refundPayout) underWay() bool { return x.r.Status == exchange.RefundProcessing }

// ready parks a refund with a doubtful payer for an officer (see doubtPayer).
func (x *refundPayout) ready(ctx context.Context, t unitTx) (bool, error) {
	held, err := t.doubtPayer(ctx, x.o, x.r)
	return !held, err
}

func (x *refundPayout) begin(ctx context.Context, t unitTx) error {
	_, err := t.moveRefund(ctx, x.o, x.r, exchange.RefundProcessing, "", "", uuid.Nil, flow)
	return err
}

func (x *refundPayout) complete(ctx context.Context, t unitTx, a exchange.PaymentAttempt, receipt string) (exchange.Posting, error) {
	var err error
	x.r, err = t.finishRefund(ctx, x.o, x.r, receipt, a.ID, flow)
	return exchange.Posting{Entries: []exchange.Entry{paidBack(x.r)}}, err
}

func (x *refundPayout) again(context.Context, unitTx) error { return nil }

// refuse parks the refund for an officer.
func (x *refundPayout) refuse(ctx context.Context, t unitTx, code string) error {
	var err error
	x.r, err = t.reviewRefund(ctx, x.o, x.r, "refused: "+code)
	return err
}

const claimRefund = `UPDATE refunds SET claimed = $2 WHERE id = $1 AND status <> 'completed' AND claimed <> $2`

func (x *refundPayout) doubt(ctx context.Context, t unitTx, claimed bool) error {
	_, err := t.Exec(ctx, claimRefund, x.r.ID, claimed)
	return err
}

// paidBack books a paid refund.
func paidBack(r exchange.Refund) exchange.Entry {
	return exchange.Entry{
		Key: "refund:" + r.ID.String() + ":completed", Kind: "refund.completed", ObjectType: "refund", ObjectID: r.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccRefundsDue, r.Amount.Asset()), r.Amount),
			exchange.Credit(exchange.House(exchange.AccMomoPayout, r.Amount.Asset()), r.Amount),
		},
	}
}

// finishRefund completes a refund and the exception that requested it.
func (t unitTx) finishRefund(ctx context.Context, o exchange.Order, r exchange.Refund, receipt string, paidBy uuid.UUID, by exchange.Principal) (exchange.Refund, error) {
	done, err := t.moveRefund(ctx, o, r, exchange.RefundCompleted, "", receipt, paidBy, by)
	if err != nil || done.ExceptionID == uuid.Nil {
		return done, err
	}
	x, err := t.lockedException(ctx, done.ExceptionID)
	if err != nil {
		return done, err
	}
	_, err = t.moveException(ctx, x, exchange.ExcRefunded, x.Note, by)
	return done, err
}

// ResolveRefund ends a parked refund that an officer paid by other means out of the payout float, with the provider's
// receipt; or one that is pending, because its payee's daily limit kept every payout from being begun. A repeated call with
// the same receipt changes nothing.
func (s *Store) ResolveRefund(ctx context.Context, refundID uuid.UUID, reference string, by exchange.Principal) (exchange.Refund, error) {
	if err := require(reference != "" && len(reference) <= 40, "/reference", "required", "must be the receipt of the payment, at most 40 characters"); err != nil {
		return exchange.Refund{}, err
	}
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.Refund, exchange.Posting, error) {
		o, refund, err := t.lockedRefund(ctx, refundID)
		if err != nil || (refund.Status == exchange.RefundCompleted && refund.Receipt == reference) {
			return refund, exchange.Posting{}, err
		}
		if refund.Status == exchange.RefundPending && refund.Rail == exchange.RefundByMomo { // nothing was ever sent
			if refund, err = t.moveRefund(ctx, o, refund, exchange.RefundNeedsReview, "payee_limit", "", uuid.Nil, flow); err != nil {
				return refund, exchange.Posting{}, err
			}
		}
		if refund.Status != exchange.RefundNeedsReview {
			return refund, exchange.Posting{}, exchange.Errorf(exchange.CodeStateConflict, "A refund that is %s can't be resolved with a receipt.", refund.Status)
		}
		done, err := t.finishRefund(ctx, o, refund, reference, uuid.Nil, by)
		return done, exchange.Posting{Entries: []exchange.Entry{paidBack(done)}}, err
	})
}
