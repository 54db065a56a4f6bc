package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// The pool is extended by rows that request wallets: the id of the row is the wallet's. Retries and crashes therefore never
// create a wallet twice, and every requested wallet is eventually created.

// Limits of one round of replenishing a network's pool.
const (
	maxEscrowMade    = 10  // wallets returned for creation
	maxEscrowFreed   = 200 // addresses freed after their rest
	maxOrderRequests = 3   // wallets made for one order when other orders borrow them first
)

const countEscrow = `
SELECT (SELECT count(*) FROM escrow_addresses WHERE network = $1 AND status <> 'disabled') AS total,
    (SELECT count(*) FROM escrow_addresses WHERE network = $1 AND status = 'free' AND (rest_until IS NULL OR rest_until <= $2) AND escrow_trouble(id) IS NULL) AS free,
    (SELECT count(*) FROM escrow_requests WHERE network = $1 AND made_at IS NULL) AS asked`

// escrowCount is the number of addresses of a network.
type escrowCount struct{ Total, Free, Asked int }

const dueRequests = `SELECT id FROM escrow_requests WHERE network = $1 AND made_at IS NULL ORDER BY created_at, id LIMIT $2`

const insertEscrowRequest = `INSERT INTO escrow_requests (id, network, order_id, asked_by, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`

const isRequestMade = `SELECT made_at IS NOT NULL FROM escrow_requests WHERE id = $1`

// EscrowDemand frees addresses that have rested, and requests missing wallets for the pool of each network whose
// deposits are watched: on other networks payments would go unseen. It returns the ids of wallets to create, older
// requests first. A repeated call requests no more.
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
		if err := t.Get(ctx, &has, countEscrow, n, now); err != nil {
			return err
		}
		wanted := max(0, p.KeepFree-has.Free-has.Asked)
		may := max(0, p.Most-has.Total-has.Asked)
		for range min(wanted, may, maxEscrowMade) {
			id, err := uuid.NewV7()
			if err != nil {
				return err
			}
			if err := t.One(ctx, insertEscrowRequest, id, n, nil, nil, now); err != nil {
				return err
			}
		}
		d = exchange.EscrowDemand{Network: n, Free: has.Free, Total: has.Total, Most: p.Most, Short: max(0, wanted-may)}
		return t.All(ctx, &d.Make, dueRequests, n, maxEscrowMade)
	})
	return d, err
}

// EscrowRoom serves an order that found no free address. It reports whether one is free by now, or returns in Make the
// id of a wallet to create for it. It returns neither when the pool is at its limit or the order has had its share.
// The ids derive from the order's, so that a repeated call finds the wallet that is not created yet.
func (s *Store) EscrowRoom(ctx context.Context, n exchange.Network, order uuid.UUID) (exchange.EscrowDemand, error) {
	var d exchange.EscrowDemand
	err := s.inTx(ctx, "escrow address", func(t unitTx) error {
		pool, asked, err := t.lockedPool(ctx, n)
		if err != nil {
			return err
		}
		d = pool
		for i := range maxOrderRequests {
			id := uuid.NewSHA1(order, fmt.Appendf(nil, "escrow %d", i))
			var made []bool
			if err := t.All(ctx, &made, isRequestMade, id); err != nil {
				return err
			}
			switch {
			case len(made) == 1 && !made[0]:
				d.Make = []uuid.UUID{id}
				return nil
			case d.Free > 0:
				return nil
			case len(made) == 1:
				continue // it was made, and another order borrowed it first
			case d.Total+asked >= d.Most:
				d.Short = 1
				return nil
			}
			d.Make = []uuid.UUID{id}
			return t.One(ctx, insertEscrowRequest, id, n, order, nil, t.s.now())
		}
		return nil
	})
	return d, err
}

// ProvisionEscrow requests wallets for the pool of a network on behalf of an admin; the replenishing flow creates
// them. A repeated request with the same id changes nothing. CodeLimitReached when the pool would exceed its policy.
func (s *Store) ProvisionEscrow(ctx context.Context, request uuid.UUID, n exchange.Network, count int, by exchange.Principal) (exchange.EscrowDemand, error) {
	if err := require(count >= 1 && count <= exchange.MaxEscrowBatch, "/count", "out_of_range", fmt.Sprintf("must be from 1 to %d", exchange.MaxEscrowBatch)); err != nil {
		return exchange.EscrowDemand{}, err
	}
	var d exchange.EscrowDemand
	err := s.inTx(ctx, "escrow address", func(t unitTx) error {
		pool, asked, err := t.lockedPool(ctx, n)
		if err != nil {
			return err
		}
		d = pool
		var before []bool
		if err := t.All(ctx, &before, isRequestMade, escrowRequestID(request, 0)); err != nil {
			return err
		}
		for i := range count {
			d.Make = append(d.Make, escrowRequestID(request, i))
		}
		if len(before) == 1 {
			return nil
		}
		if d.Total+asked+count > d.Most {
			return exchange.Errorf(exchange.CodeLimitReached, "The pool of %s has %d addresses and may have at most %d.", n, d.Total+asked, d.Most)
		}
		return t.requestAddresses(ctx, n, d.Make, by)
	})
	return d, err
}

// lockedPool locks a network's policy and counts its addresses, and the wallets that are asked for and not made yet.
func (t unitTx) lockedPool(ctx context.Context, n exchange.Network) (d exchange.EscrowDemand, asked int, err error) {
	p, err := t.lockedPolicy(ctx, n)
	if err != nil {
		return d, 0, err
	}
	var has escrowCount
	err = t.Get(ctx, &has, countEscrow, n, t.s.now())
	return exchange.EscrowDemand{Network: n, Free: has.Free, Total: has.Total, Most: p.Most}, has.Asked, err
}

func (t unitTx) requestAddresses(ctx context.Context, n exchange.Network, ids []uuid.UUID, by exchange.Principal) error {
	for _, id := range ids {
		if err := t.One(ctx, insertEscrowRequest, id, n, nil, nullID(by.UserID), t.s.now()); err != nil {
			return err
		}
	}
	return t.audit(ctx, by, "escrow.requested", "escrow_policy", escrowPolicyID(n), nil, map[string]any{"network": n, "count": len(ids)})
}

// escrowRequestID is the id of one of the wallets of a request.
func escrowRequestID(request uuid.UUID, i int) uuid.UUID {
	return uuid.NewSHA1(request, fmt.Appendf(nil, "escrow %d", i))
}
