package main

import (
	"fmt"
	"strings"
	"time"

	"kivuko/chain/solana"
	"kivuko/crash"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// solanaPoll is the wait between two checks of a transaction, and between two submissions of the same bytes. A slot takes
// 0.4 seconds, and nodes drop submitted transactions silently.
const solanaPoll = 2 * time.Second

// solanaLife is for how many blocks a transaction may be included after it was signed: the 150 of a blockhash,
// and some more because nodes may name a later one.
const solanaLife = 200

// SolanaConfig is the Solana network as this deployment sees it.
type SolanaConfig struct {
	// Addresses of nodes, used in this order. A secret, because providers put keys into them.
	RPC []string `env:"RPC" for:"api chain signer" need:"chain signer" production:"https unless on this machine" secret:"true"`
	// The genesis hash of the cluster; mainnet's by default.
	Genesis string `env:"GENESIS" for:"api chain signer cold-sign"`
	// The mint of USDT.
	USDT string `env:"USDT" for:"api chain signer cold-sign" need:"chain signer"`
	// The mint of USDC; without it USDC is not offered on the network.
	USDC string `env:"USDC" for:"api chain signer cold-sign"`
	// The maximum cost of one transaction, with the rent of a recipient's new token account, in SOL.
	FeeCeiling string `env:"FEE_CEILING" envDefault:"0.01" for:"api chain signer cold-sign"`
	// The maximum price of a compute unit, in micro-lamports. When the network's price is higher, payments take longer.
	PriceCeiling uint64 `env:"PRICE_CEILING" envDefault:"1000000" for:"api chain signer cold-sign"`
	// Whether the node is the one of this repository.
	Development bool `env:"DEVELOPMENT" for:"api chain signer" production:"off"`
	// The polling interval for the node of this repository. Has no effect on others.
	Poll time.Duration `env:"POLL" for:"api chain signer"`
}

// solanaNetwork returns Solana's entry of the table.
func (c Config) solanaNetwork() network {
	n := network{
		name: exchange.Solana, on: len(c.Solana.RPC) > 0, variable: "KIVUKO_SOLANA_RPC", check: c.checkSolana,
		open:    func() (driver, error) { return newSolana(c.Solana) },
		address: wallets(solana.ParseAddress, c.Solana.tokens()), anyAddress: solana.ReadAddress,
		blockTime: solanaPoll, lifeBlocks: solanaLife, tokens: c.Solana.tokens(),
	}
	if n.on {
		n.node = hostOf(c.Solana.RPC[0])
	}
	if c.Solana.Development && c.Solana.Poll > 0 {
		n.blockTime = c.Solana.Poll
	}
	return n
}

func (c Config) checkSolana(n *need) {
	if _, err := c.Solana.fees(); err != nil {
		n.problems = append(n.problems, err.Error())
	}
	if c.Mode != Production {
		return
	}
	for _, a := range c.Solana.RPC {
		n.rule(strings.HasPrefix(a, "https://") || loopback(a),
			"KIVUKO_SOLANA_RPC must be https: in production Solana nodes are reached over TLS unless they are on this machine")
	}
}

// fees reads the ceilings.
func (c SolanaConfig) fees() (solana.FeeRule, error) {
	most, err := money.Parse(money.SOL, c.FeeCeiling)
	if err != nil || !most.Positive() {
		return solana.FeeRule{}, fmt.Errorf("KIVUKO_SOLANA_FEE_CEILING must be a decimal of SOL above zero")
	}
	if c.PriceCeiling == 0 {
		return solana.FeeRule{}, fmt.Errorf("KIVUKO_SOLANA_PRICE_CEILING must be a whole number of micro-lamports above zero")
	}
	return solana.FeeRule{Cap: most, PriceCeiling: c.PriceCeiling, PriceFloor: min(solana.DefaultPriceFloor, c.PriceCeiling)}, nil
}

func newSolana(c SolanaConfig) (*solana.Client, error) {
	fees, err := c.fees()
	if err != nil {
		return nil, err
	}
	config := solana.Config{Genesis: c.Genesis, Tokens: c.tokens(), Fees: fees, Transport: crash.Transport}
	if config.Genesis == "" {
		config.Genesis = solana.GenesisMainnet
	}
	for _, address := range c.RPC {
		config.Nodes = append(config.Nodes, solana.Endpoint{URL: address})
	}
	if c.Development {
		config.MaxHeadAge = developmentHeadAge
	}
	return solana.New(config)
}

func (c SolanaConfig) tokens() map[money.Asset]string {
	return stablecoins(len(c.RPC) > 0, c.USDT, c.USDC)
}
