package ethereum

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"kivuko/dev/nodes/devnode"
	"kivuko/dev/nodes/ethereum/safe"
)

// Run starts a node, prints one line "READY ..." with its addresses to out once it serves, and
// returns when ctx is done.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	n, err := New(cfg)
	if err != nil {
		return err
	}
	return devnode.Run(ctx, n, out, func() string {
		return fmt.Sprintf("rpc=http://%s ws=ws://%s control=http://%s usdt=%s usdc=%s chain_id=%d",
			n.RPCAddr(), n.RPCAddr(), n.ControlAddr(), USDTAddress(), USDCAddress(), uint64(ChainID))
	})
}

// Command runs a node from command line arguments until ctx is done.
func Command(ctx context.Context, args []string) error {
	cfg := Config{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags := flag.NewFlagSet("ethereum", flag.ContinueOnError)
	flags.StringVar(&cfg.DataDir, "data", "", "data directory; empty keeps the chain in memory")
	flags.StringVar(&cfg.RPCAddr, "rpc", "127.0.0.1:8545", "address of JSON-RPC, over HTTP and WebSocket")
	flags.StringVar(&cfg.ControlAddr, "control", "127.0.0.1:8546", "address of the fault switches")
	flags.DurationVar(&cfg.BlockInterval, "interval", DefaultBlockInterval, "time between blocks while there is work; 0 makes none by itself")
	flags.DurationVar(&cfg.IdleInterval, "idle", DefaultIdleInterval, "time between blocks otherwise")
	flags.Uint64Var(&cfg.SafeDepth, "safe", DefaultSafeDepth, "blocks between the newest block and the safe one")
	flags.Uint64Var(&cfg.FinalDepth, "final", DefaultFinalDepth, "blocks between the newest block and the final one")
	contracts := flags.String("contracts", "", "directory that keeps the contracts of Safe, which are put on the chain; empty puts none")
	if err := devnode.Parse(flags, args); err != nil {
		return err
	}
	if *contracts != "" {
		var err error
		if cfg.Contracts, err = safe.Cached(*contracts); err != nil {
			return err
		}
	}
	return Run(ctx, cfg, os.Stdout)
}
