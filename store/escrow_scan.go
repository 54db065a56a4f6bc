package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// What the chain watch has to know about the escrow pool.

// awaited reports whether a flow waits for the block's deposits into a wallet. A deposit older than the lease of an
// escrow address is not for its present order, even if it is read only now: it paid an earlier one.
func (sc *scan) awaited(wallet uuid.UUID) bool {
	since, lent := sc.leased[wallet]
	old := lent && !sc.block.Time.IsZero() && sc.block.Time.Before(since.Add(-exchange.EscrowClockSkew))
	return len(sc.waits[wallet]) > 0 && !old
}

const lastLease = `
SELECT o.id, o.customer_id FROM escrow_leases l JOIN orders o ON o.id = l.order_id
WHERE l.wallet_id = $1 AND ($2::timestamptz IS NULL OR l.leased_at <= $2) ORDER BY l.leased_at DESC LIMIT 1`

// lateFor finds the last order that had an escrow address before a deposit that no flow waits for: most probably that
// order's customer paid. The zero order when there is none, or when the money left a wallet of ours. A deposit on the
// wrong network is looked up by the address that was lent.
func (sc *scan) lateFor(ctx context.Context, d exchange.ChainDeposit) (exchange.Order, error) {
	end := sc.byID[d.WalletID]
	if (end.Purpose != exchange.HouseEscrow && end.Purpose != exchange.HouseCounterpart) || d.FromWalletID != uuid.Nil {
		return exchange.Order{}, nil
	}
	lent := d.WalletID
	if end.CounterpartOf.Valid {
		lent = end.CounterpartOf.UUID
	}
	var by any
	if !d.BlockTime.IsZero() {
		by = d.BlockTime.Add(exchange.EscrowClockSkew)
	}
	var found []struct {
		ID         uuid.UUID
		CustomerID uuid.UUID
	}
	if err := sc.t.All(ctx, &found, lastLease, lent, by); err != nil || len(found) == 0 {
		return exchange.Order{}, err
	}
	return exchange.Order{ID: found[0].ID, CustomerID: found[0].CustomerID}, nil
}
