// Package solana is the driver of the Solana network over JSON-RPC.
//
// Transactions are built here, byte for byte, with our own compiler, because the library's compiler gives accounts wrong
// privileges when one appears twice. Nodes supply only facts: blocks, accounts, the result of a simulation, the status of a
// signature. Movements are read from the balances before and after a transaction, never from its instructions or logs, which
// miss transfers that programs make.
//
// Block numbers are slots. A transaction expires by block height, which is smaller, because slots may have no block.
//
// An account of several owners is a multisig account of the Token program, which owns token accounts as a wallet does. Its
// payments live by a nonce account and name the owners who sign them.
//
// A wallet address represents its associated token accounts: balances, deposits and payments are theirs. Other token
// accounts of the same owner are separate accounts with their own addresses.
package solana

import (
	"fmt"
	"net/http"
	"time"

	"kivuko/chain"
	"kivuko/chain/endpoints"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Defaults of Config.
const (
	// DefaultPriceFloor is the least bid for a unit of computation, in micro-lamports.
	DefaultPriceFloor = 1_000
	// DefaultPriceCeiling is the most.
	DefaultPriceCeiling = 1_000_000
	// DefaultCallTimeout bounds one query to one node, which may take several calls.
	DefaultCallTimeout = 15 * time.Second
	// DefaultMaxHeadAge is how old the newest confirmed block of a node may be before the node counts
	// as behind.
	DefaultMaxHeadAge = time.Minute
	// DefaultRetryAfter is how long a failed node is queried last.
	DefaultRetryAfter = 15 * time.Second
	// DefaultMinHistory is about a day of slots.
	DefaultMinHistory = 216_000
)

// maxNodes bounds the number of nodes, all of which receive each broadcast.
const maxNodes = 8

// Genesis hashes of the public clusters, as getGenesisHash returns them (docs.anza.xyz, "Clusters").
const (
	GenesisMainnet = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
	GenesisDevnet  = "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG"
)

// Endpoint is one node's address: http or https.
type Endpoint = endpoints.Endpoint

// FeeRule bounds the cost of a transaction. Prices are in micro-lamports (10^-15 SOL) for a unit of computation.
type FeeRule struct {
	PriceFloor   uint64 // least bid; DefaultPriceFloor when zero
	PriceCeiling uint64 // the highest bid, however busy the network is; DefaultPriceCeiling when zero
	// Cap is the most that one transaction may cost with the rent of a new token account; 0.01 SOL
	// when zero.
	Cap money.Amount
}

// Config configures a Client.
type Config struct {
	Nodes []Endpoint
	// Genesis is the hash that identifies the cluster. Nodes of another one are not used.
	Genesis string
	// Tokens has the base58 address of each token's mint.
	Tokens map[money.Asset]string
	Fees   FeeRule
	// MinHistory is for how many slots a node must keep transactions, so that its "not found" is trusted. It must be longer
	// than a payment may stay unattended.
	MinHistory  uint64
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
	orDefault(&c.CallTimeout, DefaultCallTimeout)
	orDefault(&c.MaxHeadAge, DefaultMaxHeadAge)
	orDefault(&c.RetryAfter, DefaultRetryAfter)
	orDefault(&c.MinHistory, DefaultMinHistory)
	orDefault(&c.Fees.PriceFloor, DefaultPriceFloor)
	orDefault(&c.Fees.PriceCeiling, DefaultPriceCeiling)
	if c.Fees.Cap.IsZero() {
		c.Fees.Cap = money.Must(money.SOL, "0.01")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func orDefault[T time.Duration | uint64](v *T, fallback T) {
	if *v == 0 {
		*v = fallback
	}
}

// check refuses a configuration that could not work or could lose money.
func (c Config) check() error {
	switch {
	case len(c.Nodes) == 0 || len(c.Nodes) > maxNodes:
		return fmt.Errorf("solana: Nodes: between 1 and %d addresses are needed, got %d", maxNodes, len(c.Nodes))
	case c.CallTimeout < 0 || c.MaxHeadAge < 0 || c.RetryAfter < 0:
		return fmt.Errorf("solana: CallTimeout, MaxHeadAge and RetryAfter must not be negative")
	case c.Fees.PriceFloor > c.Fees.PriceCeiling:
		return fmt.Errorf("solana: Fees: PriceFloor must be at most PriceCeiling")
	case c.Fees.Cap.Asset() != money.SOL || !c.Fees.Cap.Positive():
		return fmt.Errorf("solana: Fees.Cap: must be a positive amount of SOL")
	}
	if _, err := readHash(c.Genesis); err != nil {
		return fmt.Errorf("solana: Genesis: must be the 32-byte hash of the cluster in base58")
	}
	for i, e := range c.Nodes {
		if !e.Check("http", "https") {
			return fmt.Errorf("solana: Nodes[%d]: must be an http or https address", i)
		}
	}
	return nil
}

// Supports returns why the asset can't be held or sent as configured, or nil.
func (c *Client) Supports(a money.Asset) error {
	if a == exchange.Solana.NativeCoin() {
		return nil
	}
	if _, ok := c.mints[a]; !ok {
		return chain.Errorf(chain.ReasonUnsupported, "%s has no mint on Solana in this configuration", string(a))
	}
	return nil
}
