package tron

import (
	"context"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"

	"kivuko/chain"
	"kivuko/exchange/money"
)

var _ chain.Giver = (*Client)(nil)

// GivingCost implements chain.Giver. It is the fee for the change of the permissions and the price of its bytes, although the free bandwidth of a new
// account may cover them: whoever sends something to the account first can use that up.
func (c *Client) GivingCost(ctx context.Context, account string, q chain.OwnersChange) (money.Amount, error) {
	p, err := c.plan(chain.JointDraft{
		Account: account, Owners: &q, Quorum: chain.Quorum{Owners: []chain.Owner{{Address: account, Weight: 1}}, Threshold: 1},
	})
	if err != nil {
		return money.Amount{}, err
	}
	return build(ctx, c, p.in.from, func(ctx context.Context, b basis) (money.Amount, error) {
		if err := p.haveKeys(ctx, b.wallet); err != nil {
			return money.Amount{}, err
		}
		raw, err := c.envelope(b.final, b.latest, chain.GivingLife)
		if err != nil {
			return money.Amount{}, err
		}
		if err := setOwners(raw, p.in.from, p.owners); err != nil {
			return money.Amount{}, err
		}
		price, err := readPrices(ctx, b.wallet)
		if err != nil {
			return money.Amount{}, err
		}
		return sunOf(givingCost(price, raw)), nil
	})
}

func givingCost(p prices, raw *core.TransactionRaw) int64 {
	return p.permission + p.signing(1) + bandwidthOf(raw, 1)*p.bandwidth
}
