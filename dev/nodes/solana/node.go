package solana

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"kivuko/dev/nodes/devnode"
	"kivuko/dev/nodes/solana/programs"
	"kivuko/dev/nodes/solana/svm"
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
)

// Config is what a node needs. The zero value is a node in memory, on free
// loopback ports, that makes blocks only on request and knows no program but
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
	log    *slog.Logger
	ledger *ledger
	faults faultSwitches
	funds  funds
	clock  *devnode.Clock
	hub    *hub
	host   *devnode.Host
	rhythm *devnode.Rhythm
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
	log := cfg.Log.With("node", "solana")
	n := &Node{
		log: log, clock: devnode.NewClock(cfg.Now), hub: newHub(), host: devnode.NewHost(log), rhythm: devnode.NewRhythm(cfg.SlotInterval),
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
		if err := n.host.Listen(name, addr); err != nil {
			return err
		}
	}
	return nil
}

// RPCAddr is the bound host:port of JSON-RPC.
func (n *Node) RPCAddr() string { return n.host.Addr("rpc") }

// WSAddr is the bound host:port of the websocket.
func (n *Node) WSAddr() string { return n.host.Addr("ws") }

// ControlAddr is the bound host:port of the fault switches.
func (n *Node) ControlAddr() string { return n.host.Addr("control") }

// Start serves until ctx ends or Close. With an interval it makes a block at once.
func (n *Node) Start(ctx context.Context) error {
	return n.host.Start(ctx, func(ctx context.Context) error {
		if interval, _ := n.rhythm.State(); interval > 0 {
			if _, err := n.ProduceBlock(); err != nil {
				return err
			}
		}
		serve := n.rpcHandler()
		n.host.ServeHTTP("rpc", serve)
		n.host.ServeHTTP("ws", serve)
		n.host.ServeHTTP("control", n.controlHandler())
		n.host.Go("producer", func() error {
			return n.rhythm.Tick(ctx, func() error {
				if _, err := n.ProduceBlock(); err != nil {
					n.log.Error("no block could be made", "error", err) // the next one perhaps
				}
				return nil
			})
		})
		return nil
	})
}

// Close stops serving and closes the journal. It may be called again.
func (n *Node) Close() error {
	first := n.host.Close(func(bool) { n.hub.close() })
	if !first || n.ledger == nil || n.ledger.journal == nil {
		return nil
	}
	n.ledger.mu.Lock()
	defer n.ledger.mu.Unlock()
	return n.ledger.journal.Close()
}
