package solana

import (
	"context"
	"fmt"
	"io"
)

// Run starts a node, prints one line "READY ..." with its addresses to out once
// it serves, and returns when ctx is done.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	n, err := New(cfg)
	if err != nil {
		return err
	}
	if err := n.Start(ctx); err != nil {
		_ = n.Close() // the first error says what is wrong
		return err
	}
	if _, err := fmt.Fprintf(out, "READY rpc=http://%s ws=ws://%s control=http://%s usdt=%s usdc=%s genesis=%s\n",
		n.RPCAddr(), n.WSAddr(), n.ControlAddr(), USDTAddress, USDCAddress, GenesisHash()); err != nil {
		_ = n.Close() // nobody is listening
		return fmt.Errorf("solana: announce readiness: %w", err)
	}
	<-ctx.Done()
	return n.Close()
}
