package tron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"google.golang.org/grpc"

	"kivuko/dev/devnode"
)

const (
	// DefaultBlockInterval is the main network's.
	DefaultBlockInterval = 3 * time.Second
	// MinBlockInterval keeps a mistyped interval from filling the disk.
	MinBlockInterval = 10 * time.Millisecond
	// shutdownWait is how long open requests may take after Close.
	shutdownWait = 2 * time.Second
	anyLoopback  = "127.0.0.1:0"
	httpTimeout  = 30 * time.Second
)

// Config is what a node needs. The zero value is a node in memory, on free
// loopback ports, that makes blocks only when told to.
type Config struct {
	// DataDir keeps the blocks over restarts; empty means in memory.
	DataDir string
	// GRPCAddr serves Wallet, SolidityAddr serves WalletSolidity, HTTPAddr the
	// HTTP API and ControlAddr the fault switches. Each is host:port on loopback;
	// empty or port 0 takes a free port.
	GRPCAddr, SolidityAddr, HTTPAddr, ControlAddr string
	// BlockInterval is the time between blocks; zero makes none by itself.
	BlockInterval time.Duration
	// Alloc gives accounts TRX, in sun, in the genesis block.
	Alloc map[Address]int64
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log receives what the node has to say; nil is slog.Default.
	Log *slog.Logger
}

func (c *Config) validate() error {
	for _, a := range []struct{ field, addr string }{
		{"GRPCAddr", c.GRPCAddr}, {"SolidityAddr", c.SolidityAddr}, {"HTTPAddr", c.HTTPAddr}, {"ControlAddr", c.ControlAddr},
	} {
		if err := devnode.CheckLoopback(a.addr); err != nil {
			return fmt.Errorf("%s: %w", a.field, err)
		}
	}
	if err := checkInterval(c.BlockInterval); err != nil {
		return fmt.Errorf("BlockInterval: %w", err)
	}
	for a, sun := range c.Alloc {
		if _, ok := addressOf(a[:]); !ok || sun <= 0 || sun > genesisSun {
			return fmt.Errorf("Alloc[%s]: want a TRON address and 1 to %d sun", a, int64(genesisSun)) //nolint:staticcheck // names the field
		}
	}
	return nil
}

func checkInterval(d time.Duration) error {
	if d != 0 && d < MinBlockInterval {
		return fmt.Errorf("%s: want 0 or at least %s", d, MinBlockInterval)
	}
	return nil
}

// Node is a TRON development node.
type Node struct {
	log       *slog.Logger
	chain     *chain
	faults    faultSwitches
	clock     *devnode.Clock
	listeners map[string]net.Listener
	wallet    *grpc.Server
	solidity  *grpc.Server
	web       []*http.Server

	mu       sync.Mutex
	interval time.Duration
	paused   bool
	pace     chan struct{} // tells the producer that interval or paused changed
	started  bool
	closed   bool
	stop     context.CancelFunc
	work     sync.WaitGroup
}

// New makes a node, replays what its data directory holds and binds its ports.
// It serves nothing before Start. Close releases it.
func New(cfg Config) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("tron: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	n := &Node{
		log: cfg.Log.With("node", "tron"), clock: devnode.NewClock(cfg.Now), interval: cfg.BlockInterval,
		pace: make(chan struct{}, 1), listeners: map[string]net.Listener{}, stop: func() {},
	}
	if err := n.open(cfg); err != nil {
		return nil, fmt.Errorf("tron: %w", errors.Join(err, n.Close()))
	}
	return n, nil
}

func (n *Node) open(cfg Config) error {
	var err error
	if n.chain, err = newChain(n.log, n.clock.Now, cfg.BlockInterval, cfg.Alloc); err != nil {
		return err
	}
	if cfg.DataDir != "" {
		file, err := openBlockFile(cfg.DataDir, n.chain.blocks[0].id, n.chain, n.log)
		if err != nil {
			return err
		}
		n.chain.file = file
	}
	if n.chain.head().number == 0 {
		// The genesis block is of a fixed past date. Without a block of today no
		// transaction's expiration would be within a day of the head.
		if _, err := n.chain.produce(false); err != nil {
			return err
		}
	}
	for name, addr := range map[string]string{
		"grpc": cfg.GRPCAddr, "solidity": cfg.SolidityAddr, "http": cfg.HTTPAddr, "control": cfg.ControlAddr,
	} {
		if addr == "" {
			addr = anyLoopback
		}
		// Binding a loopback port does not block, so there is nothing for a context to end.
		if n.listeners[name], err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr); err != nil {
			delete(n.listeners, name)
			return fmt.Errorf("listen for %s: %w", name, err)
		}
	}
	return nil
}

// GRPCAddr is the bound host:port of the Wallet service.
func (n *Node) GRPCAddr() string { return n.listeners["grpc"].Addr().String() }

// SolidityAddr is the bound host:port of the WalletSolidity service.
func (n *Node) SolidityAddr() string { return n.listeners["solidity"].Addr().String() }

// HTTPAddr is the bound host:port of the HTTP API.
func (n *Node) HTTPAddr() string { return n.listeners["http"].Addr().String() }

// ControlAddr is the bound host:port of the fault switches.
func (n *Node) ControlAddr() string { return n.listeners["control"].Addr().String() }

// Start serves until ctx ends or Close. With a block interval it makes a block
// at once, so that a chain that was switched off for long has a fresh head.
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.started || n.closed {
		return errors.New("tron: a node starts once")
	}
	if n.interval > 0 {
		if _, err := n.ProduceBlock(); err != nil {
			return err
		}
	}
	n.started = true
	ctx, n.stop = context.WithCancel(ctx)
	n.wallet, n.solidity = grpc.NewServer(), grpc.NewServer()
	api.RegisterWalletServer(n.wallet, &walletServer{node: n})
	api.RegisterWalletSolidityServer(n.solidity, &solidityServer{node: n})
	n.run("grpc", func() error { return n.wallet.Serve(n.listeners["grpc"]) })
	n.run("solidity", func() error { return n.solidity.Serve(n.listeners["solidity"]) })
	n.serveHTTP("http", n.httpHandler())
	n.serveHTTP("control", n.controlHandler())
	n.run("producer", func() error { return n.produceBlocks(ctx) })
	return nil
}

func (n *Node) run(name string, f func() error) {
	n.work.Go(func() {
		if err := f(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
			n.log.Error("stopped", "part", name, "error", err)
		}
	})
}

func (n *Node) serveHTTP(name string, h http.Handler) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: httpTimeout, ReadTimeout: httpTimeout}
	n.web = append(n.web, s)
	n.run(name, func() error { return s.Serve(n.listeners[name]) })
}

// produceBlocks makes a block each interval until ctx ends.
func (n *Node) produceBlocks(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		n.mu.Lock()
		interval, paused := n.interval, n.paused
		n.mu.Unlock()
		timer.Stop()
		if interval > 0 && !paused {
			timer.Reset(interval)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-n.pace:
		case <-timer.C:
			if _, err := n.ProduceBlock(); err != nil {
				return err
			}
		}
	}
}

// Close stops serving and closes the block file. It may be called again.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	started, stop := n.started, n.stop
	n.mu.Unlock()
	stop()
	if started {
		n.wallet.Stop()
		n.solidity.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
		defer cancel()
		for _, s := range n.web {
			if err := s.Shutdown(ctx); err != nil {
				n.log.Warn("requests were cut off", "error", err)
			}
		}
	}
	for _, l := range n.listeners {
		_ = l.Close() // already closed when it was served
	}
	n.work.Wait()
	if n.chain == nil || n.chain.file == nil {
		return nil
	}
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	return n.chain.file.Close()
}
