package solana

import (
	"context"
	"math/big"
	"slices"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

const (
	// signatureFee is charged for every signature, in lamports, even if the transaction fails (fee-structure lib.rs). It
	// only bounds a fee before signing; the network reports the real cost.
	signatureFee = 5_000
	// maxUnits is the most computation for a payment. One takes about 15,000 units when it creates an account and 1,000
	// otherwise.
	maxUnits = 200_000
	// createUnits is the least for a payment that may have to create the recipient's account: the account may exist in the
	// simulation but not in the block. It is also the least for one of several owners, whose message can't be changed later.
	createUnits = 40_000
	// unitsSlack is added to the simulated units, as is a third of them.
	unitsSlack = 1_000
	// pricePercentile is the percentile of recent prices that we bid.
	pricePercentile = 75
	// maxRent bounds a node's answer about rent, far above the 0.002 SOL of a token account.
	maxRent = 1_000_000_000
)

// unitsFor is the limit for a simulated amount of computation. The fee depends on the limit, not on the use, and a
// transaction that exceeds it pays and moves nothing.
func unitsFor(used uint64, ample bool) (uint32, error) {
	if used > maxUnits {
		return 0, chain.Errorf(chain.ReasonFeeTooHigh, "the transfer takes %d units of computation, at most %d are allowed", used, maxUnits)
	}
	limit := used + used/3 + unitsSlack
	if ample {
		limit = max(limit, createUnits)
	}
	return uint32(min(limit, maxUnits)), nil
}

// priceFor is the recent price of transactions that wrote the same accounts, within the rule's bounds. On a busy network it
// is the ceiling, and the payment takes longer.
func (c *Client) priceFor(ctx context.Context, n *node, accounts ...sdk.PublicKey) (uint64, error) {
	names := make([]string, len(accounts))
	for i, a := range accounts {
		names[i] = a.String()
	}
	recent, err := call[[]struct {
		Fee uint64 `json:"prioritizationFee"`
	}](ctx, n, "getRecentPrioritizationFees", names)
	if err != nil {
		return 0, err
	}
	prices := make([]uint64, len(recent))
	for i, r := range recent {
		prices[i] = r.Fee
	}
	slices.Sort(prices)
	var price uint64
	if len(prices) > 0 {
		price = prices[(len(prices)-1)*pricePercentile/100]
	}
	return min(max(price, c.config.Fees.PriceFloor), c.config.Fees.PriceCeiling), nil
}

// mostFee is the highest cost of a message without rent: its signatures, and its price for its full computation limit
// (rounded up, compute-budget lib.rs).
func mostFee(signatures int, limit uint32, price uint64) *big.Int {
	fee := new(big.Int).Mul(new(big.Int).SetUint64(price), big.NewInt(int64(limit)))
	fee.Add(fee, big.NewInt(microLamports-1)).Quo(fee, big.NewInt(microLamports))
	return fee.Add(fee, big.NewInt(int64(signatures)*signatureFee))
}

const microLamports = 1_000_000

// feeOf asks for the cost of a message without rent, by a state not older than its blockhash. Null means that the node does
// not know the blockhash.
func feeOf(ctx context.Context, n *node, body []byte, minSlot uint64) (uint64, error) {
	answer, err := call[contextAnswer[*uint64]](ctx, n, "getFeeForMessage", encode(body), options{"commitment": confirmed, "minContextSlot": minSlot})
	if err != nil {
		return 0, err
	}
	if answer.Context.Slot < minSlot {
		return 0, chain.Errorf(chain.ReasonUnavailable, "the node has a fee for slot %d, at least %d is needed", answer.Context.Slot, minSlot)
	}
	if answer.Value == nil {
		return 0, chain.Errorf(chain.ReasonUnavailable, "the node does not know the blockhash that it gave")
	}
	return *answer.Value, nil
}

// rentOf asks for the least balance of an account of a size.
func rentOf(ctx context.Context, n *node, size int) (uint64, error) {
	rent, err := call[uint64](ctx, n, "getMinimumBalanceForRentExemption", size, options{"commitment": confirmed})
	if err == nil && rent > maxRent {
		err = chain.Errorf(chain.ReasonProtocol, "an account of %d bytes can't need %d lamports", size, rent)
	}
	return rent, err
}

// withinCap refuses a transaction that may cost more than the rule allows.
func (c *Client) withinCap(most money.Amount) error {
	if most.Cmp(c.config.Fees.Cap) > 0 {
		return chain.Errorf(chain.ReasonFeeTooHigh, "the transfer may cost %s SOL, at most %s is allowed", most, c.config.Fees.Cap)
	}
	return nil
}
