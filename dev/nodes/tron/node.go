package tron

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"google.golang.org/grpc"

	"kivuko/dev/nodes/devnode"
)

const (
	// DefaultBlockInterval is the main network's.
	DefaultBlockInterval = 3 * time.Second
	// DefaultUSDTEnergyFactor makes a call of USDT cost 4.4 times its base, as on
	// the main network in 2026.
	DefaultUSDTEnergyFactor = 34_000
	// MinBlockInterval keeps a mistyped interval from filling the disk.
	MinBlockInterval = 10 * time.Millisecond
)

// Config is what a node needs. The zero value is a node in memory, on free
// loopback ports, that makes blocks only on request.
type Config struct {
	// DataDir keeps the blocks over restarts; empty means in memory.
	DataDir string
	// GRPCAddr serves Wallet, SolidityAddr serves WalletSolidity, HTTPAddr the
	// HTTP API and ControlAddr the fault switches. Each is host:port on loopback;
	// empty or port 0 takes a free port.
	GRPCAddr, SolidityAddr, HTTPAddr, ControlAddr string
	// BlockInterval is the time between blocks; zero makes none by itself.
	BlockInterval time.Duration
	// USDTEnergyFactor is the dynamic energy factor of USDT on a new chain, in
	// ten-thousandths above 1.0; SetEnergyFactor changes it.
	USDTEnergyFactor int64
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
	if err := checkFactor(c.USDTEnergyFactor); err != nil {
		return fmt.Errorf("USDTEnergyFactor: %w", err)
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
	log      *slog.Logger
	chain    *chain
	faults   faultSwitches
	clock    *devnode.Clock
	wallet   *grpc.Server
	solidity *grpc.Server
	host     *devnode.Host
	rhythm   *devnode.Rhythm
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
	log := cfg.Log.With("node", "tron")
	n := &Node{log: log, clock: devnode.NewClock(cfg.Now), host: devnode.NewHost(log), rhythm: devnode.NewRhythm(cfg.BlockInterval)}
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
		if cfg.USDTEnergyFactor > 0 {
			n.chain.factors[mustAddress(USDTAddress)] = cfg.USDTEnergyFactor
		}
		// The genesis block is of a fixed past date. Without a block of today no
		// transaction's expiration would be within a day of the head.
		if _, err := n.chain.produce(false); err != nil {
			return err
		}
	}
	for name, addr := range map[string]string{
		"grpc": cfg.GRPCAddr, "solidity": cfg.SolidityAddr, "http": cfg.HTTPAddr, "control": cfg.ControlAddr,
	} {
		if err := n.host.Listen(name, addr); err != nil {
			return err
		}
	}
	return nil
}

// GRPCAddr is the bound host:port of the Wallet service.
func (n *Node) GRPCAddr() string { return n.host.Addr("grpc") }

// SolidityAddr is the bound host:port of the WalletSolidity service.
func (n *Node) SolidityAddr() string { return n.host.Addr("solidity") }

// HTTPAddr is the bound host:port of the HTTP API.
func (n *Node) HTTPAddr() string { return n.host.Addr("http") }

// ControlAddr is the bound host:port of the fault switches.
func (n *Node) ControlAddr() string { return n.host.Addr("control") }

// Start serves until ctx ends or Close. With a block interval it makes a block
// at once, so that a chain that was switched off for long has a fresh head.
func (n *Node) Start(ctx context.Context) error {
	return n.host.Start(ctx, func(ctx context.Context) error {
		if interval, _ := n.rhythm.State(); interval > 0 {
			if _, err := n.ProduceBlock(); err != nil {
				return err
			}
		}
		n.wallet, n.solidity = grpc.NewServer(), grpc.NewServer()
		api.RegisterWalletServer(n.wallet, &walletServer{node: n})
		api.RegisterWalletSolidityServer(n.solidity, &solidityServer{node: n})
		n.host.Go("grpc", func() error { return n.wallet.Serve(n.host.Listener("grpc")) }, grpc.ErrServerStopped)
		n.host.Go("solidity", func() error { return n.solidity.Serve(n.host.Listener("solidity")) }, grpc.ErrServerStopped)
		n.host.ServeHTTP("http", n.httpHandler())
		n.host.ServeHTTP("control", n.controlHandler())
		n.host.Go("producer", func() error {
			return n.rhythm.Tick(ctx, func() error {
				_, err := n.ProduceBlock()
				return err
			})
		})
		return nil
	})
}

// Close stops serving and closes the block file. It may be called again.
func (n *Node) Close() error {
	first := n.host.Close(func(started bool) {
		if started {
			n.wallet.Stop()
			n.solidity.Stop()
		}
	})
	if !first || n.chain == nil || n.chain.file == nil {
		return nil
	}
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	return n.chain.file.Close()
}
