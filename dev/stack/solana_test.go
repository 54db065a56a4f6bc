package stack

import (
	"testing"

	"kivuko/dev/nodes/solana"
)

// Workers of Solana run only together with its node, and must then find it.
func TestSolanaEnvironment(t *testing.T) {
	s := &Stack{Addresses: Addresses{SolanaRPC: "127.0.0.1:8899"}}
	if s.Solana() || len(s.extra) > 0 {
		t.Error("a stack without Solana offers it")
	}
	s.solanaRuns()
	if !s.Solana() {
		t.Error("Solana is not said to run")
	}
	for name, want := range map[string]string{
		"SOLANA_RPC": "http://127.0.0.1:8899", "SOLANA_GENESIS": solana.GenesisHash().String(),
		"SOLANA_USDT": solana.USDTAddress, "SOLANA_USDC": solana.USDCAddress, "SOLANA_DEVELOPMENT": "true",
	} {
		if s.extra[name] != want {
			t.Errorf("%s is %q, want %q", name, s.extra[name], want)
		}
	}
}
