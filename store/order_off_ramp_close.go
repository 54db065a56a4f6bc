package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const networkOfOrder = `SELECT network FROM orders WHERE id = $1`

// A deposit of exactly a sale's amount is the sale's, once it is final. Another amount may be anybody's: it does not stop the
// seller from cancelling, but decides the sale when that expires ($3). Amounts too small to wake the flow are ignored;
// they would block the sale forever.
const depositUnderWay = `
SELECT EXISTS (SELECT FROM chain_deposits d JOIN escrow_leases l ON l.wallet_id = d.wallet_id AND l.ended_at IS NULL
    JOIN orders o ON o.id = l.order_id
    WHERE l.order_id = $1 AND d.asset = $2 AND ($3 OR d.amount = o.crypto_amount) AND EXISTS (SELECT FROM deposit_wakeups u WHERE u.deposit_id = d.id) AND (d.status = 'seen'
        OR d.status = 'final' AND d.kind = 'awaited' AND NOT EXISTS (SELECT FROM escrow_claims c WHERE c.deposit_id = d.id)))`

const fundingUnderWay = `
SELECT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'funding' AND p.object_id = $1 AND p.status <> 'cancelled')`

// CloseOffRamp cancels an unpaid sale, as an intent or a command asks, or by the flow's own rule: its shillings return to the offer, its quote stays used, and its address rests.
// A cancelled sale is returned as it is. CodeStateConflict in any other state, and while crypto is on its way to the
// address, which is processed first. Crypto that comes later is late money.
func (s *Store) CloseOffRamp(ctx context.Context, id uuid.UUID, detail string, a exchange.Asked) (exchange.Order, error) {
	var n exchange.Network
	if err := s.db.Get(ctx, &n, networkOfOrder, id); err != nil {
		return exchange.Order{}, translate(err, "order")
	}
	return change(ctx, s, "order", depositsLock(n), func(ctx context.Context, t unitTx) (exchange.Order, exchange.Posting, error) {
		var none exchange.Posting
		// No block is recorded between reading the deposits and ending the wait.
		if err := t.lockDeposits(ctx, n); err != nil {
			return exchange.Order{}, none, err
		}
		before, err := t.lockedOrder(ctx, id)
		if err != nil {
			return before, none, err
		}
		by, done, err := t.act(ctx, a, id, exchange.IntendSaleCancel)
		if err != nil || done || before.Status == exchange.OrderCancelled {
			return before, none, err
		}
		if !before.OffRamp() || before.Status != exchange.OrderPending {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "An order that is %s can't be cancelled.", before.Status)
		}
		var underWay, funded bool
		if err := t.Get(ctx, &underWay, depositUnderWay, id, before.Asset, detail == exchange.DetailExpired); err != nil {
			return before, none, err
		}
		if err := t.Get(ctx, &funded, fundingUnderWay, id); err != nil {
			return before, none, err
		}
		if underWay || funded {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "Crypto is on its way to the order; it can't be cancelled now.")
		}
		o := before
		o.Status, o.StatusDetail = exchange.OrderCancelled, detail
		if o, err = t.saveOrder(ctx, "order.cancelled", by, before, o); err != nil {
			return before, none, err
		}
		p, err := t.returnReservation(ctx, o)
		if err != nil {
			return before, none, err
		}
		return o, p, t.rest(ctx, id)
	})
}

// repriceUse is the object type in limit_uses for the additional value of a repriced sale, because rows of limit_uses
// never change.
const repriceUse = "order_reprice"

// repriced reprices a sale for the crypto that came, at the agreed rate, and returns the posting that reserves its new
// shillings. It returns false where that is not allowed: outside the offer's bounds or its remainder, beyond what the
// provider pays out or the customer may sell, or above the quote's amount. The order is locked, and the caller stores
// it with the new price as it moves from confirming to processing.
func (t unitTx) repriced(ctx context.Context, o exchange.Order, crypto money.Amount) (exchange.Order, exchange.Posting, bool, error) {
	var none exchange.Posting
	if crypto.Equal(o.Price.Crypto) {
		return o, none, true, nil
	}
	before := o
	fees, err := t.frozenFees(ctx, o)
	if err != nil {
		return before, none, false, err
	}
	o.Price = exchange.SellByCrypto(crypto, o.Rate)
	if o.Price = o.Charged(fees); !o.Price.Fiat.Positive() {
		return before, none, false, nil
	}
	if err := t.payable(ctx, o, "/crypto_amount"); err != nil {
		return before, none, false, refusedOnly(err)
	}
	if err := t.promisable(ctx, o, "/crypto_amount"); err != nil {
		return before, none, false, refusedOnly(err)
	}
	p, fits, err := t.reserveAnew(ctx, before, &o)
	if err != nil || !fits {
		return before, none, false, err
	}
	return o, p, true, nil
}

// refusedOnly drops a refusal because of a limit or of what a request says, and returns any other error.
func refusedOnly(err error) error {
	switch exchange.CodeOf(err) {
	case exchange.CodeInvalid, exchange.CodeLimitReached:
		return nil
	default:
		return err
	}
}

// reserveAnew makes the posting that returns a sale's reservation and places one of the new price: out of its offer,
// or without a live offer out of the released amount, which never suffices for more. When it returns false it has
// changed nothing.
func (t unitTx) reserveAnew(ctx context.Context, before exchange.Order, o *exchange.Order) (exchange.Posting, bool, error) {
	var err error
	if o.HoldID, err = uuid.NewV7(); err != nil {
		return exchange.Posting{}, false, err
	}
	anew := exchange.HoldOp{Verb: exchange.HoldPlace, Hold: orderHold(*o, "order:"+o.ID.String()+":r", vendorShillings(*o), uuid.Nil, o.Price.Vendor)}
	more := o.Price.Vendor.Cmp(before.Price.Vendor) > 0
	if o.OfferID == uuid.Nil {
		return repost(before, anew), !more, nil
	}
	// A deleted offer counts as closed; its bounds still apply.
	offer, err := t.offerFor(ctx, o.OfferID)
	if err != nil || inBounds(o.Price.Crypto, offer, "") != nil {
		return exchange.Posting{}, false, err
	}
	if offer.Status == exchange.OfferClosed {
		return repost(before, anew), !more, nil
	}
	left := offer.Reserved.Add(before.Price.Vendor).Sub(o.Price.Vendor)
	if left.Sign() < 0 {
		return exchange.Posting{}, false, nil
	}
	if more {
		if open, err := t.buysMore(ctx, offer); err != nil || !open {
			return exchange.Posting{}, false, err
		}
		if err := t.countMore(ctx, before, *o); err != nil {
			return exchange.Posting{}, false, refusedOnly(err)
		}
	}
	anew.Verb, anew.Hold.ParentID = exchange.HoldSplit, offer.HoldID
	_, err = t.settleOffer(ctx, offer, offer.After(left), flow)
	return repost(before, anew), true, err
}

const isActive = `SELECT is_active FROM users WHERE id = $1`

// buysMore reports whether an offer buys more than it had agreed to. A paused or suspended one, one of an inactive vendor, or
// one that the market has left does not: otherwise a customer with a small open order could take all of it at an outdated
// price. The database refuses more at such a price, too.
func (t unitTx) buysMore(ctx context.Context, offer exchange.Offer) (bool, error) {
	if offer.Status != exchange.OfferActive && offer.Status != exchange.OfferExhausted {
		return false, nil
	}
	if err := t.nearMarket(ctx, offer); err != nil {
		return false, refusedOnly(err)
	}
	var active bool
	err := t.Get(ctx, &active, isActive, offer.VendorID)
	return active, err
}

// repost replaces an order's reservation.
func repost(before exchange.Order, anew exchange.HoldOp) exchange.Posting {
	return exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldReturn, Hold: exchange.Hold{ID: before.HoldID}}, anew}}
}

const lockAnyOffer = `SELECT id FROM offers WHERE id = $1 FOR NO KEY UPDATE`

// offerFor locks the offer of an order, even a deleted one.
func (t unitTx) offerFor(ctx context.Context, id uuid.UUID) (exchange.Offer, error) {
	return t.lockedOfferBy(ctx, lockAnyOffer, id)
}

// countMore counts the increase of a sale's value against its customer's limits.
func (t unitTx) countMore(ctx context.Context, before, o exchange.Order) error {
	var u exchange.User
	if err := t.Get(ctx, &u, lockCustomer, o.CustomerID); err != nil {
		return translate(err, "customer")
	}
	was, err := t.limitValue(ctx, before.Price)
	if err != nil {
		return err
	}
	now, err := t.limitValue(ctx, o.Price)
	if err != nil || now.Cmp(was) <= 0 {
		return err
	}
	return t.useLimit(ctx, limitUse{userID: o.CustomerID, role: u.Role, objectType: repriceUse, objectID: o.ID, value: now.Sub(was), whole: now})
}

// SetRefundAddress sets the refund address of a sale's crypto, once. CodeForbidden for a merchant on a customer's sale
// to it. One of the versions of the order is expected if there are any. The same address again changes nothing; another one
// is CodeStateConflict. CodeInvalid for an address from which the crypto could not be recovered.
func (s *Store) SetRefundAddress(ctx context.Context, v View, id uuid.UUID, address string, ifVersions []int64, by exchange.Principal) (exchange.Order, error) {
	seen, err := s.Order(ctx, v, id)
	if err != nil {
		return seen, err
	}
	return change(ctx, s, "order", id, func(ctx context.Context, t unitTx) (exchange.Order, exchange.Posting, error) {
		var none exchange.Posting
		before, err := t.lockedOrder(ctx, id)
		if err != nil {
			return before, none, err
		}
		if err := expect(ifVersions, before.Version); err != nil {
			return before, none, err
		}
		if !before.OffRamp() {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "Only sales of crypto have a refund address.")
		}
		if by.Role.Merchant() && before.CustomerID != by.VendorID {
			return before, none, exchange.Errorf(exchange.CodeForbidden, "Only the customer can set the refund address of its sale.")
		}
		if before.RefundAddress == address {
			return before, none, nil
		}
		if before.RefundAddress != "" {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "The order already has a refund address.")
		}
		if err := t.checkReturn(ctx, before, address); err != nil {
			return before, none, err
		}
		o := before
		o.RefundAddress = address
		o, err = t.saveOrder(ctx, "order.refund_address_set", by, before, o)
		return o, none, err
	})
}
