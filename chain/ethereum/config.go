// Package ethereum is the driver of the Ethereum network over its nodes' JSON-RPC.
//
// Transactions are built here, byte for byte, and never by a node, so that no node can change what is signed. Nodes supply
// only facts: blocks, balances, fees, the result of a call. Final is the block that nodes call "finalized" (justified twice
// by the validators, some thirteen minutes old on the main network). "safe" is not used, because its meaning differs between
// providers.
//
// Every sender numbers its transactions without gaps. Of two with one number only one is ever included, and a higher bid
// replaces a lower one in a node's pool.
package ethereum

import (
	"fmt"
	"math/big"
	"net/http"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/chain"
	"kivuko/chain/endpoints"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Defaults of Config.
const (
	// DefaultCallTimeout bounds the related queries to one node.
	DefaultCallTimeout = 10 * time.Second
	// DefaultMaxHeadAge is how old the newest block of a node may be before the node counts as
	// behind. Blocks come every twelve seconds, and a slot may stay empty.
	DefaultMaxHeadAge = 2 * time.Minute
	// DefaultRetryAfter is how long a failed node is queried last.
	DefaultRetryAfter = 15 * time.Second
)

const maxNodes = 8

// Endpoint is one node's address: http, https, ws or wss.
type Endpoint = endpoints.Endpoint

// FeeRule bounds a transaction's bid. Amounts are in ETH; those per unit of gas are tiny.
type FeeRule struct {
	// TipFloor is the least priority fee per gas, TipCeiling the most; 0.1 and 10 gwei when zero.
	TipFloor   money.Amount
	TipCeiling money.Amount
	// CapCeiling is the highest total price of a unit of gas; 300 gwei when zero.
	CapCeiling money.Amount
	// Most is the highest possible cost of one transaction; 0.05 ETH when zero.
	Most money.Amount
	// Margin is the factor over the estimated gas of a contract call; 1.25 when zero. Unused gas costs nothing, and a call
	// that runs out of gas pays all of it and moves nothing.
	Margin decimal.Decimal
}

// Config configures a Client.
type Config struct {
	// ChainID is the network's (1 for the main network). Nodes of another chain are not used, and no other chain accepts the
	// signed transactions.
	ChainID uint64
	Nodes   []Endpoint
	// Tokens has the contract address of each token.
	Tokens      map[money.Asset]string
	Fees        FeeRule
	CallTimeout time.Duration
	MaxHeadAge  time.Duration
	RetryAfter  time.Duration
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Transport, if set, wraps the connections to nodes.
	Transport func(http.RoundTripper) http.RoundTripper
}

// withDefaults fills in zero fields.
func (c Config) withDefaults() Config {
	orDuration(&c.CallTimeout, DefaultCallTimeout)
	orDuration(&c.MaxHeadAge, DefaultMaxHeadAge)
	orDuration(&c.RetryAfter, DefaultRetryAfter)
	for _, d := range []struct {
		field    *money.Amount
		fallback string
		bound    *money.Amount // upper limit of the default
	}{
		{&c.Fees.CapCeiling, "0.0000003", nil},
		{&c.Fees.TipCeiling, "0.00000001", &c.Fees.CapCeiling},
		{&c.Fees.TipFloor, "0.0000000001", &c.Fees.TipCeiling},
		{&c.Fees.Most, "0.05", nil},
	} {
		if !d.field.IsZero() {
			continue
		}
		*d.field = money.Must(money.ETH, d.fallback)
		if d.bound != nil && d.bound.Asset() == money.ETH && d.bound.Cmp(*d.field) < 0 {
			*d.field = *d.bound
		}
	}
	if c.Fees.Margin.IsZero() {
		c.Fees.Margin = decimal.RequireFromString("1.25")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func orDuration(d *time.Duration, fallback time.Duration) {
	if *d == 0 {
		*d = fallback
	}
}

// check refuses a configuration that could not work or could lose money.
func (c Config) check() error {
	switch {
	case c.ChainID == 0:
		return fmt.Errorf("ethereum: ChainID: must be given (1 for the main network)")
	case len(c.Nodes) == 0 || len(c.Nodes) > maxNodes:
		return fmt.Errorf("ethereum: Nodes: between 1 and %d addresses are needed, got %d", maxNodes, len(c.Nodes))
	case c.CallTimeout < 0 || c.MaxHeadAge < 0 || c.RetryAfter < 0:
		return fmt.Errorf("ethereum: CallTimeout, MaxHeadAge and RetryAfter must not be negative")
	case c.Fees.Margin.LessThan(decimal.NewFromInt(1)):
		return fmt.Errorf("ethereum: Fees.Margin: must be at least 1, got %s", c.Fees.Margin)
	}
	for _, a := range []money.Amount{c.Fees.TipFloor, c.Fees.TipCeiling, c.Fees.CapCeiling, c.Fees.Most} {
		if a.Asset() != money.ETH || !a.Positive() {
			return fmt.Errorf("ethereum: Fees: every amount must be in ETH and above zero")
		}
	}
	if c.Fees.TipFloor.Cmp(c.Fees.TipCeiling) > 0 || c.Fees.TipCeiling.Cmp(c.Fees.CapCeiling) > 0 {
		return fmt.Errorf("ethereum: Fees: TipFloor <= TipCeiling <= CapCeiling must hold")
	}
	for _, e := range c.Nodes {
		if !e.Check("http", "https", "ws", "wss") {
			return fmt.Errorf("ethereum: Nodes: an address must be a URL of http, https, ws or wss")
		}
	}
	return nil
}

// Supports returns why the asset can't be held or sent as configured, or nil.
func (c *Client) Supports(a money.Asset) error {
	if a == exchange.Ethereum.NativeCoin() {
		return nil
	}
	if _, ok := c.contracts[a]; !ok {
		return chain.Errorf(chain.ReasonUnsupported, "%s has no contract on Ethereum in this configuration", string(a))
	}
	return nil
}

// chainID is the configured id in the type that the encodings need.
func (c *Client) chainID() *big.Int { return new(big.Int).SetUint64(c.config.ChainID) }
