package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// An address of the pool is lent to one order. The database enforces that it is free, rested and empty when it is
// lent, and that its order has ended and its money is gone when it is returned.

// escrowSnapshot is an address as its events show it.
func escrowSnapshot(id uuid.UUID, n exchange.Network, s exchange.EscrowStatus, order uuid.UUID) map[string]any {
	return map[string]any{"id": id, "network": n, "status": s, "order_id": nullID(order)}
}

const leasedWallet = `SELECT ` + walletColumns + ` FROM wallets WHERE id = (SELECT wallet_id FROM escrow_leases WHERE order_id = $1)`

// Skips addresses that another order is about to borrow. The least recently used comes first.
const pickEscrow = `
SELECT id FROM escrow_addresses
WHERE network = $1 AND status = 'free' AND (rest_until IS NULL OR rest_until <= $2) AND escrow_trouble(id) IS NULL
ORDER BY last_used_at NULLS FIRST, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED`

const freeRested = `
UPDATE escrow_addresses SET status = 'free', updated_at = $2, version = version + 1 WHERE id IN (
    SELECT id FROM escrow_addresses WHERE network = $1 AND status = 'resting' AND rest_until <= $2 AND escrow_trouble(id) IS NULL
    ORDER BY rest_until, id LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id`

const insertLease = `INSERT INTO escrow_leases (id, wallet_id, order_id, leased_at) VALUES ($1, $2, $3, $4)`

// lease lends an address of the network to an order that is written in the same transaction, and registers its flow
// for deposits there. A repeated call returns the lent address. CodeEscrowExhausted when none is free.
//
// The network's deposits are not locked, unlike in AwaitDeposits: the order can't be paid before its address is known,
// which is after the transaction. A deposit in a block read at the same moment belongs to an earlier order;
// scan.verdict detects that by the block's time.
func (t unitTx) lease(ctx context.Context, n exchange.Network, order uuid.UUID, workflowID string) (exchange.Wallet, error) {
	var lent []exchange.Wallet
	if err := t.All(ctx, &lent, leasedWallet, order); err != nil {
		return exchange.Wallet{}, err
	}
	if len(lent) == 1 {
		return lent[0], nil
	}
	now := t.s.now()
	wallet, err := t.pickEscrow(ctx, n, now)
	if err != nil {
		return exchange.Wallet{}, err
	}
	ids := [2]uuid.UUID{}
	for i := range ids {
		if ids[i], err = uuid.NewV7(); err != nil {
			return exchange.Wallet{}, err
		}
	}
	if err := t.One(ctx, insertLease, ids[0], wallet, order, now); err != nil {
		return exchange.Wallet{}, err
	}
	if err := t.One(ctx, insertWait, ids[1], wallet, workflowID, now); err != nil {
		return exchange.Wallet{}, err
	}
	var w exchange.Wallet
	if err := t.Get(ctx, &w, readWallet, wallet); err != nil {
		return exchange.Wallet{}, err
	}
	return w, t.record(ctx, auditEvent{
		by: flow, object: "escrow_address", id: w.ID, name: "escrow_address.leased", after: escrowSnapshot(w.ID, n, exchange.EscrowLeased, order),
	})
}

// pickEscrow locks an address that may be lent. One that has rested long enough counts as free, even before the
// replenishing flow frees it.
func (t unitTx) pickEscrow(ctx context.Context, n exchange.Network, now time.Time) (uuid.UUID, error) {
	var free []uuid.UUID
	if err := t.All(ctx, &free, pickEscrow, n, now); err != nil {
		return uuid.Nil, err
	}
	if len(free) == 0 {
		var err error
		if free, err = t.freeRested(ctx, n, now, 1); err != nil {
			return uuid.Nil, err
		}
	}
	if len(free) == 0 {
		return uuid.Nil, exchange.Errorf(exchange.CodeEscrowExhausted, "All escrow addresses on %s are in use. Try again in a moment.", n)
	}
	return free[0], nil
}

// freeRested frees up to most addresses that have rested.
func (t unitTx) freeRested(ctx context.Context, n exchange.Network, now time.Time, most int) ([]uuid.UUID, error) {
	var free []uuid.UUID
	if err := t.All(ctx, &free, freeRested, n, now, most); err != nil {
		return nil, err
	}
	for _, id := range free {
		err := t.record(ctx, auditEvent{
			by: flow, object: "escrow_address", id: id, name: "escrow_address.free",
			before: escrowSnapshot(id, n, exchange.EscrowResting, uuid.Nil), after: escrowSnapshot(id, n, exchange.EscrowFree, uuid.Nil),
		})
		if err != nil {
			return nil, err
		}
	}
	return free, nil
}

// leaseRow is a lease with its network.
type leaseRow struct {
	exchange.EscrowLease
	Network exchange.Network
}

const leaseOfOrder = `
SELECT l.id, l.wallet_id, l.order_id, a.network, l.leased_at, l.ended_at, l.rest_until
FROM escrow_leases l JOIN escrow_addresses a ON a.id = l.wallet_id WHERE l.order_id = $1`

// EscrowLease reads the lease of an order, whether it has ended or not.
func (s *Store) EscrowLease(ctx context.Context, order uuid.UUID) (exchange.EscrowLease, error) {
	var r leaseRow
	if err := s.db.Get(ctx, &r, leaseOfOrder, order); err != nil {
		return exchange.EscrowLease{}, translate(err, "escrow lease")
	}
	return r.EscrowLease, nil
}

const unclaimed = `SELECT ` + depositColumns + ` FROM chain_deposits d
WHERE d.wallet_id = $1 AND d.kind = 'awaited' AND d.status = 'final' AND NOT EXISTS (SELECT FROM escrow_claims c WHERE c.deposit_id = d.id)
ORDER BY d.block, d.event_index`

const endWaits = `UPDATE deposit_waits SET ended_at = $2 WHERE wallet_id = $1 AND ended_at IS NULL`

const endLease = `UPDATE escrow_leases SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL`

// rest returns the address of an order to the pool, in the transaction that ends the order or a later one. The caller
// has stored the order as ended and locked the deposits of its network (lockDeposits). A repeated call changes
// nothing. CodeStateConflict while the order's claimed crypto is on the address.
func (t unitTx) rest(ctx context.Context, order uuid.UUID) error {
	_, err := t.settleLease(ctx, order)
	return err
}

// settleLease opens a payment exception for every unclaimed deposit, and ends the wait and the lease.
func (t unitTx) settleLease(ctx context.Context, order uuid.UUID) ([]exchange.PaymentException, error) {
	var found []leaseRow
	if err := t.All(ctx, &found, leaseOfOrder, order); err != nil || len(found) == 0 || !found[0].EndedAt.IsZero() {
		return nil, err
	}
	l := found[0]
	o, err := t.lockedOrder(ctx, order)
	if err != nil {
		return nil, err
	}
	left, err := t.claimRest(ctx, o, l.WalletID)
	if err != nil {
		return nil, err
	}
	now := t.s.now()
	if _, err := t.Exec(ctx, endWaits, l.WalletID, now); err != nil {
		return nil, err
	}
	if err := t.One(ctx, endLease, l.ID, now); err != nil {
		return nil, err
	}
	return left, t.record(ctx, auditEvent{
		by: flow, object: "escrow_address", id: l.WalletID, name: "escrow_address.resting",
		before: escrowSnapshot(l.WalletID, l.Network, exchange.EscrowLeased, order), after: escrowSnapshot(l.WalletID, l.Network, exchange.EscrowResting, uuid.Nil),
	})
}

// claimRest claims an order's unclaimed deposits: dust that woke no flow, and deposits that a terminated flow missed.
func (t unitTx) claimRest(ctx context.Context, o exchange.Order, wallet uuid.UUID) ([]exchange.PaymentException, error) {
	var came []exchange.ChainDeposit
	if err := t.All(ctx, &came, unclaimed, wallet); err != nil || len(came) == 0 {
		return nil, err
	}
	var decided bool
	if err := t.Get(ctx, &decided, orderDecided, o.ID); err != nil {
		return nil, err
	}
	left := make([]exchange.PaymentException, 0, len(came))
	for _, d := range came {
		kind := exchange.ClaimLate
		switch {
		case d.Amount.Asset() != o.Asset:
			kind = exchange.ClaimWrongAsset
		case decided:
			kind = exchange.ClaimDuplicate
		}
		c, err := t.claim(ctx, d, o.ID, kind)
		if err != nil {
			return nil, err
		}
		var x exchange.PaymentException
		if err := t.Get(ctx, &x, readException, c.ExceptionID); err != nil {
			return nil, err
		}
		left = append(left, x)
	}
	return left, nil
}

// ReleaseEscrow returns the address of an ended order to the pool, where it rests, and returns the payment exceptions
// that it opened for unclaimed deposits. A repeated call changes nothing. CodeStateConflict while the order has not
// ended, or its crypto is still on the address.
func (s *Store) ReleaseEscrow(ctx context.Context, order uuid.UUID) ([]exchange.PaymentException, error) {
	var l leaseRow
	if err := s.db.Get(ctx, &l, leaseOfOrder, order); err != nil {
		return nil, translate(err, "escrow lease")
	}
	return change(ctx, s, "escrow address", depositsLock(l.Network), func(ctx context.Context, t unitTx) ([]exchange.PaymentException, exchange.Posting, error) {
		var none exchange.Posting
		if err := t.lockDeposits(ctx, l.Network); err != nil {
			return nil, none, err
		}
		left, err := t.settleLease(ctx, order)
		return left, none, err
	})
}

const openLeases = `
SELECT l.order_id FROM escrow_leases l JOIN orders o ON o.id = l.order_id
WHERE l.ended_at IS NULL AND l.leased_at < $1 AND o.status IN ('completed', 'cancelled', 'failed') AND o.updated_at < $1
ORDER BY l.leased_at LIMIT $2`

// StaleLeases are orders that ended before a time without returning their address: their crypto is still being moved,
// or their flow is gone.
func (s *Store) StaleLeases(ctx context.Context, before time.Time, most int) ([]uuid.UUID, error) {
	return readAll[uuid.UUID](ctx, s.db, "escrow lease", openLeases, before, most)
}

const keptUnmoved = `
SELECT h.object_id AS exception_id, w.network FROM wallets w JOIN ledger_accounts a ON a.owner_id = w.id AND a.kind = 'wallet_balance' JOIN holds h ON h.account_id = a.id AND h.status = 'held'
LEFT JOIN chain_payments p ON p.purpose = 'sweep' AND p.object_id = h.object_id
WHERE w.purpose IN ('escrow', 'counterpart') AND h.object_type = 'payment_exception' AND h.created_at < $1
    AND p.status IS DISTINCT FROM 'completed' AND p.status IS DISTINCT FROM 'cancelled'
ORDER BY p.id IS NOT NULL, h.created_at LIMIT $2`

// KeptUnmoved are exceptions whose crypto the house decided to keep before a time and whose move to the treasury has not ended:
// it was never started, it is under way, or its flow is gone.
func (s *Store) KeptUnmoved(ctx context.Context, before time.Time, most int) ([]exchange.KeptDeposit, error) {
	var rows []struct {
		ExceptionID uuid.UUID
		Network     exchange.Network
	}
	if err := s.db.All(ctx, &rows, keptUnmoved, before, most); err != nil {
		return nil, translate(err, "payment exception")
	}
	kept := make([]exchange.KeptDeposit, 0, len(rows))
	for _, r := range rows {
		kept = append(kept, exchange.KeptDeposit{ExceptionID: r.ExceptionID, Network: r.Network})
	}
	return kept, nil
}
