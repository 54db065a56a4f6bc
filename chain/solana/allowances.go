package solana

import (
	"context"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

var _ chain.AllowanceReader = (*Client)(nil)

// Allowances implements chain.AllowanceReader: who else has a right to the token accounts of an account (spl-token state.rs Account). A
// delegate may take tokens; an owner may take all of them, also those that come later; a close authority may close an account that is
// empty.
func (c *Client) Allowances(ctx context.Context, address string) ([]chain.Allowance, error) {
	key, err := c.holder(address)
	if err != nil {
		return nil, chain.Errorf(chain.ReasonAddress, "the %s", err)
	}
	of := map[money.Asset]sdk.PublicKey{}
	var keys []sdk.PublicKey
	for _, asset := range money.Assets() {
		if mint, ours := c.mints[asset]; ours {
			if of[asset], err = tokenAccount(key, mint); err != nil {
				return nil, err
			}
			keys = append(keys, of[asset])
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	return ask(ctx, c.nodes, func(ctx context.Context, n *node) ([]chain.Allowance, error) {
		s, err := readAccounts(ctx, n, finalized, 0, keys...)
		if err != nil {
			return nil, err
		}
		var left []chain.Allowance
		for _, asset := range money.Assets() {
			if place, ours := of[asset]; ours {
				left = append(left, s.accounts[place].rights(asset, key)...)
			}
		}
		return left, nil
	})
}

// rights are those that others than its owner have to a token account.
func (a account) rights(asset money.Asset, owner sdk.PublicKey) []chain.Allowance {
	t, ok := a.token()
	if !ok {
		return nil
	}
	var all []chain.Allowance
	add := func(right string, who *sdk.PublicKey) {
		if who != nil && *who != owner {
			all = append(all, chain.Allowance{Asset: asset, Spender: who.String(), Right: right})
		}
	}
	add("owner", &t.Owner)
	add("delegate", t.Delegate)
	add("close authority", t.CloseAuthority)
	return all
}
