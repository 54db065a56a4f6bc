package solana

import (
	"math/big"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

var _ chain.Client = (*Client)(nil)

// Client is the driver of Solana. It is safe for concurrent use. Its memory (which node failed lately, which one proved its
// cluster) may be lost at any time without harm.
type Client struct {
	config Config
	nodes  *nodes
	mints  map[money.Asset]sdk.PublicKey
	assets map[sdk.PublicKey]money.Asset
}

// New makes a client. It connects at the first query.
func New(c Config) (*Client, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	mints, assets, err := chain.ReadTokens("solana", c.Tokens, readKey)
	if err != nil {
		return nil, err
	}
	return &Client{config: c, nodes: newNodes(c), mints: mints, assets: assets}, nil
}

// Close ends the idle connections.
func (c *Client) Close() {
	for _, n := range c.nodes.Nodes() {
		n.client.CloseIdleConnections()
	}
}

// Network is Solana.
func (c *Client) Network() exchange.Network { return exchange.Solana }

// Traits are those of Solana: another account may pay the fee, and there are no sequence numbers.
func (c *Client) Traits() chain.Traits { return chain.Traits{Sponsored: true} }

// lamports is an amount of SOL in its smallest unit.
func lamports(n uint64) money.Amount {
	return money.FromUnits(money.SOL, new(big.Int).SetUint64(n))
}

func units(a money.Asset, n uint64) money.Amount {
	return money.FromUnits(a, new(big.Int).SetUint64(n))
}
