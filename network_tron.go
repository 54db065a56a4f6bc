package main

import (
	"time"

	"kivuko/chain/tron"
	"kivuko/crash"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// tronBlockTime is the time between two blocks of TRON.
const tronBlockTime = 3 * time.Second

// TronConfig is the TRON network as this deployment sees it.
type TronConfig struct {
	// Full nodes (host and port), used in this order.
	FullNodes []string `env:"GRPC" for:"api chain signer" need:"chain signer"`
	// Solidity nodes (host and port), which know only final blocks.
	SolidityNodes []string `env:"SOLIDITY_GRPC" for:"api chain signer" need:"chain signer"`
	// Whether the nodes are reached over TLS.
	TLS bool `env:"TLS" for:"api chain signer" production:"required unless all nodes are on this machine"`
	// The API key, for a provider that requires one.
	APIKey string `env:"API_KEY" for:"api chain signer" secret:"true"`
	// The contract of USDT.
	USDT string `env:"USDT" for:"api chain signer cold-sign" need:"chain signer"`
	// The contract of USDC.
	USDC string `env:"USDC" for:"api chain signer cold-sign"`
	// Offers USDC on TRON too. Its issuer left TRON in 2024, so wallets, offers, orders, transfers and swaps that name it are refused
	// unless this is true.
	USDCEnabled bool `env:"USDC_ENABLED" for:"api flows chain signer cold-sign"`
	// How long a block may include a signed transaction: a minute to 23 hours.
	Life time.Duration `env:"TRANSACTION_LIFE" envDefault:"10m" for:"api chain signer"`
	// Whether the node is the one of this repository.
	Development bool `env:"DEVELOPMENT" for:"api chain signer" production:"off"`
	// The time between blocks of the node of this repository. Has no effect on others.
	Poll time.Duration `env:"POLL" for:"api chain signer"`
}

// tronNetwork returns TRON's entry of the table.
func (c Config) tronNetwork() network {
	n := network{
		name: exchange.Tron, on: len(c.Tron.FullNodes) > 0, variable: "KIVUKO_TRON_GRPC", check: c.checkTron,
		open:    func() (driver, error) { return newTron(c.Tron) },
		address: wallets(tron.ParseAddress, c.Tron.tokens()), anyAddress: tron.ReadAddress,
		blockTime: tronBlockTime, life: c.Tron.Life, tokens: c.Tron.tokens(),
	}
	if !c.Tron.USDCEnabled {
		n.stopped = map[money.Asset]string{money.USDC: "its issuer has stopped it there"}
	}
	if n.on {
		n.node = c.Tron.FullNodes[0]
	}
	if c.Tron.Development && c.Tron.Poll > 0 {
		n.blockTime = c.Tron.Poll
	}
	return n
}

func (c Config) checkTron(n *need) {
	n.rule(c.Mode != Production || c.Tron.TLS || allLoopback(c.Tron.FullNodes, c.Tron.SolidityNodes),
		"KIVUKO_TRON_TLS must be true: in production TRON nodes are reached over TLS unless they are on this machine")
}

func newTron(c TronConfig) (*tron.Client, error) {
	endpoints := func(addresses []string) []tron.Endpoint {
		out := make([]tron.Endpoint, len(addresses))
		for i, a := range addresses {
			out[i] = tron.Endpoint{Address: a, TLS: c.TLS, APIKey: c.APIKey}
		}
		return out
	}
	return tron.New(tron.Config{
		FullNodes: endpoints(c.FullNodes), SolidityNodes: endpoints(c.SolidityNodes), Tokens: c.tokens(),
		USDCEnabled: c.USDCEnabled, TransactionLife: c.Life, Dial: crash.Dial(),
	})
}

func (c TronConfig) tokens() map[money.Asset]string {
	return stablecoins(len(c.FullNodes) > 0, c.USDT, c.USDC)
}
