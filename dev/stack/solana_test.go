package stack

import (
	"io"
	"slices"
	"testing"

	"kivuko/dev/postgres"
	"kivuko/dev/solana"
)

// Workers of Solana run only beside its node, and then they must find it.
func TestSolanaEnvironment(t *testing.T) {
	s := &Stack{Options: Options{State: t.TempDir(), Out: io.Discard}, Postgres: &postgres.Server{}}
	s.Addresses.SolanaRPC = "127.0.0.1:8899"
	if slices.Contains(s.ProductEnvironment(ProcessAPI), "KIVUKO_SOLANA_RPC=http://127.0.0.1:8899") {
		t.Error("a stack without Solana offers it")
	}
	s.solanaRuns()
	for _, want := range []string{
		"KIVUKO_SOLANA_RPC=http://127.0.0.1:8899", "KIVUKO_SOLANA_GENESIS=" + solana.GenesisHash().String(),
		"KIVUKO_SOLANA_USDT=" + solana.USDTAddress, "KIVUKO_SOLANA_USDC=" + solana.USDCAddress, "KIVUKO_SOLANA_DEVELOPMENT=true",
	} {
		if !slices.Contains(s.ProductEnvironment(ProcessWorker("chain-solana")), want) {
			t.Errorf("%s is missing", want)
		}
	}
	if !s.Solana() {
		t.Error("Solana is not said to run")
	}
}
