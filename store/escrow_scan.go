package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// What the watch over the chains has to know of the escrow pool.

// awaited tells whether a flow waits for what the block brings into a wallet. What is older than the lease of an
// escrow address is not for the order that borrows it now, even if it is read only now: it was paid to somebody before.
func (sc *scan) awaited(wallet uuid.UUID) bool {
	since, lent := sc.leased[wallet]
	old := lent && !sc.block.Time.IsZero() && sc.block.Time.Before(since.Add(-exchange.EscrowClockSkew))
	return len(sc.waits[wallet]) > 0 && !old
}

const lastLease = `
SELECT o.id, o.customer_id FROM escrow_leases l JOIN orders o ON o.id = l.order_id
WHERE l.wallet_id = $1 AND ($2::timestamptz IS NULL OR l.leased_at <= $2) ORDER BY l.leased_at DESC LIMIT 1`

// lateFor finds the order that borrowed an escrow address last before something came there for which nobody waits: it
// is most probably what that order's customer paid. A zero order when there is none, or when the money left a wallet
// of ours. What came on the wrong network is looked up at the address that was lent.
func (sc *scan) lateFor(ctx context.Context, d exchange.ChainDeposit) (exchange.Order, error) {
	end := sc.byID[d.WalletID]
	if (end.Purpose != exchange.HouseEscrow && end.Purpose != exchange.HouseTwin) || d.FromWalletID != uuid.Nil {
		return exchange.Order{}, nil
	}
	lent := d.WalletID
	if end.TwinOf.Valid {
		lent = end.TwinOf.UUID
	}
	var by any
	if !d.BlockTime.IsZero() {
		by = d.BlockTime.Add(exchange.EscrowClockSkew)
	}
	var found []struct {
		ID         uuid.UUID
		CustomerID uuid.UUID `db:"customer_id"`
	}
	if err := sc.t.all(ctx, &found, lastLease, lent, by); err != nil || len(found) == 0 {
		return exchange.Order{}, err
	}
	return exchange.Order{ID: found[0].ID, CustomerID: found[0].CustomerID}, nil
}
