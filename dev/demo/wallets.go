package demo

import (
	"context"
	"fmt"
	"math/big"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// The amounts that wallets get from outside.
const (
	vendorUSDT = "5000"
	vendorUSDC = "3000"
	gasTRX     = "50000"
	gasETH     = "100"
	gasSOL     = "1000"
	houseUSDT  = "10000"
	houseUSDC  = "5000" // for swaps
)

// usdcOn is the network on which the vendors sell USDC too.
const usdcOn = exchange.Ethereum

// fund is a single deposit from outside.
type fund struct {
	wallet exchange.Wallet
	amount money.Amount
}

// network creates the wallets, balances and offers of one network. It sends all deposits before it waits for them,
// because finality takes time.
func (s *seeder) network(ctx context.Context, n Node) error {
	if err := Watched(ctx, s.store, n.Network); err != nil {
		return err
	}
	funds, err := s.houseWallets(ctx, n)
	if err != nil {
		return err
	}
	for _, p := range People() {
		if !p.Wallet {
			continue
		}
		w, err := s.wallet(ctx, p, n.Network)
		if err != nil {
			return fmt.Errorf("wallet of %s: %w", p.Email, err)
		}
		if p.Role == "vendor" {
			funds = append(funds, fundsOf(w)...)
		}
	}
	if err := s.fund(ctx, n, funds); err != nil {
		return err
	}
	select {
	case <-s.paid:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.offers(ctx, n.Network)
}

// fundsOf returns the deposits to a vendor's wallet. The house's gas wallet brings it coins for the networks' fees.
func fundsOf(w exchange.Wallet) []fund {
	all := []fund{{w, money.Must(money.USDT, vendorUSDT)}}
	if w.Network == usdcOn {
		all = append(all, fund{w, money.Must(money.USDC, vendorUSDC)})
	}
	return all
}

// houseWallets provisions the house's own wallets on a network.
func (s *seeder) houseWallets(ctx context.Context, n Node) ([]fund, error) {
	gas := map[exchange.Network]money.Amount{
		exchange.Tron: money.Must(money.TRX, gasTRX), exchange.Ethereum: money.Must(money.ETH, gasETH), exchange.Solana: money.Must(money.SOL, gasSOL),
	}
	brings := map[exchange.HousePurpose]money.Amount{
		exchange.HouseGas: gas[n.Network], exchange.HouseTreasury: money.Must(money.USDT, houseUSDT),
	}
	var funds []fund
	for _, purpose := range []exchange.HousePurpose{exchange.HouseGas, exchange.HouseTreasury} {
		w, err := s.houseWallet(ctx, n.Network, purpose)
		if err != nil {
			return nil, fmt.Errorf("house wallet %s: %w", purpose, err)
		}
		funds = append(funds, fund{w, brings[purpose]})
		if purpose == exchange.HouseTreasury {
			funds = append(funds, fund{w, money.Must(money.USDC, houseUSDC)})
		}
	}
	return funds, nil
}

func (s *seeder) houseWallet(ctx context.Context, n exchange.Network, purpose exchange.HousePurpose) (exchange.Wallet, error) {
	have, _, err := s.store.ListWallets(ctx, store.Everything(),
		store.WalletFilter{Network: n, Purpose: purpose}, store.Page{Number: 1, Size: 1})
	if err != nil || len(have) > 0 {
		return append(have, exchange.Wallet{})[0], err
	}
	var made account
	in := map[string]any{"purpose": purpose, "network": n, "asset": "USDT", "label": "House " + string(purpose)}
	key := fmt.Sprintf("demo-house-%s-%s", purpose, n)
	if err := s.admin.Post(ctx, "/api/v1/auth/wallets/provision", key, in, &made); err != nil {
		return exchange.Wallet{}, err
	}
	return s.store.Wallet(ctx, store.Everything(), made.ID)
}

// wallet finds or creates the person's default wallet on a network.
func (s *seeder) wallet(ctx context.Context, p Person, n exchange.Network) (exchange.Wallet, error) {
	id := s.ids[p.Email]
	w, err := s.store.DefaultWallet(ctx, id, n)
	if err == nil || exchange.CodeOf(err) != exchange.CodeNotFound {
		return w, err
	}
	in := map[string]any{"user_id": id, "network": n, "asset": "USDT", "set_default": true, "label": p.First + "'s wallet"}
	var made account
	if err := s.admin.Post(ctx, "/api/v1/auth/wallets/provision", fmt.Sprintf("demo-wallet-%s-%s", p.Email, n), in, &made); err != nil {
		return w, err
	}
	return s.store.Wallet(ctx, store.Everything(), made.ID)
}

// fund sends coins to wallets on the chain, each asset once, and waits until the product has booked them.
func (s *seeder) fund(ctx context.Context, n Node, all []fund) error {
	var expected []fund
	for _, f := range all {
		changes, err := n.Changes(ctx, f.wallet.Address)
		if err != nil {
			return err
		}
		came, left := false, money.Zero(f.amount.Asset())
		for _, c := range changes {
			if c.Amount.Asset() == left.Asset() {
				came, left = came || c.Amount.Positive(), left.Add(c.Amount)
			}
		}
		if !came {
			if err := n.Fund(ctx, f.wallet.Address, f.amount); err != nil {
				return err
			}
			left = f.amount
		}
		if left.Positive() {
			expected = append(expected, f)
		}
	}
	for _, f := range expected {
		// Earlier runs may have spent some, so any amount proves the deposit.
		if err := Booked(ctx, s.store, f.wallet, money.FromUnits(f.amount.Asset(), big.NewInt(1))); err != nil {
			return err
		}
	}
	return nil
}
