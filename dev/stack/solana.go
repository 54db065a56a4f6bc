package stack

import (
	"context"
	"fmt"
	"path/filepath"

	"kivuko/dev/nodes/solana"
	"kivuko/dev/nodes/solana/programs"
	"kivuko/dev/supervisor"
	"kivuko/exchange"
)

// solanaPoll is the interval at which the local workers poll a transaction of Solana. They count the blocks to
// finality with it, so it equals the node's block interval.
const solanaPoll = solana.DefaultSlotInterval

// Solana reports whether the Solana node runs. Its token programs are not part of Kivuko and may be
// unavailable.
func (s *Stack) Solana() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.solana
}

// solanaPrograms gets the token programs and returns their directory.
func (s *Stack) solanaPrograms(ctx context.Context) (dir string, err error) {
	if dir, err = programs.CacheDir(); err != nil {
		return "", err
	}
	if s.FetchPrograms {
		_, err = programs.Get(ctx, programs.Options{Dir: dir, Progress: s.Out})
	} else {
		_, err = programs.Cached(dir)
	}
	return dir, err
}

// startSolana gets the token programs, starts the node and configures the product for it. Without the
// programs the stack prints why and runs without Solana.
func startSolana(ctx context.Context, s *Stack) error {
	if s.lacks(exchange.Solana) {
		return nil
	}
	dir, err := s.solanaPrograms(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.Supervisor.Say("%v; the stack runs without Solana", err)
		s.Note("Solana node", "none, because its programs are not available")
		return nil
	}
	_, err = s.Supervisor.Start(ctx, supervisor.Spec{
		Name: ProcessSolana,
		Path: s.Self,
		Args: append([]string{
			"solana", "--rpc", s.Addresses.SolanaRPC, "--ws", s.Addresses.SolanaWS, "--control", s.Addresses.SolanaControl,
			"--data", filepath.Join(s.State, "solana"), "--programs", dir,
		}, s.SolanaFlags...),
		Env: s.baseEnvironment(),
		// The node starts its fault switches last.
		Ready: supervisor.HTTP("http://" + s.Addresses.SolanaControl + "/state"),
	})
	if err != nil {
		return err
	}
	s.solanaRuns()
	s.Note("Solana node", fmt.Sprintf("http://%s, ws://%s", s.Addresses.SolanaRPC, s.Addresses.SolanaWS))
	return nil
}

// solanaRuns configures the product for the node.
func (s *Stack) solanaRuns() {
	for name, value := range map[string]string{
		"SOLANA_RPC":         "http://" + s.Addresses.SolanaRPC,
		"SOLANA_GENESIS":     solana.GenesisHash().String(),
		"SOLANA_USDT":        solana.USDTAddress,
		"SOLANA_USDC":        solana.USDCAddress,
		"SOLANA_DEVELOPMENT": "true",
		"SOLANA_POLL":        solanaPoll.String(),
	} {
		s.SetEnvironment(name, value)
	}
	s.mu.Lock()
	s.solana = true
	s.mu.Unlock()
}
