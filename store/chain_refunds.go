package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Refunds in crypto. The order is locked first, where there is one, then the refund, then its payment.

// cryptoRefund are the data of a new refund in crypto.
type cryptoRefund struct {
	order     exchange.Order // zero when the money belongs to no order
	exception uuid.UUID
	deposit   uuid.UUID // the deposit that brought the crypto; zero when a payment of ours did
	wallet    uuid.UUID // where it lies
	network   exchange.Network
	amount    money.Amount
	// hold reserves the crypto. For a zero hold the caller places one in the same transaction; see refundHold.
	hold      uuid.UUID
	reason    string
	requested uuid.UUID // the requesting officer; zero for a flow
	address   string    // given by the officer; empty for the order's address
}

const insertCryptoRefund = `
INSERT INTO refunds (id, rail, order_id, exception_id, asset, amount, reason, status, detail, deposit_id, wallet_id, network, address, hold_id, value,
    digest, requested_by, addressed_by, created_at, updated_at)
VALUES ($1, 'chain', $2, $3, $4, $5, $6, 'pending', $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $17) RETURNING ` + refundColumns

// openCryptoRefund opens a refund of crypto that lies in a wallet of the house. The caller has already stored its
// order as failed, or its exception as refunding. The database refuses a second refund of the same money, and one
// without a reservation.
func (t unitTx) openCryptoRefund(ctx context.Context, c cryptoRefund, by exchange.Principal) (exchange.Refund, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return exchange.Refund{}, err
	}
	f := exchange.Refund{
		ID: id, Rail: exchange.RefundOnChain, OrderID: c.order.ID, ExceptionID: c.exception, Amount: c.amount, Reason: clip(c.reason, 200),
		DepositID: c.deposit, WalletID: c.wallet, Network: c.network, Address: c.address, HoldID: c.hold, RequestedBy: c.requested,
	}
	if c.address != "" {
		f.AddressedBy = c.requested
	} else if f.Address, err = t.saidAddress(ctx, c.order, c.network); err != nil {
		return f, err
	}
	if f.HoldID == uuid.Nil {
		if f.HoldID, err = uuid.NewV7(); err != nil {
			return f, err
		}
	}
	if f.Value, err = t.refundValue(ctx, f.Amount); err != nil {
		return f, err
	}
	if f.Address == "" {
		f.Detail = string(exchange.RefundWaitsAddress)
	}
	err = t.Get(ctx, &f, insertCryptoRefund, id, nullID(f.OrderID), nullID(f.ExceptionID), f.Amount.Asset(), f.Amount.Decimal(), f.Reason, f.Detail,
		nullID(f.DepositID), f.WalletID, f.Network, f.Address, f.HoldID, f.Value.Decimal(), f.Intent(), nullID(f.RequestedBy), nullID(f.AddressedBy), t.s.now())
	if err != nil {
		return f, err
	}
	return f, t.record(ctx, auditEvent{
		by: by, object: "refund", id: id, name: "refund.pending", owner: c.order.CustomerID, vendor: c.order.VendorID, after: refundSnapshot(f, f.Detail),
	})
}

// refundHold places the reservation of a refund that has a hold of its own.
func refundHold(f exchange.Refund) exchange.HoldOp {
	return exchange.HoldOp{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: f.HoldID, Key: "refund:" + f.ID.String(), Account: exchange.Owned(exchange.AccWalletBalance, f.WalletID, f.Amount.Asset()),
		Amount: f.Amount, ObjectType: "refund", ObjectID: f.ID,
	}}
}

const readWalletAddress = `SELECT address FROM wallets WHERE id = $1`

const isHouse = `SELECT is_counterpart($1, $2) OR EXISTS (SELECT FROM wallets WHERE network = $1 AND address = $2 AND owner_id IS NULL)`

// saidAddress is the refund address that was agreed before anything went wrong: our wallet that the crypto came from,
// or the address that the customer gave. It is never derived from the sender of a deposit. A deposit on another
// network than the order's has no agreed address.
func (t unitTx) saidAddress(ctx context.Context, o exchange.Order, n exchange.Network) (string, error) {
	if o.Network != n {
		return "", nil
	}
	if o.FundWalletID != uuid.Nil {
		var address string
		err := t.Get(ctx, &address, readWalletAddress, o.FundWalletID)
		return address, err
	}
	if o.RefundAddress == "" {
		return "", nil
	}
	var house bool
	if err := t.Get(ctx, &house, isHouse, o.Network, o.RefundAddress); err != nil || house {
		return "", err // it has become a wallet of the house since; an officer has to choose
	}
	return o.RefundAddress, nil
}

// refundValue is the value of an amount for the approval rule. An asset without a price, such as a network's own coin,
// counts as above every officer's sole limit.
func (t unitTx) refundValue(ctx context.Context, m money.Amount) (money.Amount, error) {
	if m.Asset().Stablecoin() {
		v, _, err := t.valueOf(ctx, m)
		return v, err
	}
	rule, err := t.approvalRule(ctx, exchange.ApproveRefund)
	return rule.ValueUnknown(), err
}

const payingClaim = `SELECT ` + claimColumns + ` FROM escrow_claims WHERE order_id = $1 AND kind IN ('exact', 'repriced')`

func (t unitTx) claimOf(ctx context.Context, orderID uuid.UUID) (exchange.EscrowClaim, error) {
	return readOne[exchange.EscrowClaim](ctx, t, "deposit of the order", payingClaim, orderID)
}

// OpenChainRefund opens a refund in crypto. An order whose crypto was taken fails in the same transaction, and its
// vendor's shillings are freed unless a payout was begun (see shillingsOfFailed); CodeStateConflict while one may have paid. A completed order is returned
// without a refund. The money of an exception leaves suspense and is reserved in its wallet; CodeStateConflict when
// the exception is settled or an alarm about the transaction is open, CodeUnsupported for money in a customer's or
// merchant's wallet. A repeated call returns the existing refund.
func (s *Store) OpenChainRefund(ctx context.Context, r exchange.ChainRefundRequest, by exchange.Principal) (exchange.Order, exchange.Refund, error) {
	open, id := s.refundSale, r.OrderID
	if r.ExceptionID != uuid.Nil {
		open, id = s.refundDeposit, r.ExceptionID
	}
	out, err := change(ctx, s, "refund", id, func(ctx context.Context, t unitTx) (refunded, exchange.Posting, error) {
		return open(ctx, t, r, by)
	})
	return out.order, out.refund, err
}

// refundSale opens the refund of an order that sells crypto and can't be paid out.
func (s *Store) refundSale(ctx context.Context, t unitTx, r exchange.ChainRefundRequest, by exchange.Principal) (refunded, exchange.Posting, error) {
	var none exchange.Posting
	before, err := t.lockedOrder(ctx, r.OrderID)
	if err != nil {
		return refunded{}, none, err
	}
	if old, found, err := t.maybeRefund(ctx, readRefundOfOrder, before.ID); err != nil || found {
		return refunded{before, old}, none, err
	}
	if before.OffRamp() && before.Status == exchange.OrderCompleted {
		return refunded{order: before}, none, nil // a payout recorded as refused was proven to have paid: the flow continues from there
	}
	if !before.OffRamp() || before.Status != exchange.OrderProcessing {
		return refunded{}, none, exchange.Errorf(exchange.CodeStateConflict, "An order that is %s has no crypto to refund.", before.Status)
	}
	claim, err := t.claimOf(ctx, before.ID)
	if err != nil {
		return refunded{}, none, err
	}
	if err := t.cancelOrderPayout(ctx, before, by); err != nil {
		return refunded{}, none, err
	}
	o := before
	o.Status, o.StatusDetail = exchange.OrderFailed, exchange.DetailRefundOpen
	if o, err = t.saveOrder(ctx, "order.failed", by, before, o); err != nil {
		return refunded{}, none, err
	}
	posting, err := t.shillingsOfFailed(ctx, o)
	if err != nil {
		return refunded{}, none, err
	}
	f, err := t.openCryptoRefund(ctx, cryptoRefund{
		order: o, deposit: claim.DepositID, wallet: claim.WalletID, network: o.Network, amount: claim.Amount, hold: claim.HoldID, reason: r.Reason,
		requested: by.UserID,
	}, by)
	if err == nil {
		f, err = t.stopClaimed(ctx, o, f)
	}
	return refunded{o, f}, posting, err
}

const payoutBegun = `SELECT EXISTS (SELECT FROM payment_attempts WHERE object_type = 'order' AND object_id = $1 AND direction = 'payout')`

// shillingsOfFailed returns the reservation of a sale that fails, if no payout of it was begun. Otherwise the shillings stay
// reserved: the operator reports successes after refusals, and such a payout stands instead of the refund, at the vendor's
// cost. They are freed when the refund is final. Its signature is not enough: a transaction that no block takes expires, and
// the payout may stand again.
func (t unitTx) shillingsOfFailed(ctx context.Context, o exchange.Order) (exchange.Posting, error) {
	var begun bool
	if err := t.Get(ctx, &begun, payoutBegun, o.ID); err != nil || begun {
		return exchange.Posting{}, err
	}
	return t.returnReservation(ctx, o)
}

const isClaimed = `SELECT EXISTS (SELECT FROM order_payouts WHERE id = $1 AND claimed)`

// stopClaimed parks the new refund of an order for an officer when there is evidence that the order was paid out.
func (t unitTx) stopClaimed(ctx context.Context, o exchange.Order, f exchange.Refund) (exchange.Refund, error) {
	var claimed bool
	if err := t.Get(ctx, &claimed, isClaimed, o.ID); err != nil || !claimed {
		return f, err
	}
	return t.moveRefund(ctx, o, f, exchange.RefundNeedsReview, string(exchange.RefundWaitsClaim), "", uuid.Nil, flow)
}

const depositOfException = `SELECT ` + depositColumns + ` FROM chain_deposits WHERE id = (SELECT deposit_of(receipt) FROM payment_exceptions WHERE id = $1)`

const alarmOfDeposit = `
SELECT EXISTS (SELECT FROM deposit_quarantine q JOIN chain_deposits d ON d.network = q.network AND d.tx_id = q.tx_id
    WHERE d.id = $1 AND q.settled_at IS NULL)`

const isHotHouse = `SELECT EXISTS (SELECT FROM wallets WHERE id = $1 AND owner_id IS NULL AND type = 'hot')`

// strayDeposit finds the deposit of an exception, if it may be refunded or moved: it lies in a hot wallet of the
// house, and no alarm about its transaction is open.
func (t unitTx) strayDeposit(ctx context.Context, x exchange.PaymentException) (exchange.ChainDeposit, error) {
	var rows []exchange.ChainDeposit
	if err := t.All(ctx, &rows, depositOfException, x.ID); err != nil {
		return exchange.ChainDeposit{}, err
	}
	if len(rows) == 0 || x.Kind == exchange.ExcReconciliation || x.Kind == exchange.ExcPaidTwice {
		return exchange.ChainDeposit{}, exchange.Errorf(exchange.CodeStateConflict, "The exception has no crypto deposit that could be refunded.")
	}
	d := rows[0]
	var alarm, ours bool
	if err := t.Get(ctx, &alarm, alarmOfDeposit, d.ID); err != nil {
		return d, err
	}
	if alarm {
		return d, exchange.Errorf(exchange.CodeStateConflict, "An alarm about the deposit's transaction is open. Settle the alarm before the refund.")
	}
	if err := t.Get(ctx, &ours, isHotHouse, d.WalletID); err != nil || ours {
		return d, err
	}
	return d, exchange.Errorf(exchange.CodeUnsupported, "The money lies in a customer's, merchant's or cold wallet and can't be refunded. Credit it to the wallet's owner.")
}

const readRefundRequest = `
SELECT r.address, r.reason, r.requested_by, u.role FROM refund_requests r JOIN users u ON u.id = r.requested_by
WHERE r.id = $1 AND (r.order_id = $2 OR r.exception_id = $3)`

type requestRow struct {
	Address     string
	Reason      string
	RequestedBy uuid.UUID
	Role        exchange.Role
}

// principal is who made the request with the id.
func (r requestRow) principal(id uuid.UUID) exchange.Principal {
	return exchange.Principal{UserID: r.RequestedBy, Role: r.Role, RequestID: "request:" + id.String()}
}

// refundDeposit opens the refund of a deposit that fits no order.
func (s *Store) refundDeposit(ctx context.Context, t unitTx, r exchange.ChainRefundRequest, by exchange.Principal) (refunded, exchange.Posting, error) {
	var none exchange.Posting
	var orderID uuid.NullUUID
	if err := t.Get(ctx, &orderID, orderOfException, r.ExceptionID); err != nil {
		return refunded{}, none, translate(err, "payment exception")
	}
	var o exchange.Order
	if orderID.Valid {
		var err error
		if o, err = t.lockedOrder(ctx, orderID.UUID); err != nil {
			return refunded{}, none, err
		}
	}
	x, err := t.lockedException(ctx, r.ExceptionID)
	if err != nil {
		return refunded{}, none, err
	}
	if old, found, err := t.refundOf(ctx, x.ID); err != nil || found {
		return refunded{o, old}, none, err
	}
	d, err := t.strayDeposit(ctx, x)
	if err != nil {
		return refunded{}, none, err
	}
	var asked requestRow
	if r.RequestID != uuid.Nil {
		if err := t.Get(ctx, &asked, readRefundRequest, r.RequestID, nil, x.ID); err != nil {
			return refunded{}, none, translate(err, "request for a refund")
		}
		by = asked.principal(r.RequestID)
	}
	if asked.Address != "" && o.RefundAddress != "" && o.Network == d.Network {
		return refunded{}, none, exchange.Invalid(exchange.FieldError{Pointer: "/address", Code: "conflict", Message: "must be left out: the crypto goes back to the order's refund address"})
	}
	if x, err = t.moveException(ctx, x, exchange.ExcRefunding, clip(asked.Reason, exchange.MaxExceptionReason), by); err != nil {
		return refunded{}, none, err
	}
	reason := asked.Reason
	if reason == "" {
		reason = string(x.Kind)
	}
	f, err := t.openCryptoRefund(ctx, cryptoRefund{
		order: o, exception: x.ID, deposit: d.ID, wallet: d.WalletID, network: d.Network, amount: x.Amount, reason: reason,
		requested: asked.RequestedBy, address: asked.Address,
	}, by)
	if err != nil {
		return refunded{}, none, err
	}
	return refunded{o, f}, exchange.Posting{Holds: []exchange.HoldOp{refundHold(f)}, Entries: []exchange.Entry{outOfException(x, d, "refund")}}, nil
}

const orderOfException = `SELECT order_id FROM payment_exceptions WHERE id = $1`

// outOfException books the money of an exception as the house's own in its wallet. The same posting reserves all of
// it, so that it leaves by one payment.
func outOfException(x exchange.PaymentException, d exchange.ChainDeposit, verb string) exchange.Entry {
	return exchange.Entry{
		Key: "exception:" + x.ID.String() + ":" + verb, Kind: "exception." + verb, ObjectType: "payment_exception", ObjectID: x.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccSuspense, x.Amount.Asset()), x.Amount),
			exchange.Credit(exchange.Owned(exchange.AccWalletBalance, d.WalletID, x.Amount.Asset()), x.Amount),
		},
	}
}

const insertRefundRequest = `
INSERT INTO refund_requests (id, order_id, exception_id, address, reason, requested_by, requested_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO NOTHING`

const sameRefundRequest = `
SELECT EXISTS (SELECT FROM refund_requests WHERE id = $1 AND order_id IS NOT DISTINCT FROM $2 AND exception_id IS NOT DISTINCT FROM $3
    AND address = $4 AND reason = $5 AND requested_by = $6)`

// SaveRefundRequest stores an officer's request, so that the flow gets only an id. An identical repeated request
// changes nothing; another request with the id is CodeConflict.
func (s *Store) SaveRefundRequest(ctx context.Context, r exchange.RefundRequest, by exchange.Principal) error {
	if err := require(r.Reason != "" && len([]rune(r.Reason)) <= exchange.MaxRefundReason, "/note", "required", "must say why, in at most 500 characters"); err != nil {
		return err
	}
	return s.inTx(ctx, "request for a refund", func(t unitTx) error {
		order, exception := nullID(r.OrderID), nullID(r.ExceptionID)
		n, err := t.Exec(ctx, insertRefundRequest, r.ID, order, exception, r.Address, r.Reason, by.UserID, t.s.now())
		if err != nil {
			return err
		}
		if n == 0 {
			var same bool
			if err := t.Get(ctx, &same, sameRefundRequest, r.ID, order, exception, r.Address, r.Reason, by.UserID); err != nil || same {
				return err
			}
			return exchange.Errorf(exchange.CodeConflict, "The id belongs to another request.")
		}
		return t.audit(ctx, by, "refund.requested", "refund_request", r.ID, nil,
			map[string]any{"order_id": order, "exception_id": exception, "address": r.Address, "reason": r.Reason})
	})
}
