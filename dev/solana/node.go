package solana

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"kivuko/dev/devnode"
	"kivuko/dev/solana/programs"
	"kivuko/dev/solana/svm"
)

const (
	// DefaultSlotInterval is the main network's.
	DefaultSlotInterval = 400 * time.Millisecond
	// MinSlotInterval keeps a mistyped interval from filling the disk.
	MinSlotInterval = 5 * time.Millisecond
	// DefaultFinalDepth is how many blocks stand on a final one, that of TowerBFT's
	// full lockout.
	DefaultFinalDepth = 32
	// DefaultConfirmDepth is how many stand on a confirmed one.
	DefaultConfirmDepth = 1
	maxFinalDepth       = 1_000
	// shutdownWait is how long open requests may take after Close.
	shutdownWait = 2 * time.Second
	httpTimeout  = 30 * time.Second
	anyLoopback  = "127.0.0.1:0"
)

// Config is what a node needs. The zero value is a node in memory, on free
// loopback ports, that makes blocks only when told to and knows no program but
// System and ComputeBudget.
type Config struct {
	// DataDir keeps the chain over restarts; empty means in memory.
	DataDir string
	// RPCAddr serves JSON-RPC, over HTTP and as a websocket; WSAddr serves the same,
	// because clients look for the websocket at the next port. ControlAddr serves the
	// fault switches. Each is host:port on loopback; empty or port 0 takes a free port.
	RPCAddr, WSAddr, ControlAddr string
	// SlotInterval is the time between slots; zero makes none by itself.
	SlotInterval time.Duration
	// ConfirmDepth and FinalDepth are how many blocks stand on a confirmed and on a
	// final one; 0 means the defaults.
	ConfirmDepth, FinalDepth int
	// SkipEvery leaves each n-th slot without a block; 0 leaves none.
	SkipEvery int
	// Programs are the token programs.
	Programs programs.Set
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log receives what the node has to say; nil is slog.Default.
	Log *slog.Logger
}

func (c *Config) validate() error {
	for _, a := range []struct{ field, addr string }{
		{"RPCAddr", c.RPCAddr}, {"WSAddr", c.WSAddr}, {"ControlAddr", c.ControlAddr},
	} {
		if err := devnode.CheckLoopback(a.addr); err != nil {
			return fmt.Errorf("%s: %w", a.field, err)
		}
	}
	if err := checkInterval(c.SlotInterval); err != nil {
		return fmt.Errorf("SlotInterval: %w", err)
	}
	if c.FinalDepth == 0 {
		c.FinalDepth = DefaultFinalDepth
	}
	if c.ConfirmDepth == 0 {
		c.ConfirmDepth = min(DefaultConfirmDepth, c.FinalDepth)
	}
	if err := checkDepths(c.ConfirmDepth, c.FinalDepth); err != nil {
		return err
	}
	if c.SkipEvery < 0 || c.SkipEvery == 1 {
		return fmt.Errorf("SkipEvery: %d: want 0, or 2 and more", c.SkipEvery)
	}
	return nil
}

func checkDepths(confirm, final int) error {
	if final < 1 || final > maxFinalDepth {
		return fmt.Errorf("FinalDepth: %d: want 1 to %d", final, maxFinalDepth)
	}
	if confirm < 0 || confirm > final {
		return fmt.Errorf("ConfirmDepth: %d: want 0 to FinalDepth, %d", confirm, final)
	}
	return nil
}

func checkInterval(d time.Duration) error {
	if d != 0 && d < MinSlotInterval {
		return fmt.Errorf("%s: want 0 or at least %s", d, MinSlotInterval)
	}
	return nil
}

// Node is a Solana development node.
type Node struct {
	log       *slog.Logger
	ledger    *ledger
	faults    faultSwitches
	funds     funds
	clock     *devnode.Clock
	hub       *hub
	listeners map[string]net.Listener
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

// New makes a node, replays what its data directory holds and binds its ports. It
// serves nothing before Start. Close releases it.
func New(cfg Config) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("solana: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	n := &Node{
		log: cfg.Log.With("node", "solana"), clock: devnode.NewClock(cfg.Now), interval: cfg.SlotInterval, hub: newHub(),
		pace: make(chan struct{}, 1), listeners: map[string]net.Listener{}, stop: func() {},
	}
	if err := n.open(cfg); err != nil {
		return nil, fmt.Errorf("solana: %w", errors.Join(err, n.Close()))
	}
	return n, nil
}

func (n *Node) open(cfg Config) error {
	machine, err := svm.New(cfg.Programs)
	if err != nil {
		return err
	}
	n.ledger = newLedger(n.log, n.clock.Now, machine)
	n.ledger.confirmDepth, n.ledger.rootDepth = uint64(cfg.ConfirmDepth), uint64(cfg.FinalDepth)
	n.ledger.skipEvery = uint64(cfg.SkipEvery)
	if cfg.DataDir != "" {
		if err := n.ledger.openJournal(cfg.DataDir); err != nil {
			return err
		}
	}
	for name, addr := range map[string]string{"rpc": cfg.RPCAddr, "ws": cfg.WSAddr, "control": cfg.ControlAddr} {
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

// RPCAddr is the bound host:port of JSON-RPC.
func (n *Node) RPCAddr() string { return n.listeners["rpc"].Addr().String() }

// WSAddr is the bound host:port of the websocket.
func (n *Node) WSAddr() string { return n.listeners["ws"].Addr().String() }

// ControlAddr is the bound host:port of the fault switches.
func (n *Node) ControlAddr() string { return n.listeners["control"].Addr().String() }

// Start serves until ctx ends or Close. With an interval it makes a block at once.
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.started || n.closed {
		return errors.New("solana: a node starts once")
	}
	if n.interval > 0 {
		if _, err := n.ProduceBlock(); err != nil {
			return err
		}
	}
	n.started = true
	ctx, n.stop = context.WithCancel(ctx)
	serve := n.rpcHandler()
	n.serveHTTP("rpc", serve)
	n.serveHTTP("ws", serve)
	n.serveHTTP("control", n.controlHandler())
	n.work.Go(func() { n.produceBlocks(ctx) })
	return nil
}

func (n *Node) serveHTTP(name string, h http.Handler) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: httpTimeout, ReadTimeout: httpTimeout, ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelDebug)}
	n.web = append(n.web, s)
	n.work.Go(func() {
		if err := s.Serve(n.listeners[name]); err != nil && !errors.Is(err, http.ErrServerClosed) {
			n.log.Error("stopped", "part", name, "error", err)
		}
	})
}

// produceBlocks makes a block each interval until ctx ends.
func (n *Node) produceBlocks(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := time.Now()
	for {
		n.mu.Lock()
		interval, paused := n.interval, n.paused
		n.mu.Unlock()
		timer.Stop()
		if interval > 0 && !paused {
			// Slots keep their rhythm whatever a block takes, and don't catch up.
			next = next.Add(interval)
			if now := time.Now(); next.Before(now) {
				next = now
			}
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return
		case <-n.pace:
			next = time.Now()
		case <-timer.C:
			if _, err := n.ProduceBlock(); err != nil {
				n.log.Error("no block could be made", "error", err)
			}
		}
	}
}

// Close stops serving and closes the journal. It may be called again.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	stop := n.stop
	n.mu.Unlock()
	stop()
	n.hub.close()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
	defer cancel()
	for _, s := range n.web {
		if err := s.Shutdown(ctx); err != nil {
			n.log.Warn("requests were cut off", "error", err)
			_ = s.Close() // what Shutdown left open
		}
	}
	for _, l := range n.listeners {
		_ = l.Close() // already closed when it was served
	}
	n.work.Wait()
	if n.ledger == nil || n.ledger.journal == nil {
		return nil
	}
	n.ledger.mu.Lock()
	defer n.ledger.mu.Unlock()
	return n.ledger.journal.Close()
}
