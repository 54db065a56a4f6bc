package main

import (
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

func ethereumEnvironment() map[string]string {
	env := productionEnvironment()
	env["ETHEREUM_RPC"] = "https://node.example/v3/key,wss://other.example"
	env["ETHEREUM_USDT"] = "0xdAC17F958D2ee523a2206206994597C13D831ec7"
	env["ETHEREUM_USDC"] = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
	env["SIGNER_CEILINGS"] = "USDT:20000,USDC:20000"
	return env
}

func TestEthereumIsOnWithItsNodes(t *testing.T) {
	c, err := load(t, ethereumEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	if err := checkEach(c, "chain-ethereum", "signer-ethereum"); err != nil {
		t.Fatal(err)
	}
	n := c.network(exchange.Ethereum)
	if !n.on || n.node != "node.example:443" || c.Ethereum.ChainID != 1 {
		t.Errorf("%+v", n)
	}
	client, err := n.open()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, a := range []money.Asset{money.ETH, money.USDT, money.USDC} {
		if err := client.Supports(a); err != nil {
			t.Error(err)
		}
	}
	fees, err := c.Ethereum.fees()
	if err != nil || fees.CapCeiling.String() != "0.000000300000000000" || fees.Most.String() != "0.050000000000000000" {
		t.Errorf("%+v, %v", fees, err)
	}
}

func TestEthereumRefuses(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"ETHEREUM_RPC", "http://node.example", "KIVUKO_ETHEREUM_RPC must be https or wss"},
		{"ETHEREUM_RPC", "https://node.example,ws://other.example", "KIVUKO_ETHEREUM_RPC must be https or wss"},
		{"ETHEREUM_USDT", "", "KIVUKO_ETHEREUM_USDT must be set"},
		{"ETHEREUM_DEVELOPMENT", "true", "KIVUKO_ETHEREUM_DEVELOPMENT must be off"},
		{"ETHEREUM_FEE_CEILING", "0", "KIVUKO_ETHEREUM_FEE_CEILING must be a decimal of ETH above zero"},
		{"ETHEREUM_GAS_CEILING", "1e3", "KIVUKO_ETHEREUM_GAS_CEILING must be a decimal of gwei above zero"},
		{"SIGNER_CEILINGS", "USDT:20000", "KIVUKO_SIGNER_CEILINGS must name USDC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := ethereumEnvironment()
			env[c.name] = c.value
			config, err := load(t, env)
			if err != nil {
				t.Fatal(err)
			}
			if err := config.check("signer-ethereum"); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}

// The address of a node may contain a provider's key, so no error may contain it.
func TestEthereumNodesStayOutOfErrors(t *testing.T) {
	env := ethereumEnvironment()
	env["ETHEREUM_RPC"] = "https://127.0.0.1:1/v3/0123456789abcdef"
	c, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	client, err := newEthereum(c.Ethereum)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Head(t.Context())
	if err == nil || strings.Contains(err.Error(), "0123456789abcdef") {
		t.Errorf("%v", err)
	}
}
