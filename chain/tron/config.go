// Package tron is the driver of the TRON network over java-tron's gRPC.
//
// Transactions are built here, byte for byte, and never by a node, so that no node can change what is signed. Nodes supply
// only facts: blocks, balances, the price of energy, the result of a call. A block is final when a solidity node has it (19
// of the 27 producers have built on it); full nodes supply what is newer.
package tron

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/shopspring/decimal"
	"google.golang.org/grpc"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Defaults of Config.
const (
	// DefaultTransactionLife is long enough to queue and rebroadcast, and short enough that a customer does not wait too
	// long for a lost transaction to be given up. TRON allows at most 24 hours.
	DefaultTransactionLife = 10 * time.Minute
	// DefaultCallTimeout bounds one query to one node.
	DefaultCallTimeout = 10 * time.Second
	// DefaultMaxHeadAge is how old the newest block of a node may be before the node counts as
	// behind. Blocks come every three seconds.
	DefaultMaxHeadAge = 2 * time.Minute
	// DefaultRetryAfter is how long a failed node is queried last.
	DefaultRetryAfter = 15 * time.Second
)

// Bounds of Config.
const (
	minTransactionLife = time.Minute
	// maxTransactionLife is below the 24 hours of java-tron's Constant.MAXIMUM_TIME_UNTIL_EXPIRATION.
	maxTransactionLife = 23 * time.Hour
	maxNodes           = 8
	maxMessageBytes    = 64 << 20 // the receipts of a full block with many logs exceed gRPC's default of 4 MB
)

// usdcStopped is the error of Supports for USDC while it is off. Circle stopped minting USDC on TRON in February 2024 and
// ended redemption in February 2025.
const usdcStopped = "USDC is not offered on TRON: its issuer stopped it there in 2024 and no longer redeems it"

// Endpoint is one node's gRPC address.
type Endpoint struct {
	Address string // host:port
	TLS     bool
	APIKey  string // sent as TRON-PRO-API-KEY metadata, for TronGrid
}

// String is only the address, so that a key never reaches a log.
func (e Endpoint) String() string { return e.Address }

// Format is only the address, for every verb.
func (e Endpoint) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.Address) }

// LogValue is only the address.
func (e Endpoint) LogValue() slog.Value { return slog.StringValue(e.Address) }

// MarshalText is only the address.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.Address), nil }

// FeeRule turns the energy of a simulation into a fee limit. On TRON the limit also caps staked energy, and a transaction
// that exceeds it pays all of it and moves nothing. So the limit is above the estimate. It is not far above: the house must
// have all of it in the wallet, where what is not burnt stays. A cap protects the wallet from a hostile or upgraded contract.
type FeeRule struct {
	Margin decimal.Decimal // factor over the simulated cost; 1.4 when zero
	Floor  money.Amount    // least fee limit in TRX; 1 when zero
	Cap    money.Amount    // the highest fee limit in TRX; 100 when zero
}

// Config configures a Client.
type Config struct {
	FullNodes     []Endpoint
	SolidityNodes []Endpoint
	// Tokens has the base58 contract address of each token.
	Tokens map[money.Asset]string
	// USDCEnabled must be set to hold or send USDC, because its issuer stopped it on TRON.
	USDCEnabled     bool
	TransactionLife time.Duration
	Fees            FeeRule
	CallTimeout     time.Duration
	MaxHeadAge      time.Duration
	RetryAfter      time.Duration
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Dial are further options of the connections to nodes.
	Dial []grpc.DialOption
}

// withDefaults fills in zero fields.
func (c Config) withDefaults() Config {
	orDuration(&c.TransactionLife, DefaultTransactionLife)
	orDuration(&c.CallTimeout, DefaultCallTimeout)
	orDuration(&c.MaxHeadAge, DefaultMaxHeadAge)
	orDuration(&c.RetryAfter, DefaultRetryAfter)
	if c.Fees.Margin.IsZero() {
		c.Fees.Margin = decimal.RequireFromString("1.4")
	}
	if c.Fees.Floor.IsZero() {
		c.Fees.Floor = money.Must(money.TRX, "1")
	}
	if c.Fees.Cap.IsZero() {
		c.Fees.Cap = money.Must(money.TRX, "100")
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
	case len(c.FullNodes) == 0 || len(c.FullNodes) > maxNodes:
		return fmt.Errorf("tron: FullNodes: between 1 and %d addresses are needed, got %d", maxNodes, len(c.FullNodes))
	case len(c.SolidityNodes) == 0 || len(c.SolidityNodes) > maxNodes:
		return fmt.Errorf("tron: SolidityNodes: between 1 and %d addresses are needed, got %d", maxNodes, len(c.SolidityNodes))
	case c.TransactionLife < minTransactionLife || c.TransactionLife > maxTransactionLife:
		return fmt.Errorf("tron: TransactionLife: must be between %s and %s, got %s", minTransactionLife, maxTransactionLife, c.TransactionLife)
	case c.CallTimeout < 0 || c.MaxHeadAge < 0 || c.RetryAfter < 0:
		return fmt.Errorf("tron: CallTimeout, MaxHeadAge and RetryAfter must not be negative")
	case c.Fees.Margin.LessThan(decimal.NewFromInt(1)):
		return fmt.Errorf("tron: Fees.Margin: must be at least 1, got %s", c.Fees.Margin)
	case c.Fees.Floor.Asset() != money.TRX || c.Fees.Cap.Asset() != money.TRX || c.Fees.Floor.Cmp(c.Fees.Cap) > 0:
		return fmt.Errorf("tron: Fees: Floor and Cap must be in TRX and Floor at most Cap")
	}
	for _, e := range append(append([]Endpoint(nil), c.FullNodes...), c.SolidityNodes...) {
		if e.Address == "" {
			return fmt.Errorf("tron: a node's address is empty")
		}
	}
	return nil
}

// Supports returns why the asset can't be held or sent as configured, or nil.
func (c *Client) Supports(a money.Asset) error {
	if a == exchange.Tron.NativeCoin() {
		return nil
	}
	if a == money.USDC && !c.config.USDCEnabled {
		return chain.Errorf(chain.ReasonUnsupported, usdcStopped)
	}
	if _, ok := c.contracts[a]; !ok {
		return chain.Errorf(chain.ReasonUnsupported, "%s has no contract on TRON in this configuration", string(a))
	}
	return nil
}
