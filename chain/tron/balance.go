package tron

import (
	"context"
	"math/big"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// balanceReads is how often a balance is read again because a new block arrived in between.
const balanceReads = 3

// Balance reads what an address holds in the final state, which the ledger must match. Nodes can't return a balance at a
// height, so the head is read before and after. When a block arrived in between, the read is repeated; after the last try
// the older head is returned.
func (c *Client) Balance(ctx context.Context, addr string, a money.Asset) (chain.Balance, error) {
	holder, err := parse(addr)
	if err != nil {
		return chain.Balance{}, chain.Errorf(chain.ReasonAddress, "%s", err.Error())
	}
	if err := c.Supports(a); err != nil {
		return chain.Balance{}, err
	}
	return ask(ctx, c.solid, func(ctx context.Context, n *node) (chain.Balance, error) {
		before, err := newest(ctx, n.solidity)
		if err != nil {
			return chain.Balance{}, err
		}
		for range balanceReads {
			amount, err := c.holding(ctx, n, a, holder)
			if err != nil {
				return chain.Balance{}, err
			}
			after, err := newest(ctx, n.solidity)
			if err != nil {
				return chain.Balance{}, err
			}
			if after.ID == before.ID {
				return chain.Balance{Amount: amount, At: after}, nil
			}
			before = after
		}
		amount, err := c.holding(ctx, n, a, holder)
		return chain.Balance{Amount: amount, At: before}, err
	})
}

// holding reads one balance from a solidity node.
func (c *Client) holding(ctx context.Context, n *node, a money.Asset, holder accountID) (money.Amount, error) {
	if contract, token := c.contracts[a]; token {
		return tokenBalance(ctx, n.solidity, a, contract, holder)
	}
	account, err := n.solidity.GetAccount(ctx, &core.Account{Address: holder.full()})
	if err != nil {
		return money.Amount{}, err
	}
	// An account that was never activated is an empty message with no balance.
	return units(money.TRX, big.NewInt(account.GetBalance()))
}
