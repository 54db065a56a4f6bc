package ethereum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/eth/catalyst"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	gethnode "github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/p2p"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/dev/nodes/devnode"
	"kivuko/dev/nodes/ethereum/safe"
)

// Defaults of Config.
const (
	// DefaultBlockInterval is shorter than the main network's twelve seconds, to save waiting time.
	DefaultBlockInterval = time.Second
	// DefaultIdleInterval is the time between blocks while there is nothing to do.
	DefaultIdleInterval = 15 * time.Second
	DefaultSafeDepth    = 2
	DefaultFinalDepth   = 6
)

const (
	// minBlockInterval keeps a mistyped interval from filling the disk.
	minBlockInterval = 10 * time.Millisecond
	// maxDepth is go-ethereum's limit of a reorganisation (EngineMaxReorgDepth), with room to replace.
	maxDepth = 30
)

// Config is what a node needs. The zero value is a node in memory, on free loopback ports, that makes
// blocks only on request.
type Config struct {
	// DataDir keeps the chain over restarts; empty means in memory.
	DataDir string
	// RPCAddr serves JSON-RPC over HTTP and WebSocket, ControlAddr the fault switches. Each is
	// host:port on loopback; empty or port 0 takes a free port.
	RPCAddr, ControlAddr string
	// BlockInterval is the time between blocks while there is work; zero makes none by itself.
	BlockInterval time.Duration
	// IdleInterval is the time between blocks otherwise; DefaultIdleInterval when zero.
	IdleInterval time.Duration
	// SafeDepth and FinalDepth are how far the safe and the final block are behind the newest;
	// the defaults when zero.
	SafeDepth, FinalDepth uint64
	// Contracts are put on the chain when it has none of them; see package safe. Nil for none.
	Contracts safe.Set
	// Log receives what the node has to say; nil is slog.Default.
	Log *slog.Logger
}

func (c *Config) complete() error {
	for _, a := range []struct {
		field string
		addr  string
	}{{"RPCAddr", c.RPCAddr}, {"ControlAddr", c.ControlAddr}} {
		if err := devnode.CheckLoopback(a.addr); err != nil {
			return fmt.Errorf("%s: %w", a.field, err)
		}
	}
	if c.IdleInterval == 0 {
		c.IdleInterval = max(DefaultIdleInterval, c.BlockInterval)
	}
	if c.SafeDepth == 0 && c.FinalDepth == 0 {
		c.SafeDepth, c.FinalDepth = DefaultSafeDepth, DefaultFinalDepth
	}
	if c.SafeDepth > c.FinalDepth || c.FinalDepth > maxDepth {
		return fmt.Errorf("SafeDepth and FinalDepth: want SafeDepth <= FinalDepth <= %d, got %d and %d", maxDepth, c.SafeDepth, c.FinalDepth)
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if err := checkInterval(c.BlockInterval); err != nil {
		return fmt.Errorf("BlockInterval: %w", err)
	}
	if c.IdleInterval < c.BlockInterval {
		return fmt.Errorf("IdleInterval: want at least BlockInterval (%s), got %s", c.BlockInterval, c.IdleInterval)
	}
	return nil
}

func checkInterval(d time.Duration) error {
	if d != 0 && d < minBlockInterval {
		return fmt.Errorf("%s: want 0 or at least %s", d, minBlockInterval)
	}
	return nil
}

// Node is an Ethereum development node.
type Node struct {
	log    *slog.Logger
	config Config
	stack  *gethnode.Node
	eth    *eth.Ethereum
	beacon *catalyst.ConsensusAPI
	rpc    *rpc.Server
	send   rawSender
	faults faultSwitches

	sealing sync.Mutex // one block, reorganisation or own transaction at a time
	doomed  doomed     // transactions that are to fail in their block; guarded by sealing
	worked  uint64     // the newest block that held a transaction; guarded by sealing

	host   *devnode.Host
	rhythm *devnode.Rhythm
	idle   atomic.Int64 // nanoseconds between blocks while there is no work
}

// New makes a node, opens its data directory and binds its ports. It serves nothing before Start.
// Close releases it.
func New(cfg Config) (*Node, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("ethereum: %w", err)
	}
	log := cfg.Log.With("node", "ethereum")
	n := &Node{log: log, config: cfg, host: devnode.NewHost(log), rhythm: devnode.NewRhythm(cfg.BlockInterval), doomed: doomed{}}
	n.idle.Store(int64(cfg.IdleInterval))
	if err := n.open(); err != nil {
		return nil, fmt.Errorf("ethereum: %w", errors.Join(err, n.Close()))
	}
	return n, nil
}

// open starts go-ethereum's node and makes the first block, which holds the tokens.
func (n *Node) open() error {
	var err error
	if err = n.host.Listen("rpc", n.config.RPCAddr); err != nil {
		return err
	}
	if err = n.host.Listen("control", n.config.ControlAddr); err != nil {
		return err
	}
	if n.stack, err = gethnode.New(n.nodeConfig()); err != nil {
		return err
	}
	if n.eth, err = eth.New(n.stack, chainSettings()); err != nil {
		if mismatch, ok := errors.AsType[*core.GenesisMismatchError](err); ok {
			return fmt.Errorf("the chain in %s was begun by another version of this node; remove it (`make clean-data` removes the stack's): %w", n.config.DataDir, mismatch)
		}
		return err
	}
	if err := n.stack.Start(); err != nil {
		return err
	}
	n.eth.SetSynced() // there are no peers to wait for
	n.beacon = catalyst.NewConsensusAPI(n.eth)
	if err := n.serveAPIs(); err != nil {
		return err
	}
	if head := n.head(); head.Number.Sign() > 0 {
		n.worked = head.Number.Uint64() // what was mined before the restart is to become final too
		return n.deployContracts()
	}
	txs, err := n.deployments()
	if err != nil {
		return err
	}
	if _, err = n.seal(n.head(), content{exact: txs}); err != nil {
		return err
	}
	return n.deployContracts()
}

// nodeConfig leaves all serving and all networking out: JSON-RPC is served by this package, which
// can then lose an answer.
func (n *Node) nodeConfig() *gethnode.Config {
	c := gethnode.DefaultConfig
	c.Name, c.DataDir = "kivuko", n.config.DataDir
	c.IPCPath, c.HTTPHost, c.WSHost = "", "", ""
	c.UseLightweightKDF = true
	c.P2P = p2p.Config{NoDiscovery: true, NoDial: true}
	return &c
}

// chainSettings are chosen for survival: with the hash scheme and without pruning, every block that
// was written through is there after the process was killed. The path scheme loses the whole chain
// then, and the hash scheme with pruning does not start again.
func chainSettings() *ethconfig.Config {
	const megabytes, handles = 16, 128
	c := ethconfig.Defaults
	c.Genesis = genesis()
	c.NetworkId = ChainID
	c.SyncMode = ethconfig.FullSync
	c.StateScheme, c.NoPruning = rawdb.HashScheme, true
	c.LogNoHistory = true
	c.DatabaseCache, c.TrieCleanCache, c.TrieDirtyCache, c.SnapshotCache = megabytes, megabytes, megabytes, 0
	c.DatabaseHandles = handles
	c.TxPool.NoLocals = true
	c.TxPool.Journal = ""
	c.Miner.GasCeil = genesisGasLimit
	return &c
}

// RPCAddr is the bound host:port of JSON-RPC, over HTTP and WebSocket.
func (n *Node) RPCAddr() string { return n.host.Addr("rpc") }

// ControlAddr is the bound host:port of the fault switches.
func (n *Node) ControlAddr() string { return n.host.Addr("control") }

// Start serves until ctx ends or Close. With a block interval it makes a block at once, so that a
// chain that was switched off for long has a fresh head.
func (n *Node) Start(ctx context.Context) error {
	return n.host.Start(ctx, func(ctx context.Context) error {
		if interval, _ := n.rhythm.State(); interval > 0 {
			if _, err := n.MineBlock(); err != nil {
				return err
			}
		}
		n.host.ServeHTTP("rpc", n.rpcHandler())
		n.host.ServeHTTP("control", n.controlHandler())
		n.host.Go("producer", func() error { return n.produceBlocks(ctx) })
		return nil
	})
}

// Close stops serving and closes the chain. It may be called again.
func (n *Node) Close() error {
	first := n.host.Close(func(bool) {
		if n.rpc != nil {
			n.rpc.Stop() // ends open WebSockets, which a server's shutdown does not know
		}
	})
	if !first || n.stack == nil {
		return nil
	}
	n.sealing.Lock()
	defer n.sealing.Unlock()
	return n.stack.Close()
}
