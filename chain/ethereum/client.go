package ethereum

import (
	"github.com/ethereum/go-ethereum/common"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

var (
	_ chain.Client    = (*Client)(nil)
	_ chain.Sequenced = (*Client)(nil)
)

// Client is the driver of Ethereum. It is safe for concurrent use. Its memory (which node failed lately) may be lost at any
// time without harm.
type Client struct {
	config    Config
	nodes     *nodes
	contracts map[money.Asset]common.Address
	assets    map[common.Address]money.Asset
}

// New makes a client. It connects at the first query.
func New(c Config) (*Client, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	contracts, assets, err := chain.ReadTokens("ethereum", c.Tokens, parse)
	if err != nil {
		return nil, err
	}
	return &Client{config: c, nodes: newNodes(c), contracts: contracts, assets: assets}, nil
}

// Close ends the connections.
func (c *Client) Close() {
	for _, n := range c.nodes.Nodes() {
		n.close()
	}
}

// Network is Ethereum.
func (c *Client) Network() exchange.Network { return exchange.Ethereum }

// Traits are those of Ethereum: the sender pays and numbers its transactions.
func (c *Client) Traits() chain.Traits { return chain.Traits{Sequenced: true} }
