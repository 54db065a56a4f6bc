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
