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
	FullNodes     []string      `env:"GRPC"`
	SolidityNodes []string      `env:"SOLIDITY_GRPC"`
	TLS           bool          `env:"TLS"`
	APIKey        string        `env:"API_KEY"`
	USDT          string        `env:"USDT"`
	USDC          string        `env:"USDC"`
	USDCEnabled   bool          `env:"USDC_ENABLED"`
	Life          time.Duration `env:"TRANSACTION_LIFE" envDefault:"10m"`
	Development   bool          `env:"DEVELOPMENT"` // the node is the embedded one
	Poll          time.Duration `env:"POLL"`        // its block time; development only
}

// tronNetwork is TRON's line of the table.
func (c Config) tronNetwork() network {
	n := network{
		name: exchange.Tron, on: len(c.Tron.FullNodes) > 0, variable: "KIVUKO_TRON_GRPC", check: c.checkTron,
		open:    func() (driver, error) { return newTron(c.Tron) },
		address: tron.ParseAddress, blockTime: tronBlockTime, life: c.Tron.Life, tokens: c.Tron.tokens(),
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
	n.rule(len(c.Tron.FullNodes) > 0, "KIVUKO_TRON_GRPC must be set")
	n.rule(len(c.Tron.SolidityNodes) > 0, "KIVUKO_TRON_SOLIDITY_GRPC must be set")
	n.set("KIVUKO_TRON_USDT", c.Tron.USDT)
	if c.Mode == Production {
		n.rule(c.Tron.TLS || allLoopback(c.Tron.FullNodes, c.Tron.SolidityNodes), "KIVUKO_TRON_TLS must be true: in production TRON nodes are reached over TLS unless they are on this machine")
		n.rule(!c.Tron.Development, "KIVUKO_TRON_DEVELOPMENT must be off in production: the embedded chain is not TRON")
	}
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
