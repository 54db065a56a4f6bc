package demo

import (
	"context"
	"errors"
	"time"

	"kivuko/exchange"
	"kivuko/store"
)

// gasTime bounds the wait for the vendors' gas: two runs of GasAhead, and the blocks of its top-ups.
const gasTime = 3 * time.Minute

// AwaitGas waits until final blocks have the gas that GasAhead brings to the vendors' wallets, as they have it in a deployment whose offers were
// published long before. Otherwise the first purchase would ask for its own and wait for a block more. If none comes it says so, and that
// is all: payments get gas by themselves.
func AwaitGas(ctx context.Context, w Stack) error {
	db, err := store.Open(ctx, w.DatabaseURL, store.Options{MaxConns: 1})
	if err != nil {
		return err
	}
	return errors.Join(w.awaitGas(ctx, db), db.Close())
}

func (w Stack) awaitGas(ctx context.Context, db *store.Store) error {
	wallets, err := w.vendorWallets(ctx, db)
	if err != nil {
		return err
	}
	began, waits := time.Now(), false
	limit, cancel := context.WithTimeout(ctx, gasTime)
	defer cancel()
	for _, v := range wallets {
		for !hasGas(limit, db, v) {
			if !waits {
				waits = true
				w.Say("Waiting until GasAhead has brought gas to the wallets of the vendors' offers, which were published just now.")
			}
			if pause(limit) != nil {
				w.Say("No gas has come to %s on %s: the first payment from there asks for it.", v.Address, networkNames[v.Network])
				return ctx.Err()
			}
		}
	}
	if waits {
		w.Say("The vendors' wallets have gas, %.1f s later.", time.Since(began).Seconds())
	}
	return nil
}

// vendorWallets lists the vendors' wallets that pay fees themselves.
func (w Stack) vendorWallets(ctx context.Context, db *store.Store) (all []exchange.Wallet, err error) {
	for _, n := range w.Nodes() {
		for _, p := range People() {
			if n.Network.Sponsored() || p.Role != "vendor" {
				continue
			}
			owner, err := db.UserByEmail(ctx, p.Email)
			if err != nil {
				return nil, err
			}
			wallet, err := db.DefaultWallet(ctx, owner.ID, n.Network)
			if err != nil {
				return nil, err
			}
			all = append(all, wallet)
		}
	}
	return all, nil
}

// hasGas reports whether coins for fees are booked in a wallet: before, what lies there on the chain pays no fee.
func hasGas(ctx context.Context, db *store.Store, v exchange.Wallet) bool {
	a, err := db.Account(ctx, exchange.Owned(exchange.AccCustody, v.ID, v.Network.NativeCoin()))
	return err == nil && a.Posted.Positive() // without an answer it is asked again
}
