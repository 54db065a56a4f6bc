package stack

import (
	"context"
	"fmt"
	"path/filepath"

	"kivuko/dev/nodes/ethereum/safe"
	"kivuko/dev/nodes/npm"
	"kivuko/dev/supervisor"
	"kivuko/exchange"
)

// safeContracts gets the contracts of accounts of several owners and returns their directory.
func (s *Stack) safeContracts(ctx context.Context) (dir string, err error) {
	if dir, err = safe.CacheDir(); err != nil {
		return "", err
	}
	if s.FetchPrograms {
		_, err = safe.Get(ctx, safe.Options{Dir: dir, Options: npm.Options{Progress: s.Out}})
	} else {
		_, err = safe.Cached(dir)
	}
	return dir, err
}

// Safe reports whether Ethereum has accounts of several owners. Their contracts are not part of Kivuko and may be unavailable.
func (s *Stack) Safe() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.safe
}

// startEthereum gets the contracts of Safe and starts the node. Without the contracts the stack prints why and runs without
// accounts of several owners on Ethereum; the next start with them puts them on the chain.
func startEthereum(ctx context.Context, s *Stack) error {
	if s.lacks(exchange.Ethereum) {
		return nil
	}
	var contracts []string
	dir, err := s.safeContracts(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		s.Supervisor.Say("%v; the stack runs without accounts of several owners on Ethereum", err)
	default:
		contracts = []string{"--contracts", dir}
		s.mu.Lock()
		s.safe = true
		s.mu.Unlock()
	}
	_, err = s.Supervisor.Start(ctx, supervisor.Spec{
		Name: ProcessEthereum,
		Path: s.Self,
		Args: append(append([]string{
			"ethereum", "--rpc", s.Addresses.EthereumRPC, "--control", s.Addresses.EthereumControl,
			"--data", filepath.Join(s.State, "ethereum"),
		}, contracts...), s.EthereumFlags...),
		Env: s.baseEnvironment(),
		// The node starts its fault switches last.
		Ready: supervisor.HTTP("http://" + s.Addresses.EthereumControl + "/state"),
	})
	s.Note("Ethereum node", fmt.Sprintf("http://%s, ws://%s", s.Addresses.EthereumRPC, s.Addresses.EthereumRPC))
	return err
}
