package solana

import (
	"context"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// Balance reads what a wallet holds in the final state, which the ledger must match. For a token that is the balance of its
// associated token account. Other token accounts of the same owner are not counted, because we never pay from them.
func (c *Client) Balance(ctx context.Context, addr string, a money.Asset) (chain.Balance, error) {
	wallet, err := c.wallet(addr)
	if err != nil {
		return chain.Balance{}, chain.Errorf(chain.ReasonAddress, "the %s", err)
	}
	if err := c.Supports(a); err != nil {
		return chain.Balance{}, err
	}
	mint, isToken := c.mints[a]
	return ask(ctx, c.nodes, func(ctx context.Context, n *node) (chain.Balance, error) {
		if isToken {
			return tokenBalance(ctx, n, a, mint, wallet)
		}
		s, err := readAccounts(ctx, n, finalized, 0, wallet)
		if err != nil {
			return chain.Balance{}, err
		}
		at, err := headerAt(ctx, n, s.slot, finalized)
		return chain.Balance{Amount: lamports(s.accounts[wallet].lamports), At: at}, err
	})
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

func tokenBalance(ctx context.Context, n *node, asset money.Asset, mint, wallet sdk.PublicKey) (chain.Balance, error) {
	holder, err := tokenAccount(wallet, mint)
	if err != nil {
		return chain.Balance{}, err
	}
	s, err := readAccounts(ctx, n, finalized, 0, holder, mint)
	if err != nil {
		return chain.Balance{}, err
	}
	if err := checkMint(asset, mint, s.accounts[mint]); err != nil {
		return chain.Balance{}, err
	}
	b := chain.Balance{Amount: money.Zero(asset)}
	if t, ok := held(s.accounts[holder], wallet, mint); ok {
		b.Amount = units(asset, t.Amount)
	}
	b.At, err = headerAt(ctx, n, s.slot, finalized)
	return b, err
}
