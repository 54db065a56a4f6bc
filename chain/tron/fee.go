package tron

import (
	"context"
	"math/big"
	"slices"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"github.com/shopspring/decimal"
	"google.golang.org/protobuf/proto"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// prices are the chain parameters that determine the cost of a transaction, in sun (10^-6 TRX). The producers vote on them,
// so they are read and never assumed.
type prices struct {
	energy     int64 // per unit of energy
	bandwidth  int64 // per byte
	activation int64 // burnt when a transfer creates an account
	newAccount int64 // for the bandwidth of that transfer, unless it is staked
	multiSign  int64 // for more than one signature
	permission int64 // for a change of permissions
}

// signing is the fee for the number of signatures (java-tron Manager.consumeMultiSignFee).
func (p prices) signing(signatures int) int64 {
	if signatures > 1 {
		return p.multiSign
	}
	return 0
}

func readPrices(ctx context.Context, w api.WalletClient) (prices, error) {
	answer, err := w.GetChainParameters(ctx, &api.EmptyMessage{})
	if err != nil {
		return prices{}, err
	}
	var p prices
	wanted := map[string]*int64{
		"getEnergyFee":                           &p.energy,
		"getTransactionFee":                      &p.bandwidth,
		"getCreateNewAccountFeeInSystemContract": &p.activation,
		"getCreateAccountFee":                    &p.newAccount,
		"getMultiSignFee":                        &p.multiSign,
		"getUpdateAccountPermissionFee":          &p.permission,
	}
	for _, q := range answer.GetChainParameter() {
		if field, ok := wanted[q.GetKey()]; ok {
			*field = q.GetValue()
			delete(wanted, q.GetKey())
		}
	}
	for name := range wanted {
		return prices{}, chain.Errorf(chain.ReasonUnavailable, "the node does not return the chain parameter %s", name)
	}
	if p.energy <= 0 || p.bandwidth <= 0 || min(p.activation, p.newAccount, p.multiSign, p.permission) < 0 {
		return prices{}, chain.Errorf(chain.ReasonProtocol, "the chain parameters are impossible: %+v", p)
	}
	return p, nil
}

// resources are what an account may use without burning TRX, and the TRX that it can burn.
type resources struct {
	activated       bool
	balance         int64 // sun
	energy          int64
	stakedBandwidth int64
	freeBandwidth   int64
}

func readResources(ctx context.Context, w api.WalletClient, account *core.Account) (resources, error) {
	if len(account.GetAddress()) == 0 {
		return resources{}, nil // never activated, so it holds no TRX and can send nothing
	}
	answer, err := w.GetAccountResource(ctx, &core.Account{Address: account.GetAddress()})
	if err != nil {
		return resources{}, err
	}
	return resources{
		activated:       true,
		balance:         account.GetBalance(),
		energy:          max(0, answer.GetEnergyLimit()-answer.GetEnergyUsed()),
		stakedBandwidth: max(0, answer.GetNetLimit()-answer.GetNetUsed()),
		freeBandwidth:   max(0, answer.GetFreeNetLimit()-answer.GetFreeNetUsed()),
	}, nil
}

const (
	signatureLength = 65
	// resultAllowance is what java-tron adds to a transaction's size for the result of each of its contracts
	// (Constant.MAX_RESULT_SIZE_IN_TX).
	resultAllowance = 64
)

// bandwidthOf is the bandwidth of a transaction with that many signatures.
func bandwidthOf(raw *core.TransactionRaw, signatures int) int64 {
	signed := &core.Transaction{RawData: raw, Signature: slices.Repeat([][]byte{make([]byte, signatureLength)}, signatures)}
	return int64(proto.Size(signed)) + resultAllowance
}

// bandwidthCost is the TRX burnt for bandwidth: zero if either the staked or the free bandwidth covers all of it, the whole
// price if neither does (java-tron BandwidthProcessor.consume).
func bandwidthCost(p prices, r resources, bytes int64) int64 {
	if bytes <= r.stakedBandwidth || bytes <= r.freeBandwidth {
		return 0
	}
	return bytes * p.bandwidth
}

// activationCost is the cost of a transfer that creates its recipient. Staked bandwidth covers such a transfer, free
// bandwidth does not (java-tron BandwidthProcessor.consumeForCreateNewAccount).
func activationCost(p prices, r resources, bytes int64) int64 {
	if bytes <= r.stakedBandwidth {
		return p.activation
	}
	return p.activation + p.newAccount
}

// energyLimit is the fee limit for a simulated amount of energy, in sun.
func (c *Client) energyLimit(p prices, energy int64) (int64, error) {
	if energy < 0 {
		return 0, chain.Errorf(chain.ReasonProtocol, "a simulation used %d energy", energy)
	}
	cost := sun(decimal.NewFromInt(energy).Mul(decimal.NewFromInt(p.energy)))
	want := sun(decimal.NewFromInt(energy).Mul(decimal.NewFromInt(p.energy)).Mul(c.config.Fees.Margin).Ceil())
	if want.Cmp(c.config.Fees.Cap) > 0 {
		return 0, chain.Errorf(chain.ReasonFeeTooHigh, "the transfer would cost %s TRX, with a margin %s; at most %s is allowed",
			cost, want, c.config.Fees.Cap)
	}
	if want.Cmp(c.config.Fees.Floor) < 0 {
		want = c.config.Fees.Floor
	}
	return want.Units().Int64(), nil
}

// feeLimit is the fee limit of a transaction that has none yet. One that has is signed, so the limit must suffice as it is.
func (c *Client) feeLimit(p prices, energy, has int64) (int64, error) {
	limit, err := c.energyLimit(p, energy)
	if err != nil || has == 0 {
		return limit, err
	}
	if cost := sun(decimal.NewFromInt(energy).Mul(decimal.NewFromInt(p.energy))); cost.Cmp(sunOf(has)) > 0 {
		return 0, chain.Errorf(chain.ReasonFeeTooHigh, "the transfer now costs %s TRX, and the transaction that was signed allows %s", cost, sunOf(has))
	}
	return has, nil
}

// energyBurn is the TRX that energy may cost beyond the staked energy, with the margin: the dynamic energy factor may rise
// between the simulation and the block.
func (c *Client) energyBurn(p prices, r resources, energy, limit int64) int64 {
	wanted := decimal.NewFromInt(energy).Mul(c.config.Fees.Margin).Ceil().IntPart()
	return min(max(0, wanted-r.energy)*p.energy, limit)
}

func sun(n decimal.Decimal) money.Amount { return money.FromUnits(money.TRX, n.BigInt()) }

func sunOf(n int64) money.Amount { return money.FromUnits(money.TRX, big.NewInt(n)) }
