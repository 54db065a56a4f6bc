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

// Balance reads what an address holds in the final state, which the ledger must match.
func (c *Client) Balance(ctx context.Context, addr string, a money.Asset) (chain.Balance, error) {
	all, err := c.Balances(ctx, []chain.Holding{{Address: addr, Asset: a}})
	if err != nil {
		return chain.Balance{}, err
	}
	return all[0], nil
}

// Balances reads holdings in the final state. Nodes can't return a balance at a height, so the head is read before and after.
// When a block arrived in between, the read is repeated; after the last try the older head is returned.
func (c *Client) Balances(ctx context.Context, of []chain.Holding) ([]chain.Balance, error) {
	holders := make([]accountID, len(of))
	for i, h := range of {
		var err error
		if holders[i], err = parse(h.Address); err != nil {
			return nil, chain.Errorf(chain.ReasonAddress, "%s", err.Error())
		}
		if err := c.Supports(h.Asset); err != nil {
			return nil, err
		}
	}
	return ask(ctx, c.solid, func(ctx context.Context, n *node) ([]chain.Balance, error) {
		before, err := newest(ctx, n.solidity)
		if err != nil {
			return nil, err
		}
		for range balanceReads {
			all, err := c.holdings(ctx, n, of, holders, before)
			if err != nil {
				return nil, err
			}
			after, err := newest(ctx, n.solidity)
			if err != nil {
				return nil, err
			}
			if after.ID == before.ID {
				return all, nil
			}
			before = after
		}
		return c.holdings(ctx, n, of, holders, before)
	})
}

// holdings reads balances one after the other, as those of a block.
func (c *Client) holdings(ctx context.Context, n *node, of []chain.Holding, holders []accountID, at chain.Block) ([]chain.Balance, error) {
	all := make([]chain.Balance, len(of))
	for i, h := range of {
		amount, err := c.holding(ctx, n, h.Asset, holders[i])
		if err != nil {
			return nil, err
		}
		all[i] = chain.Balance{Amount: amount, At: at}
	}
	return all, nil
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
