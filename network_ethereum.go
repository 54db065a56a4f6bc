package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/chain/ethereum"
	"kivuko/crash"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// ethereumBlockTime is the time between two slots of Ethereum.
const ethereumBlockTime = 12 * time.Second

// developmentHeadAge is how far the embedded chain's clock may run ahead: it may make many blocks at once,
// and their times are at least a second apart.
const developmentHeadAge = 2 * time.Hour

// EthereumConfig is the Ethereum network as this deployment sees it.
type EthereumConfig struct {
	// Addresses of nodes, used in this order. A secret, because providers put keys into them.
	RPC []string `env:"RPC" for:"api chain signer" need:"chain signer" production:"https or wss unless on this machine" secret:"true"`
	// The id of the chain.
	ChainID uint64 `env:"CHAIN_ID" envDefault:"1" for:"api chain signer cold-sign"`
	// The contract of USDT. Transfers of other contracts are ignored.
	USDT string `env:"USDT" for:"api chain signer cold-sign" need:"chain signer"`
	// The contract of USDC; without it USDC is not offered on the network.
	USDC string `env:"USDC" for:"api chain signer cold-sign"`
	// The maximum fee of one transaction, in ETH.
	FeeCeiling string `env:"FEE_CEILING" envDefault:"0.05" for:"api chain signer cold-sign"`
	// The maximum price of a unit of gas, in gwei. Above it payments wait.
	GasCeiling string `env:"GAS_CEILING" envDefault:"300" for:"api chain signer cold-sign"`
	// Whether the node is the one of this repository.
	Development bool `env:"DEVELOPMENT" for:"api chain signer" production:"off"`
	// The time between blocks of the node of this repository. Has no effect on others.
	Poll time.Duration `env:"POLL" for:"api chain signer"`
}

// ethereumNetwork returns Ethereum's entry of the table.
func (c Config) ethereumNetwork() network {
	n := network{
		name: exchange.Ethereum, on: len(c.Ethereum.RPC) > 0, variable: "KIVUKO_ETHEREUM_RPC", check: c.checkEthereum,
		open:    func() (driver, error) { return newEthereum(c.Ethereum) },
		address: wallets(ethereum.ParseAddress, c.Ethereum.tokens()), anyAddress: ethereum.ReadAddress,
		blockTime: ethereumBlockTime, tokens: c.Ethereum.tokens(),
	}
	if n.on {
		n.node = hostOf(c.Ethereum.RPC[0])
	}
	if c.Ethereum.Development && c.Ethereum.Poll > 0 {
		n.blockTime = c.Ethereum.Poll
	}
	return n
}

func (c Config) checkEthereum(n *need) {
	if _, err := c.Ethereum.fees(); err != nil {
		n.problems = append(n.problems, err.Error())
	}
	if c.Mode != Production {
		return
	}
	for _, a := range c.Ethereum.RPC {
		n.rule(strings.HasPrefix(a, "https://") || strings.HasPrefix(a, "wss://") || loopback(a),
			"KIVUKO_ETHEREUM_RPC must be https or wss: in production Ethereum nodes are reached over TLS unless they are on this machine")
	}
}

// fees reads the ceilings.
func (c EthereumConfig) fees() (ethereum.FeeRule, error) {
	most, err := money.Parse(money.ETH, c.FeeCeiling)
	if err != nil || !most.Positive() {
		return ethereum.FeeRule{}, fmt.Errorf("KIVUKO_ETHEREUM_FEE_CEILING must be a decimal of ETH above zero")
	}
	const gweiPlaces = 9 // a gwei is 10^-9 ETH
	price, err := money.ParseDecimal(c.GasCeiling, gweiPlaces)
	if err != nil || !price.IsPositive() {
		return ethereum.FeeRule{}, fmt.Errorf("KIVUKO_ETHEREUM_GAS_CEILING must be a decimal of gwei above zero")
	}
	return ethereum.FeeRule{Most: most, CapCeiling: gwei(price)}, nil
}

// gwei converts a price of a unit of gas to an amount of ETH.
func gwei(price decimal.Decimal) money.Amount {
	const weiPlaces = 9 // a gwei is 10^9 wei
	return money.FromUnits(money.ETH, price.Shift(weiPlaces).BigInt())
}

func newEthereum(c EthereumConfig) (*ethereum.Client, error) {
	fees, err := c.fees()
	if err != nil {
		return nil, err
	}
	config := ethereum.Config{ChainID: c.ChainID, Tokens: c.tokens(), Fees: fees, Transport: crash.Transport}
	for _, address := range c.RPC {
		config.Nodes = append(config.Nodes, ethereum.Endpoint{URL: address})
	}
	if c.Development {
		config.MaxHeadAge = developmentHeadAge
	}
	return ethereum.New(config)
}

func (c EthereumConfig) tokens() map[money.Asset]string {
	return stablecoins(len(c.RPC) > 0, c.USDT, c.USDC)
}
