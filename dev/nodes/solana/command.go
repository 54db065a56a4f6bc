package solana

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"kivuko/dev/nodes/devnode"
	"kivuko/dev/nodes/solana/programs"
)

// ExitUnavailable is the exit code of a node's process that could not get the token
// programs: the caller can continue without Solana.
const ExitUnavailable = 3

// Run starts a node, prints one line "READY ..." with its addresses to out once
// it serves, and returns when ctx is done.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	n, err := New(cfg)
	if err != nil {
		return err
	}
	return devnode.Run(ctx, n, out, func() string {
		return fmt.Sprintf("rpc=http://%s ws=ws://%s control=http://%s usdt=%s usdc=%s genesis=%s",
			n.RPCAddr(), n.WSAddr(), n.ControlAddr(), USDTAddress, USDCAddress, GenesisHash())
	})
}

// Command runs a node from command line arguments until ctx is done. It fails with
// *programs.UnavailableError when the token programs can't be had; the process then
// ends with ExitUnavailable.
func Command(ctx context.Context, args []string) error {
	cfg := Config{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags := flag.NewFlagSet("solana", flag.ContinueOnError)
	flags.StringVar(&cfg.DataDir, "data", "", "data directory; empty keeps the chain in memory")
	flags.StringVar(&cfg.RPCAddr, "rpc", "127.0.0.1:8899", "address of JSON-RPC")
	flags.StringVar(&cfg.WSAddr, "ws", "127.0.0.1:8900", "address of the websocket")
	flags.StringVar(&cfg.ControlAddr, "control", "127.0.0.1:8901", "address of the fault switches")
	flags.DurationVar(&cfg.SlotInterval, "interval", DefaultSlotInterval, "time between slots; 0 makes none by itself")
	flags.IntVar(&cfg.ConfirmDepth, "confirm", DefaultConfirmDepth, "blocks that stand on a confirmed one")
	flags.IntVar(&cfg.FinalDepth, "final", DefaultFinalDepth, "blocks that stand on a final one")
	flags.IntVar(&cfg.SkipEvery, "skip-every", 0, "leave each n-th slot without a block; 0 leaves none")
	cache := flags.String("programs", "", "directory that keeps the token programs (default: a cache of this user)")
	if err := devnode.Parse(flags, args); err != nil {
		return err
	}
	var err error
	if *cache == "" {
		if *cache, err = programs.CacheDir(); err != nil {
			return &programs.UnavailableError{Cause: err}
		}
	}
	if cfg.Programs, err = programs.Get(ctx, programs.Options{Dir: *cache, Progress: os.Stderr}); err != nil {
		return err
	}
	return Run(ctx, cfg, os.Stdout)
}
