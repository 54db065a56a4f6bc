package tron

import (
	"sync/atomic"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

var _ chain.Client = (*Client)(nil)

// Client is the driver of TRON. It is safe for concurrent use. Its memory (which node failed lately, the last timestamp) may
// be lost at any time without harm.
type Client struct {
	config    Config
	full      *nodes
	solid     *nodes
	contracts map[money.Asset]accountID
	assets    map[accountID]money.Asset
	// lastStamp is the timestamp of the newest transaction built here, in milliseconds. A TRON transaction has no sequence
	// number, so only the timestamp distinguishes two equal payments.
	lastStamp atomic.Int64
}

// New makes a client. It connects at the first query.
func New(c Config) (*Client, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	contracts, assets, err := chain.ReadTokens("tron", c.Tokens, parse)
	if err != nil {
		return nil, err
	}
	full, err := dial("full", c.FullNodes, c.CallTimeout, c.RetryAfter, c.Dial)
	if err != nil {
		return nil, err
	}
	solid, err := dial("solidity", c.SolidityNodes, c.CallTimeout, c.RetryAfter, c.Dial)
	if err != nil {
		hangUp(full.Nodes())
		return nil, err
	}
	return &Client{config: c, full: full, solid: solid, contracts: contracts, assets: assets}, nil
}

// Close ends the connections.
func (c *Client) Close() {
	hangUp(c.full.Nodes())
	hangUp(c.solid.Nodes())
}

// Network is TRON.
func (c *Client) Network() exchange.Network { return exchange.Tron }

// Traits are those of TRON: the sender pays, and there are no sequence numbers.
func (c *Client) Traits() chain.Traits { return chain.Traits{} }

// stamp returns a timestamp that is unique in this process, in milliseconds, never behind the clock. The network does not
// check it.
func (c *Client) stamp() int64 {
	for {
		last := c.lastStamp.Load()
		next := max(c.config.Now().UnixMilli(), last+1)
		if c.lastStamp.CompareAndSwap(last, next) {
			return next
		}
	}
}
