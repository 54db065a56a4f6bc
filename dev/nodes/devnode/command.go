package devnode

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
)

// Parse reads a command line that has flags alone.
func Parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%s: %w", flags.Name(), err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: unexpected argument %q", flags.Name(), flags.Arg(0))
	}
	return nil
}

// Run starts a node, prints one line "READY ..." with its addresses to out once it serves, and closes it when
// ctx is done.
func Run(ctx context.Context, n interface {
	Start(ctx context.Context) error
	Close() error
}, out io.Writer, addresses func() string,
) error {
	if err := n.Start(ctx); err != nil {
		return errors.Join(err, n.Close())
	}
	if _, err := fmt.Fprintf(out, "READY %s\n", addresses()); err != nil { // the reader went away
		return errors.Join(fmt.Errorf("announce readiness: %w", err), n.Close())
	}
	<-ctx.Done()
	return n.Close()
}

// CheckLoopback refuses an address that others could reach. An empty one is any port.
func CheckLoopback(addr string) error {
	if addr == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q: want host:port", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q: the development node's keys are public, it listens on loopback only", addr)
	}
	return nil
}
