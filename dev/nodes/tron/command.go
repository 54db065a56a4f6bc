package tron

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"kivuko/dev/nodes/devnode"
)

// Run starts a node, prints one line "READY ..." with its addresses to out once
// it serves, and returns when ctx is done.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	n, err := New(cfg)
	if err != nil {
		return err
	}
	return devnode.Run(ctx, n, out, func() string {
		return fmt.Sprintf("grpc=%s solidity=%s http=http://%s control=http://%s usdt=%s usdc=%s chain_id=%d",
			n.GRPCAddr(), n.SolidityAddr(), n.HTTPAddr(), n.ControlAddr(), USDTAddress, USDCAddress, n.ChainID())
	})
}

// Command runs a node from command line arguments until ctx is done.
func Command(ctx context.Context, args []string) error {
	cfg := Config{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags := flag.NewFlagSet("tron", flag.ContinueOnError)
	flags.StringVar(&cfg.DataDir, "data", "", "data directory; empty keeps the chain in memory")
	flags.StringVar(&cfg.GRPCAddr, "grpc", "127.0.0.1:50051", "address of the Wallet service")
	flags.StringVar(&cfg.SolidityAddr, "solidity", "127.0.0.1:50061", "address of the WalletSolidity service")
	flags.StringVar(&cfg.HTTPAddr, "http", "127.0.0.1:8090", "address of the HTTP API")
	flags.StringVar(&cfg.ControlAddr, "control", "127.0.0.1:8091", "address of the fault switches")
	flags.DurationVar(&cfg.BlockInterval, "interval", DefaultBlockInterval, "time between blocks; 0 makes none by itself")
	flags.Int64Var(&cfg.USDTEnergyFactor, "usdt-energy-factor", DefaultUSDTEnergyFactor,
		"dynamic energy factor of USDT on a new chain, in ten-thousandths above 1.0")
	if err := devnode.Parse(flags, args); err != nil {
		return err
	}
	return Run(ctx, cfg, os.Stdout)
}
