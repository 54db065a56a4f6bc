package ethereum

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/shopspring/decimal"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

const (
	// plainGas is the exact gas of a transfer of ether to an account without code (yellow paper, G_transaction).
	plainGas = 21_000
	// freshBalance is the additional gas of a token transfer whose recipient has emptied the account since the estimate:
	// writing a word that was zero costs 17,100 gas more (EIP-2200).
	freshBalance = 20_000
	// maxGas bounds the estimate of one transfer.
	maxGas = 1_000_000
	// baseFeeRoom is the multiple of the current base fee that a transaction can pay. The base fee rises by at most an
	// eighth per block, so twice lasts six full blocks.
	baseFeeRoom = 2
	// A node accepts a replacement that bids a tenth more for both tip and cap (go-ethereum and Foundry differ below that);
	// an eighth is above it and exact in whole wei.
	bumpDividend = 9
	bumpDivisor  = 8
)

// bid is the price of a unit of gas, in wei (EIP-1559).
type bid struct{ tip, cap *big.Int }

func wei(a money.Amount) *big.Int { return a.Units() }

func eth(n *big.Int) money.Amount { return money.FromUnits(money.ETH, n) }

func (b bid) public() exchange.Bid { return exchange.Bid{Tip: eth(b.tip), Cap: eth(b.cap)} }

// market reads the bid that is needed now: the node's suggested tip, within bounds, and a cap with room for the base fee to
// rise.
func (c *Client) market(ctx context.Context, conn *rpc.Client, baseFee *big.Int) (bid, error) {
	var suggested hexutil.Big
	if err := conn.CallContext(ctx, &suggested, "eth_maxPriorityFeePerGas"); err != nil && !missing(err) {
		return bid{}, err
	}
	tip := least(most((*big.Int)(&suggested), wei(c.config.Fees.TipFloor)), wei(c.config.Fees.TipCeiling))
	return bid{tip: tip, cap: roomy(baseFee, tip)}, nil
}

func roomy(baseFee, tip *big.Int) *big.Int {
	out := new(big.Int).Mul(baseFee, big.NewInt(baseFeeRoom))
	return out.Add(out, tip)
}

func most(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func least(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// decide returns the bid, given the market's and the bid to replace. A bid over the ceilings is refused, unless only the
// room for a rise is over them.
func (c *Client) decide(market bid, baseFee *big.Int, bump exchange.Bid) (bid, error) {
	out := market
	least := new(big.Int) // of the cap
	if !bump.IsZero() {
		if bump.Tip.Asset() != money.ETH || bump.Cap.Asset() != money.ETH || bump.Tip.Sign() < 0 || bump.Cap.Sign() < 0 {
			return bid{}, chain.Errorf(chain.ReasonUnsupported, "the replaced bid must be in ETH")
		}
		out.tip = most(market.tip, raised(wei(bump.Tip)))
		least = raised(wei(bump.Cap))
		out.cap = most(roomy(baseFee, out.tip), least)
	}
	ceiling := wei(c.config.Fees.CapCeiling)
	if out.cap.Cmp(ceiling) > 0 {
		out.cap = ceiling
	}
	needed := new(big.Int).Add(baseFee, out.tip)
	switch {
	case out.tip.Cmp(wei(c.config.Fees.TipCeiling)) > 0:
		return bid{}, chain.Errorf(chain.ReasonFeeTooHigh, "a priority fee of %s ETH per gas is needed, at most %s is allowed", eth(out.tip), c.config.Fees.TipCeiling)
	case out.cap.Cmp(needed) < 0 || out.cap.Cmp(least) < 0:
		return bid{}, chain.Errorf(chain.ReasonFeeTooHigh, "%s ETH per gas is needed, at most %s is allowed", eth(most(needed, least)), c.config.Fees.CapCeiling)
	}
	return out, nil
}

// raised is the lowest bid that replaces another, rounded up.
func raised(n *big.Int) *big.Int {
	out := new(big.Int).Mul(n, big.NewInt(bumpDividend))
	out.Add(out, big.NewInt(bumpDivisor-1))
	return out.Quo(out, big.NewInt(bumpDivisor))
}

// withMargin is the gas limit for an estimate. Unused gas costs nothing.
func (c *Client) withMargin(estimate uint64) (uint64, error) {
	if estimate > maxGas {
		return 0, chain.Errorf(chain.ReasonFeeTooHigh, "the transfer would take %d gas, at most %d is allowed", estimate, uint64(maxGas))
	}
	return decimal.NewFromUint64(estimate).Mul(c.config.Fees.Margin).Ceil().BigInt().Uint64() + freshBalance, nil
}

// costs is the highest cost of a transaction, refused above the ceiling.
func (c *Client) costs(gas uint64, b bid) (money.Amount, error) {
	total := eth(new(big.Int).Mul(new(big.Int).SetUint64(gas), b.cap))
	if total.Cmp(c.config.Fees.Most) > 0 {
		return money.Amount{}, chain.Errorf(chain.ReasonFeeTooHigh, "the transfer could cost %s ETH, at most %s is allowed", total, c.config.Fees.Most)
	}
	return total, nil
}
