package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// The pool grows by wallets that are asked for in rows first: the id of the row is the wallet's. However often a
// wallet is made, and whoever dies in between, there is one of it, and what was asked for is made in the end.

// Limits of one round of tending a network.
const (
	maxEscrowMade  = 10  // wallets that are handed out to be made
	maxEscrowFreed = 200 // addresses that come back from their rest
	maxOrderGrowth = 3   // wallets that are made for one order, when others were quicker to borrow them
)

const countEscrow = `
SELECT (SELECT count(*) FROM escrow_addresses WHERE network = $1 AND status <> 'disabled') AS total,
    (SELECT count(*) FROM escrow_addresses WHERE network = $1 AND status = 'free' AND (rest_until IS NULL OR rest_until <= $2) AND escrow_trouble(id) IS NULL) AS free,
    (SELECT count(*) FROM escrow_growth WHERE network = $1 AND made_at IS NULL) AS asked`

// escrowCount is how many addresses a network has.
type escrowCount struct{ Total, Free, Asked int }

const dueGrowth = `SELECT id FROM escrow_growth WHERE network = $1 AND made_at IS NULL ORDER BY created_at, id LIMIT $2`

const insertGrowth = `INSERT INTO escrow_growth (id, network, order_id, asked_by, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`

const growthAsked = `SELECT made_at IS NOT NULL FROM escrow_growth WHERE id = $1`

// EscrowDemand takes addresses that have rested back into use, and asks for the wallets that the pools lack, of each
// network whose deposits are watched: elsewhere nobody could be paid. It returns the ids of wallets that are to be
// made, those that were asked for before first. Called again, it asks for no more.
func (s *Store) EscrowDemand(ctx context.Context) ([]exchange.EscrowDemand, error) {
	networks, err := s.ReconciledNetworks(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]exchange.EscrowDemand, 0, len(networks))
	for _, n := range networks {
		d, err := s.escrowDemand(ctx, n)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (s *Store) escrowDemand(ctx context.Context, n exchange.Network) (exchange.EscrowDemand, error) {
	var d exchange.EscrowDemand
	err := s.inTx(ctx, "escrow address", func(t unitTx) error {
		p, err := t.lockedPolicy(ctx, n)
		if err != nil {
			return err
		}
		now := t.s.now()
		if _, err := t.freeRested(ctx, n, now, maxEscrowFreed); err != nil {
			return err
		}
		var has escrowCount
		if err := t.get(ctx, &has, countEscrow, n, now); err != nil {
			return err
		}
		wanted := max(0, p.KeepFree-has.Free-has.Asked)
		may := max(0, p.Most-has.Total-has.Asked)
		for range min(wanted, may, maxEscrowMade) {
			id, err := uuid.NewV7()
			if err != nil {
				return err
			}
			if err := t.one(ctx, insertGrowth, id, n, nil, nil, now); err != nil {
				return err
			}
		}
		d = exchange.EscrowDemand{Network: n, Free: has.Free, Total: has.Total, Most: p.Most, Short: max(0, wanted-may)}
		return t.all(ctx, &d.Make, dueGrowth, n, maxEscrowMade)
	})
	return d, err
}

// EscrowRoom is asked for an order that found no free address: whether one is free by now, or a wallet may be made for
// it, whose id it returns in Make. It gives neither when the pool is as large as it may be, or the order has had its share.
// The ids of its wallets follow from the order's, so that asking again finds the one that is not made yet.
func (s *Store) EscrowRoom(ctx context.Context, n exchange.Network, order uuid.UUID) (exchange.EscrowDemand, error) {
	var d exchange.EscrowDemand
	err := s.inTx(ctx, "escrow address", func(t unitTx) error {
		p, err := t.lockedPolicy(ctx, n)
		if err != nil {
			return err
		}
		now := t.s.now()
		var has escrowCount
		if err := t.get(ctx, &has, countEscrow, n, now); err != nil {
			return err
		}
		d = exchange.EscrowDemand{Network: n, Free: has.Free, Total: has.Total, Most: p.Most}
		for i := range maxOrderGrowth {
			id := uuid.NewSHA1(order, fmt.Appendf(nil, "escrow %d", i))
			var made []bool
			if err := t.all(ctx, &made, growthAsked, id); err != nil {
				return err
			}
			switch {
			case len(made) == 1 && !made[0]:
				d.Make = []uuid.UUID{id}
				return nil
			case has.Free > 0:
				return nil
			case len(made) == 1:
				continue // it was made, and another order was quicker
			case has.Total+has.Asked >= p.Most:
				d.Short = 1
				return nil
			}
			d.Make = []uuid.UUID{id}
			return t.one(ctx, insertGrowth, id, n, order, nil, now)
		}
		return nil
	})
	return d, err
}

// GrowEscrow asks for a number of wallets for the pool of a network, as an admin wishes; the tending flow makes them.
// The request's id makes it the same one when it is repeated. CodeLimitReached when the pool would be larger than its
// policy lets it be.
func (s *Store) GrowEscrow(ctx context.Context, request uuid.UUID, n exchange.Network, count int, by exchange.Principal) (exchange.EscrowDemand, error) {
	if err := require(count >= 1 && count <= exchange.MaxEscrowBatch, "/count", "out_of_range", fmt.Sprintf("must be from 1 to %d", exchange.MaxEscrowBatch)); err != nil {
		return exchange.EscrowDemand{}, err
	}
	var d exchange.EscrowDemand
	err := s.inTx(ctx, "escrow address", func(t unitTx) error {
		p, err := t.lockedPolicy(ctx, n)
		if err != nil {
			return err
		}
		now := t.s.now()
		var has escrowCount
		if err := t.get(ctx, &has, countEscrow, n, now); err != nil {
			return err
		}
		d = exchange.EscrowDemand{Network: n, Free: has.Free, Total: has.Total, Most: p.Most}
		var before []bool
		if err := t.all(ctx, &before, growthAsked, grownID(request, 0)); err != nil {
			return err
		}
		for i := range count {
			d.Make = append(d.Make, grownID(request, i))
		}
		if len(before) == 1 {
			return nil
		}
		if has.Total+has.Asked+count > p.Most {
			return exchange.Errorf(exchange.CodeLimitReached, "The pool of %s has %d addresses and may have %d.", n, has.Total+has.Asked, p.Most)
		}
		return t.askGrowth(ctx, n, d.Make, now, by)
	})
	return d, err
}

func (t unitTx) askGrowth(ctx context.Context, n exchange.Network, ids []uuid.UUID, now time.Time, by exchange.Principal) error {
	for _, id := range ids {
		if err := t.one(ctx, insertGrowth, id, n, nil, nullID(by.UserID), now); err != nil {
			return err
		}
	}
	return t.audit(ctx, by, "escrow.grown", "escrow_policy", escrowPolicyID(n), nil, map[string]any{"network": n, "count": len(ids)})
}

// grownID is the id of one of the wallets that a request asks for.
func grownID(request uuid.UUID, i int) uuid.UUID {
	return uuid.NewSHA1(request, fmt.Appendf(nil, "escrow %d", i))
}
