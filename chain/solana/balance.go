package solana

import (
	"bytes"
	"context"
	"slices"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// Balance reads what a wallet holds in the final state, which the ledger must match. For a token that is the balance of its
// associated token account. Other token accounts of the same owner are not counted, because we never pay from them.
func (c *Client) Balance(ctx context.Context, addr string, a money.Asset) (chain.Balance, error) {
	all, err := c.Balances(ctx, []chain.Holding{{Address: addr, Asset: a}})
	if err != nil {
		return chain.Balance{}, err
	}
	return all[0], nil
}

// place is where the balance of a wallet is found: in its token account, or in its own account.
type place struct {
	wallet, mint, account sdk.PublicKey
}

func (p place) token() bool { return p.account != p.wallet }

// keyless is a place of tokens whose owner has no key. It must be an account of several owners.
func (p place) keyless() bool { return p.token() && !p.wallet.IsOnCurve() }

func (c *Client) place(h chain.Holding) (place, error) {
	mint, token := c.mints[h.Asset]
	read := c.wallet
	if token {
		read = c.holder
	}
	wallet, err := read(h.Address)
	if err != nil {
		return place{}, chain.Errorf(chain.ReasonAddress, "the %s", err)
	}
	if err := c.Supports(h.Asset); err != nil {
		return place{}, err
	}
	if !token {
		return place{wallet: wallet, account: wallet}, nil
	}
	account, err := tokenAccount(wallet, mint)
	return place{wallet, mint, account}, err
}

// Balances reads holdings in the final state of one slot.
func (c *Client) Balances(ctx context.Context, of []chain.Holding) ([]chain.Balance, error) {
	places := make([]place, len(of))
	var keys []sdk.PublicKey
	for i, h := range of {
		var err error
		if places[i], err = c.place(h); err != nil {
			return nil, err
		}
		if keys = append(keys, places[i].account); places[i].token() {
			keys = append(keys, places[i].mint)
		}
		if places[i].keyless() {
			keys = append(keys, places[i].wallet)
		}
	}
	slices.SortFunc(keys, func(a, b sdk.PublicKey) int { return bytes.Compare(a[:], b[:]) })
	keys = slices.Compact(keys)
	return ask(ctx, c.nodes, func(ctx context.Context, n *node) ([]chain.Balance, error) {
		s, err := readAccounts(ctx, n, finalized, 0, keys...)
		if err != nil {
			return nil, err
		}
		at, err := headerAt(ctx, n, s.slot, finalized)
		if err != nil {
			return nil, err
		}
		all := make([]chain.Balance, len(of))
		for i, h := range of {
			amount, err := places[i].holds(s, h.Asset)
			if err != nil {
				return nil, err
			}
			all[i] = chain.Balance{Amount: amount, At: at}
		}
		return all, nil
	})
}

// holds reads a balance out of a snapshot.
func (p place) holds(s snapshot, a money.Asset) (money.Amount, error) {
	if !p.token() {
		return lamports(s.accounts[p.account].lamports), nil
	}
	if err := checkMint(a, p.mint, s.accounts[p.mint]); err != nil {
		return money.Amount{}, err
	}
	if _, shared := s.accounts[p.wallet].multisig(); p.keyless() && !shared {
		return money.Amount{}, chain.Errorf(chain.ReasonAddress, "the %s", errKeyless)
	}
	if t, ok := held(s.accounts[p.account], p.wallet, p.mint); ok {
		return units(a, t.Amount), nil
	}
	return money.Zero(a), nil
}

// Holders names an address, and for a token also the associated token account of a wallet or the owner of a token account.
func (c *Client) Holders(ctx context.Context, addr string, a money.Asset) ([]string, error) {
	key, err := readKey(addr)
	if err != nil {
		return nil, chain.Errorf(chain.ReasonAddress, "address %s", err)
	}
	mint, isToken := c.mints[a]
	if !isToken {
		return []string{addr}, nil
	}
	holder, err := tokenAccount(key, mint)
	if err != nil {
		return nil, err
	}
	return ask(ctx, c.nodes, func(ctx context.Context, n *node) ([]string, error) {
		s, err := readAccounts(ctx, n, confirmed, 0, key)
		if t, ok := s.accounts[key].token(); ok {
			return []string{addr, t.Owner.String()}, err
		}
		return []string{addr, holder.String()}, err
	})
}
