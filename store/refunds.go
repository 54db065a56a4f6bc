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

// RefundFilter narrows a list of refunds.
type RefundFilter struct {
	ID          uuid.UUID
	Status      exchange.RefundStatus
	Asset       money.Asset
	OrderID     uuid.UUID
	ExceptionID uuid.UUID
	// CreatedFrom is in and CreatedTo is out; zero is open.
	CreatedFrom, CreatedTo time.Time
	View                   *View // whose orders the refunds are of; nil is everybody's
}

const refundColumns = `id, rail, order_id, attempt_id, exception_id, asset, amount, coalesce(phone, '') AS phone, reason, status, detail, receipt, paid_by,
	payee_confirmed, deposit_id, wallet_id, coalesce(network, '') AS network, address, hold_id, value, digest, requested_by, addressed_by,
	created_at, updated_at, completed_at, version`

// refundRow is a row of refunds.
type refundRow struct {
	ID          uuid.UUID
	Rail        exchange.RefundRail
	OrderID     uuid.NullUUID `db:"order_id"`
	AttemptID   uuid.NullUUID `db:"attempt_id"`
	ExceptionID uuid.NullUUID `db:"exception_id"`
	Asset       money.Asset
	Amount      decimal.Decimal
	Phone       exchange.Phone
	Reason      string
	Status      exchange.RefundStatus
	Detail      string
	Receipt     string
	PaidBy      uuid.NullUUID `db:"paid_by"`
	Confirmed   bool          `db:"payee_confirmed"`
	DepositID   uuid.NullUUID `db:"deposit_id"`
	WalletID    uuid.NullUUID `db:"wallet_id"`
	Network     exchange.Network
	Address     string
	HoldID      uuid.NullUUID `db:"hold_id"`
	Value       decimal.NullDecimal
	Digest      string
	RequestedBy uuid.NullUUID `db:"requested_by"`
	AddressedBy uuid.NullUUID `db:"addressed_by"`
	CreatedAt   time.Time     `db:"created_at"`
	UpdatedAt   time.Time     `db:"updated_at"`
	CompletedAt sql.NullTime  `db:"completed_at"`
	Version     int64
}

func (r refundRow) refund() (exchange.Refund, error) {
	f := exchange.Refund{
		ID: r.ID, Rail: r.Rail, OrderID: r.OrderID.UUID, AttemptID: r.AttemptID.UUID, ExceptionID: r.ExceptionID.UUID, Phone: r.Phone, Reason: r.Reason,
		Status: r.Status, Detail: r.Detail, Receipt: r.Receipt, CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(), CompletedAt: utc(r.CompletedAt),
		Version: r.Version, DepositID: r.DepositID.UUID, WalletID: r.WalletID.UUID, Network: r.Network, Address: r.Address, HoldID: r.HoldID.UUID,
		Digest: r.Digest, RequestedBy: r.RequestedBy.UUID, AddressedBy: r.AddressedBy.UUID,
	}
	var err error
	if f.Amount, err = amountOf(r.Asset, r.Amount); err != nil {
		return f, err
	}
	if r.Value.Valid {
		if f.Value, err = amountOf(money.KES, r.Value.Decimal); err != nil {
			return f, err
		}
	}
	return f, nil
}

// refundFact leaves the reason out: parties of the order read events, and it may say that screening refused the sender.
func refundFact(r exchange.Refund, detail string) map[string]any {
	f := map[string]any{
		"id": r.ID, "rail": r.Rail, "order_id": nullID(r.OrderID), "exception_id": nullID(r.ExceptionID), "amount": r.Amount.String(),
		"currency": r.Amount.Asset(), "status": r.Status, "detail": detail, "receipt": r.Receipt, "version": r.Version,
	}
	if r.Rail == exchange.RefundOnChain {
		f["network"], f["address"] = r.Network, r.Address
	} else {
		f["phone_number"] = r.Phone.String()
	}
	return f
}

const insertRefund = `
INSERT INTO refunds (id, order_id, attempt_id, collection, exception_id, asset, amount, phone, reason, status, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'pending', $10, $10) RETURNING ` + refundColumns

// openRefund promises money of a collection back. The database refuses one that exceeds what is left of it.
func (t unitTx) openRefund(ctx context.Context, o exchange.Order, f exchange.Refund, collection string, by exchange.Principal) (exchange.Refund, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return f, err
	}
	var r refundRow
	err = t.get(ctx, &r, insertRefund, id, f.OrderID, f.AttemptID, collection, nullID(f.ExceptionID), f.Amount.Asset(), f.Amount.Decimal(),
		f.Phone.Digits(), clip(f.Reason, 200), t.s.now())
	if err != nil {
		return f, err
	}
	if f, err = r.refund(); err != nil {
		return f, err
	}
	return f, t.record(ctx, fact{by: by, object: "refund", id: id, name: "refund.pending", owner: o.CustomerID, vendor: o.VendorID, after: refundFact(f, "")})
}

const readRefund = `SELECT ` + refundColumns + ` FROM refunds WHERE id = $1`

const readRefundOfException = `SELECT ` + refundColumns + ` FROM refunds WHERE exception_id = $1`

const readRefundOfOrder = `SELECT ` + refundColumns + ` FROM refunds WHERE order_id = $1 AND exception_id IS NULL`

const lockRefund = `SELECT ` + refundColumns + ` FROM refunds WHERE id = $1 FOR NO KEY UPDATE`

const orderOfRefund = `SELECT order_id FROM refunds WHERE id = $1`

// Refund reads a refund.
func (s *Store) Refund(ctx context.Context, id uuid.UUID) (exchange.Refund, error) {
	var r refundRow
	if err := s.read(ctx, &r, readRefund, id); err != nil {
		return exchange.Refund{}, translate(err, "refund")
	}
	return r.refund()
}

// ListRefunds pages through the refunds, the newest first, with their number.
func (s *Store) ListRefunds(ctx context.Context, f RefundFilter, p Page) ([]exchange.Refund, int, error) {
	var w where
	w.orders(f.View)
	w.id("id", f.ID)
	w.eq("status", string(f.Status))
	w.eq("asset", string(f.Asset))
	w.id("order_id", f.OrderID)
	w.id("exception_id", f.ExceptionID)
	w.between("created_at", f.CreatedFrom, f.CreatedTo)
	var rows []refundRow
	total, err := s.page(ctx, &rows, list{columns: refundColumns, from: "refunds", where: w, order: "created_at DESC, id DESC"}, p)
	if err != nil {
		return nil, 0, translate(err, "refund")
	}
	all, err := convert(rows, refundRow.refund)
	return all, total, err
}

func (t unitTx) refundOf(ctx context.Context, exceptionID uuid.UUID) (exchange.Refund, bool, error) {
	return t.maybeRefund(ctx, readRefundOfException, exceptionID)
}

func (t unitTx) maybeRefund(ctx context.Context, query string, key uuid.UUID) (exchange.Refund, bool, error) {
	var rows []refundRow
	if err := t.all(ctx, &rows, query, key); err != nil || len(rows) == 0 {
		return exchange.Refund{}, false, err
	}
	r, err := rows[0].refund()
	return r, true, err
}

// lockedRefund reads a refund by mobile money and its order for change. One in crypto is CodeStateConflict: no
// payout and no receipt of the operator ends it.
func (t unitTx) lockedRefund(ctx context.Context, id uuid.UUID) (exchange.Order, exchange.Refund, uuid.UUID, error) {
	o, r, paidBy, err := t.lockedAnyRefund(ctx, id)
	if err == nil && r.Rail != exchange.RefundByMomo {
		err = exchange.Errorf(exchange.CodeStateConflict, "The refund goes back on a chain.")
	}
	return o, r, paidBy, err
}

// lockedAnyRefund reads a refund and its order for change, the order first as everywhere. The order is the zero one
// where the money belongs to none.
func (t unitTx) lockedAnyRefund(ctx context.Context, id uuid.UUID) (exchange.Order, exchange.Refund, uuid.UUID, error) {
	var orderID uuid.NullUUID
	if err := t.get(ctx, &orderID, orderOfRefund, id); err != nil {
		return exchange.Order{}, exchange.Refund{}, uuid.Nil, translate(err, "refund")
	}
	var o exchange.Order
	if orderID.Valid {
		var err error
		if o, err = t.lockedOrder(ctx, orderID.UUID); err != nil {
			return o, exchange.Refund{}, uuid.Nil, err
		}
	}
	var r refundRow
	if err := t.get(ctx, &r, lockRefund, id); err != nil {
		return o, exchange.Refund{}, uuid.Nil, translate(err, "refund")
	}
	f, err := r.refund()
	return o, f, r.PaidBy.UUID, err
}

const saveRefund = `
UPDATE refunds SET status = $2, detail = $3, receipt = $4, paid_by = $5, completed_at = $6, updated_at = $7, version = version + 1
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
	var rows []refundRow
	err := t.all(ctx, &rows, saveRefund, before.ID, to, clip(detail, 200), receipt, nullID(paidBy), completed, t.s.now(), before.Version,
		pq.Array(exchange.RefundMachine.Sources(to)))
	if err == nil && len(rows) == 0 {
		err = errChangedMeanwhile
	}
	if err != nil {
		return before, err
	}
	r, err := rows[0].refund()
	if err != nil {
		return r, err
	}
	return r, t.record(ctx, fact{
		by: by, object: "refund", id: r.ID, name: "refund." + string(to), owner: o.CustomerID, vendor: o.VendorID,
		before: refundFact(before, ""), after: refundFact(r, detail),
	})
}

// BeginRefundPayout writes a refund's payout before the operator is asked for it and reserves its money, and what the
// operator will charge for it, in the payout float; CodeInsufficientFunds when the float is short, CodeSuspended while
// the operator refuses our credential. Called again with the same attempt
// it returns what is there. A refund whose payer is doubtful is handed to a person instead (see
// doubtPayer): the attempt has no id then, and nothing is to be sent.
func (s *Store) BeginRefundPayout(ctx context.Context, refundID uuid.UUID, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	a.Direction, a.RefundID = exchange.Payout, refundID
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.PaymentAttempt, exchange.Posting, error) {
		var none exchange.Posting
		o, refund, _, err := t.lockedRefund(ctx, refundID)
		if err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		a.OrderID, a.Amount, a.Phone = refund.OrderID, refund.Amount, refund.Phone
		old, found, err := t.beganBefore(ctx, a)
		if err != nil || found {
			return old, none, err
		}
		if held, err := t.doubtPayer(ctx, o, refund); err != nil || held {
			return exchange.PaymentAttempt{}, none, err
		}
		if _, err := t.moveRefund(ctx, o, refund, exchange.RefundProcessing, "", "", uuid.Nil, flow); err != nil {
			return exchange.PaymentAttempt{}, none, err
		}
		charge, err := t.charge(ctx, refund.Amount)
		if err != nil {
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
		return created, exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
			ID: hold, Key: "refund_payout:" + a.ID.String(), Account: exchange.House(exchange.AccMomoPayout, refund.Amount.Asset()),
			Amount: refund.Amount.Add(charge), ObjectType: "payment_attempt", ObjectID: a.ID,
		}}}}, t.recordAttempt(ctx, "created", o, created)
	})
}

// paidBack books a refund that was paid.
func paidBack(r exchange.Refund) exchange.Entry {
	return exchange.Entry{
		Key: "refund:" + r.ID.String() + ":completed", Kind: "refund.completed", ObjectType: "refund", ObjectID: r.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccRefundsDue, r.Amount.Asset()), r.Amount),
			exchange.Credit(exchange.House(exchange.AccMomoPayout, r.Amount.Asset()), r.Amount),
		},
	}
}

const holdOfAttempt = `SELECT h.id, h.status FROM payment_attempts a JOIN holds h ON h.id = a.hold_id WHERE a.id = $1`

// captureFloat uses up what a payout reserved. Once released, for a payout that seemed to
// have failed, there is nothing to capture and the float is debited as it stands.
func (t unitTx) captureFloat(ctx context.Context, attemptID uuid.UUID) ([]exchange.HoldOp, error) {
	var h struct {
		ID     uuid.UUID
		Status exchange.HoldStatus
	}
	if err := t.get(ctx, &h, holdOfAttempt, attemptID); err != nil {
		return nil, translate(err, "hold")
	}
	if h.Status != exchange.HoldHeld {
		return nil, nil
	}
	return []exchange.HoldOp{{Verb: exchange.HoldCapture, Hold: exchange.Hold{ID: h.ID}}}, nil
}

// CompleteRefund ends a refund whose payout is proven. Called again it returns the refund as it is. A
// payout that proves true after another payment completed the refund is booked as paid twice, under an
// exception for a person.
func (s *Store) CompleteRefund(ctx context.Context, refundID, attemptID uuid.UUID, obs exchange.Observation) (exchange.Refund, error) {
	if obs.Receipt == "" {
		return exchange.Refund{}, exchange.Errorf(exchange.CodeInvalid, "A payout is proven with its receipt.")
	}
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.Refund, exchange.Posting, error) {
		var none exchange.Posting
		o, refund, paidBy, err := t.lockedRefund(ctx, refundID)
		if err != nil {
			return refund, none, err
		}
		if refund.Status == exchange.RefundCompleted && paidBy == attemptID && refund.Receipt == obs.Receipt {
			return refund, none, nil
		}
		_, before, err := t.lockedAttempt(ctx, attemptID)
		if err != nil {
			return refund, none, err
		}
		if before.RefundID != refundID {
			return refund, none, exchange.Errorf(exchange.CodeConflict, "The payout belongs to another refund.")
		}
		if obs.Amount.Positive() && !obs.Amount.Equal(refund.Amount) {
			return refund, none, exchange.Errorf(exchange.CodeConflict, "The payout moved another amount than the refund's.")
		}
		if before.Status == exchange.AttemptSucceeded && before.Receipt == obs.Receipt {
			return refund, none, nil // booked before as a second payment
		}
		if before.Status != exchange.AttemptSucceeded {
			a := before
			a.Status, a.Soft, a.ResultCode, a.ResultText = exchange.AttemptSucceeded, false, obs.Code, obs.Text
			a.Receipt, a.Moved, a.SettledAt = obs.Receipt, refund.Amount, t.s.now()
			if _, err := t.saveAttempt(ctx, o, before, a); err != nil {
				return refund, none, err
			}
		}
		charge, err := t.charged(ctx, before, obs)
		if err != nil {
			return refund, none, err
		}
		if refund.Status == exchange.RefundCompleted {
			p, err := t.paidTwice(ctx, o, refund, attemptID, obs.Receipt)
			if len(p.Entries) > 0 {
				p.Entries = append(p.Entries, charge...)
			}
			return refund, p, err
		}
		holds, err := t.captureFloat(ctx, attemptID)
		if err != nil {
			return refund, none, err
		}
		done, err := t.finishRefund(ctx, o, refund, obs.Receipt, attemptID, flow)
		return done, exchange.Posting{Entries: append(charge, paidBack(done)), Holds: holds}, err
	})
}

// finishRefund completes a refund and the exception that asked for it.
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

const openPayouts = `SELECT count(*) FROM payment_attempts WHERE refund_id = $1 AND status IN ('created', 'unknown', 'accepted')`

const heldOfFailed = `
SELECT h.id FROM payment_attempts a JOIN holds h ON h.id = a.hold_id
WHERE a.refund_id = $1 AND a.status IN ('refused', 'failed') AND h.status = 'held' ORDER BY h.id`

// freeFailed releases what payouts reserved that did not happen.
func (t unitTx) freeFailed(ctx context.Context, refundID uuid.UUID) ([]exchange.HoldOp, error) {
	var ids []uuid.UUID
	if err := t.all(ctx, &ids, heldOfFailed, refundID); err != nil {
		return nil, err
	}
	var ops []exchange.HoldOp
	for _, id := range ids {
		ops = append(ops, exchange.HoldOp{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: id}})
	}
	return ops, nil
}

// FailRefund hands a refund whose payout was definitely refused to a person and frees the float. While
// a payout of it may still move money it is CodeStateConflict. A refund that waits for a person is
// returned as it is. One that another payout completed stays completed, and the float of those that
// failed is freed.
func (s *Store) FailRefund(ctx context.Context, refundID uuid.UUID, detail string) (exchange.Refund, error) {
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.Refund, exchange.Posting, error) {
		var none exchange.Posting
		o, refund, _, err := t.lockedRefund(ctx, refundID)
		if err != nil || refund.Status == exchange.RefundNeedsReview {
			return refund, none, err
		}
		var open int
		if err := t.get(ctx, &open, openPayouts, refundID); err != nil {
			return refund, none, err
		}
		if open > 0 {
			return refund, none, exchange.Errorf(exchange.CodeStateConflict, "The payout of the refund may still move money.")
		}
		if refund.Status == exchange.RefundCompleted {
			holds, err := t.freeFailed(ctx, refundID)
			return refund, exchange.Posting{Holds: holds}, err
		}
		if refund, err = t.moveRefund(ctx, o, refund, exchange.RefundFailed, detail, "", uuid.Nil, flow); err != nil {
			return refund, none, err
		}
		if refund, err = t.moveRefund(ctx, o, refund, exchange.RefundNeedsReview, detail, "", uuid.Nil, flow); err != nil {
			return refund, none, err
		}
		holds, err := t.freeFailed(ctx, refundID)
		return refund, exchange.Posting{Holds: holds}, err
	})
}

// ResolveRefund ends a refund that waits for a person, who paid it by other means out of the payout
// float and names the operator's receipt. Called again with the same receipt it changes nothing.
func (s *Store) ResolveRefund(ctx context.Context, refundID uuid.UUID, reference string, by exchange.Principal) (exchange.Refund, error) {
	if err := require(reference != "" && len(reference) <= 40, "/reference", "required", "must be the receipt of the payment, at most 40 characters"); err != nil {
		return exchange.Refund{}, err
	}
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.Refund, exchange.Posting, error) {
		o, refund, _, err := t.lockedRefund(ctx, refundID)
		if err != nil || (refund.Status == exchange.RefundCompleted && refund.Receipt == reference) {
			return refund, exchange.Posting{}, err
		}
		if refund.Status != exchange.RefundNeedsReview {
			return refund, exchange.Posting{}, exchange.Errorf(exchange.CodeStateConflict, "A refund that is %s can't be resolved by an officer.", refund.Status)
		}
		done, err := t.finishRefund(ctx, o, refund, reference, uuid.Nil, by)
		return done, exchange.Posting{Entries: []exchange.Entry{paidBack(done)}}, err
	})
}
