package invariants

import (
	"context"
	"fmt"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// pageSize is how many wallets are read at a time.
const pageSize = 100

// Chains compares what the ledger says of every wallet of ours with what the networks' nodes say. It holds once nothing
// is under way.
func Chains(ctx context.Context, s *store.Store, nodes []demo.Node) error {
	for _, n := range nodes {
		for page := 1; ; page++ {
			wallets, _, err := s.ListWallets(ctx, store.Everything(), store.WalletFilter{Network: n.Network}, store.Page{Number: page, Size: pageSize})
			if err != nil {
				return err
			}
			for _, w := range wallets {
				if err := compare(ctx, s, n, w); err != nil {
					return err
				}
			}
			if len(wallets) < pageSize {
				break
			}
		}
	}
	return nil
}

func compare(ctx context.Context, s *store.Store, n demo.Node, w exchange.Wallet) error {
	holds, err := n.Holds(ctx, w.Address)
	if err != nil {
		return err
	}
	for asset, chain := range holds {
		if !w.Moves(asset) {
			continue
		}
		booked := money.Zero(asset)
		a, err := s.Account(ctx, exchange.Owned(exchange.AccCustody, w.ID, asset))
		switch {
		case err == nil:
			booked = a.Posted
		case exchange.CodeOf(err) != exchange.CodeNotFound:
			return err
		}
		if !booked.Equal(chain) {
			return fmt.Errorf("wallet %s on %s: the ledger says %s %s, the chain %s", w.Address, n.Network, booked, asset, chain)
		}
	}
	return nil
}
