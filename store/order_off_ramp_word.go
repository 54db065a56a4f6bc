package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// The seller's word about crypto of another amount than its sale asks for.

// The greatest final deposit of another amount.
const otherDeposit = `SELECT d.id, d.tx_id, d.amount||' '||d.asset AS amount, fee_of($4, trunc(d.amount * $5, 2), 'KES')||' KES' AS fee FROM chain_deposits d
WHERE d.wallet_id = (SELECT wallet_id FROM escrow_leases WHERE order_id = $1) AND d.asset = $2 AND d.kind = 'awaited' AND d.status = 'final' AND d.amount <> $3
    AND NOT EXISTS (SELECT FROM escrow_claims c WHERE c.deposit_id = d.id) AND EXISTS (SELECT FROM deposit_wakeups u WHERE u.deposit_id = d.id)
ORDER BY d.amount DESC, d.block, d.event_index LIMIT 1`

// withOther returns a sale that waits for its crypto with what came of another amount, if anything did.
func (t unitTx) withOther(ctx context.Context, o exchange.Order) (exchange.Order, error) {
	other, found, err := readFound[exchange.OtherDeposit](ctx, t, otherDeposit, o.ID, o.Asset, o.Price.Crypto.Decimal(), nullID(o.ProfileID), o.Rate)
	if err == nil && found && o.FundWalletID == uuid.Nil {
		o.Other, o.StatusDetail = other, exchange.WaitOtherAmount
	}
	return o, err
}

// showOther shows the seller that another amount came.
func (a *arrivedCrypto) showOther(ctx context.Context) error {
	before := a.out.Order
	if before.Status != exchange.OrderPending {
		return nil
	}
	o, err := a.t.withOther(ctx, before)
	if err == nil && o.Other.ID != before.Other.ID {
		a.out.Order, err = a.t.saveOrder(ctx, "order.detail_changed", flow, before, o)
	}
	return err
}

var errOtherDoesNotFit = exchange.Errorf(exchange.CodeStateConflict,
	"The offer, its rate, the payout or your limits do not allow a sale of this amount. You may have the crypto returned.")

// DecideDeposit carries out an intent of a sale's seller about crypto of another amount: the sale is priced by it at its own
// rate and owes its payout, or the sale ends and all of the crypto goes back. A repeated call returns the current state with
// TakenKnown. CodeForbidden for anybody but the seller; CodeStateConflict when the sale does not wait any more, when what the
// seller saw is not what is here now, when crypto of the amount that was asked for is in a block, and when the sale can't be
// priced by the other amount.
func (s *Store) DecideDeposit(ctx context.Context, order uuid.UUID, asked exchange.Asked) (exchange.DepositTaken, error) {
	word, err := readAsked(ctx, s, asked, exchange.DepositWordOf, exchange.IntendSaleAccept, exchange.IntendSaleReturn)
	if err != nil {
		return exchange.DepositTaken{}, err
	}
	return change(ctx, s, "deposit of the order", order, func(ctx context.Context, t unitTx) (exchange.DepositTaken, exchange.Posting, error) {
		var none exchange.Posting
		o, d, err := t.ownDeposit(ctx, order, word.DepositID)
		if err != nil {
			return exchange.DepositTaken{}, none, err
		}
		i, used, err := t.useIntent(ctx, asked, exchange.IntendSaleAccept, exchange.IntendSaleReturn)
		if err == nil && i.ObjectID != order {
			err = exchange.Errorf(exchange.CodeNotFound, "There is no such intent for this object.")
		}
		if err != nil {
			return exchange.DepositTaken{}, none, err
		}
		a := &arrivedCrypto{t: t, by: i.By, out: exchange.DepositTaken{Order: o}}
		switch {
		case used:
			_, err = a.recall(ctx, d)
			return a.out, none, err
		case !o.OwnedBy(i.By):
			return a.out, none, exchange.Errorf(exchange.CodeForbidden, "Only the seller decides about crypto of another amount.")
		}
		if err := a.mayDecide(ctx, word); err != nil {
			return a.out, none, err
		}
		if i.Kind == exchange.IntendSaleAccept {
			err = a.take(ctx, d)
		} else if err = a.confirm(ctx, d); err == nil {
			err = a.sendBack(ctx, d)
		}
		return a.out, a.post, err
	})
}

// mayDecide refuses a word about something else than what is here.
func (a *arrivedCrypto) mayDecide(ctx context.Context, word exchange.DepositWord) error {
	o := a.out.Order
	if !o.AsksTheSeller() {
		return exchange.Errorf(exchange.CodeStateConflict, "The sale does not wait for your word about its deposit.")
	}
	if o.Other.ID != word.DepositID || o.OtherDigest() != word.Digest {
		return exchange.Errorf(exchange.CodeStateConflict, "What came is not what you decided about. Read the order again.")
	}
	var rows []exchange.ChainDeposit
	if err := a.t.All(ctx, &rows, bestDeposit, o.ID, o.Asset, o.Price.Crypto.Decimal()); err != nil {
		return err
	}
	if len(rows) > 0 && isExpected(o, rows[0]) {
		return exchange.Errorf(exchange.CodeStateConflict, "Crypto of exactly the amount of the order is on its way.")
	}
	return nil
}
