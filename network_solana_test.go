package main

import (
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// solanaEnvironment adds Solana to the environment that production accepts.
func solanaEnvironment() map[string]string {
	env := productionEnvironment()
	env["SOLANA_RPC"] = "https://solana.example/v1/secret?key=secret,https://other.example"
	env["SOLANA_USDT"] = "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB"
	env["SOLANA_USDC"] = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"
	env["SIGNER_CEILINGS"] = "USDT:20000,USDC:20000"
	return env
}

func TestSolanaConfiguration(t *testing.T) {
	c, err := load(t, solanaEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	if err := checkEach(c, "chain-solana", "signer-solana"); err != nil {
		t.Fatal(err)
	}
	n := c.network(exchange.Solana)
	if !n.on || n.node != "solana.example:443" || n.blockTime != solanaPoll {
		t.Errorf("the entry of the table is %+v", n)
	}
	client, err := n.open()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if client.Network() != exchange.Solana || client.Supports(money.USDT) != nil || client.Supports(money.USDC) != nil {
		t.Errorf("the driver is of %s", client.Network())
	}
	payable, all := c.addresses()
	check := payable[exchange.Solana]
	if got, err := check("7v91N7iZ9mNicL8WfG6cgSCKyRXydQjLh6UYBWwm6y1Q"); err != nil || got != "7v91N7iZ9mNicL8WfG6cgSCKyRXydQjLh6UYBWwm6y1Q" {
		t.Errorf("a wallet is read as %q (%v)", got, err)
	}
	for what, bad := range map[string]string{
		"a token account": "EDNd1ycsydWYwVmrYZvqYazFqwk1QjBgAUKFjBoz1jKP", "a mint": "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB",
	} {
		if _, err := check(bad); exchange.CodeOf(err) != exchange.CodeInvalid {
			t.Errorf("%s is accepted: %v", what, err)
		}
		if got, err := all[exchange.Solana](bad); err != nil || got != bad {
			t.Errorf("%s is read as %q (%v)", what, got, err)
		}
	}
}

func TestSolanaRefusesConfigurations(t *testing.T) {
	for name, q := range map[string]struct{ variable, value, want string }{
		"without TLS":           {"SOLANA_RPC", "http://solana.example/secret", "KIVUKO_SOLANA_RPC must be https"},
		"the embedded chain":    {"SOLANA_DEVELOPMENT", "true", "KIVUKO_SOLANA_DEVELOPMENT must be off"},
		"no mint":               {"SOLANA_USDT", "", "KIVUKO_SOLANA_USDT"},
		"a ceiling of nothing":  {"SOLANA_FEE_CEILING", "0", "KIVUKO_SOLANA_FEE_CEILING must be"},
		"a ceiling in words":    {"SOLANA_FEE_CEILING", "much", "KIVUKO_SOLANA_FEE_CEILING must be"},
		"a price of nothing":    {"SOLANA_PRICE_CEILING", "0", "KIVUKO_SOLANA_PRICE_CEILING must be"},
		"a network that is off": {"SOLANA_RPC", "", "KIVUKO_SOLANA_RPC turns it on"},
	} {
		t.Run(name, func(t *testing.T) {
			env := solanaEnvironment()
			env[q.variable] = q.value
			c, err := load(t, env)
			if err == nil {
				err = c.check("chain-solana", "signer-solana")
			}
			if err == nil || !strings.Contains(err.Error(), q.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}
