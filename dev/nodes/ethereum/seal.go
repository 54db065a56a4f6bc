package ethereum

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/miner"
)

// content says what a block is to hold: the pool's transactions, these exact ones, or none.
type content struct {
	exact []*types.Transaction
	empty bool
}

// proposer gets the tips; its key does not exist.
var proposer = common.HexToAddress("0x00000000000000000000000000000000000000fE")

func (n *Node) head() *types.Header { return n.eth.BlockChain().CurrentBlock() }

// final is the newest block that can't be undone, which is the genesis block at first.
func (n *Node) final() *types.Header {
	if h := n.eth.BlockChain().CurrentFinalBlock(); h != nil {
		return h
	}
	return n.eth.BlockChain().Genesis().Header()
}

// seal makes a block on top of parent and makes it the newest one, whichever was before: the engine
// API's choice of a fork knows no longest chain. The caller holds sealing.
func (n *Node) seal(parent *types.Header, what content) (*types.Block, error) {
	// The pool follows the chain in the background; a block that is built before it has caught up
	// would miss what waits.
	if err := n.eth.TxPool().Sync(); err != nil {
		return nil, fmt.Errorf("await the pool: %w", err)
	}
	args := &miner.BuildPayloadArgs{
		Parent: parent.Hash(), Timestamp: max(uint64(time.Now().Unix()), parent.Time+1),
		FeeRecipient: proposer, Withdrawals: types.Withdrawals{}, BeaconRoot: &common.Hash{}, Version: engine.PayloadV3,
	}
	// Two branches of empty blocks must differ.
	if _, err := rand.Read(args.Random[:]); err != nil {
		return nil, err
	}
	block, envelope, err := n.eth.Miner().BuildTestingPayload(args, what.exact, what.empty, []byte("kivuko"))
	if err != nil {
		return nil, fmt.Errorf("build a block: %w", err)
	}
	requests := make([]hexutil.Bytes, 0, len(envelope.Requests))
	for _, r := range envelope.Requests {
		requests = append(requests, r)
	}
	ctx := context.Background() // a block is made whole or not at all
	status, err := n.beacon.NewPayloadV4(ctx, *envelope.ExecutionPayload, []common.Hash{}, &common.Hash{}, requests)
	if err != nil || status.Status != engine.VALID {
		return nil, fmt.Errorf("new payload: %s %w", status.Status, err)
	}
	if err := n.choose(ctx, block.Header()); err != nil {
		return nil, err
	}
	// A client that saw the block must not be able to send what the block has made impossible.
	if err := n.eth.TxPool().Sync(); err != nil {
		return nil, fmt.Errorf("have the pool follow: %w", err)
	}
	if len(block.Transactions()) > 0 {
		n.worked = block.NumberU64()
	}
	if n.config.DataDir == "" {
		return block, nil
	}
	return block, n.eth.ChainDb().SyncKeyValue()
}

// choose makes a block the newest one. What was final stays final.
func (n *Node) choose(ctx context.Context, head *types.Header) error {
	final := n.final()
	if reached := n.ancestor(head, n.config.FinalDepth); reached.Number.Cmp(final.Number) > 0 {
		final = reached
	}
	safe := n.ancestor(head, n.config.SafeDepth)
	if safe.Number.Cmp(final.Number) < 0 {
		safe = final
	}
	answer, err := n.beacon.ForkchoiceUpdatedV3(ctx, engine.ForkchoiceStateV1{
		HeadBlockHash: head.Hash(), SafeBlockHash: safe.Hash(), FinalizedBlockHash: final.Hash(),
	}, nil)
	if err != nil {
		return fmt.Errorf("fork choice: %w", err)
	}
	if answer.PayloadStatus.Status != engine.VALID {
		return fmt.Errorf("fork choice: %s", answer.PayloadStatus.Status)
	}
	return nil
}

// ancestor is the block so many generations before h, or the genesis block.
func (n *Node) ancestor(h *types.Header, generations uint64) *types.Header {
	for ; generations > 0 && h.Number.Sign() > 0; generations-- {
		h = n.eth.BlockChain().GetHeaderByHash(h.ParentHash)
	}
	return h
}

// Block is a block as the controls report it.
type Block struct {
	Number       uint64        `json:"number"`
	ID           common.Hash   `json:"id"`
	Time         time.Time     `json:"time"`
	Transactions []common.Hash `json:"transactions"`
}

func report(b *types.Block) Block {
	out := Block{Number: b.NumberU64(), ID: b.Hash(), Time: time.Unix(int64(b.Time()), 0).UTC(), Transactions: []common.Hash{}}
	for _, tx := range b.Transactions() {
		out.Transactions = append(out.Transactions, tx.Hash())
	}
	return out
}

// MineBlock makes one block of the waiting transactions now.
func (n *Node) MineBlock() (Block, error) {
	n.sealing.Lock()
	defer n.sealing.Unlock()
	what := content{empty: n.faults.holdBlock()}
	if !what.empty {
		var err error
		if what.exact, err = n.doomedBlock(); err != nil {
			return Block{}, fmt.Errorf("ethereum: mine a block: %w", err)
		}
	}
	b, err := n.seal(n.head(), what)
	if err != nil {
		return Block{}, fmt.Errorf("ethereum: mine a block: %w", err)
	}
	n.log.Debug("block", "number", b.NumberU64(), "id", b.Hash(), "transactions", len(b.Transactions()))
	return report(b), nil
}

// maxBlocksAtOnce bounds a request for blocks.
const maxBlocksAtOnce = 1_000

// MineBlocks makes count blocks now and returns the last.
func (n *Node) MineBlocks(count int) (last Block, err error) {
	if count < 1 || count > maxBlocksAtOnce {
		return Block{}, fmt.Errorf("ethereum: mine %d blocks: want 1 to %d", count, maxBlocksAtOnce)
	}
	for range count {
		if last, err = n.MineBlock(); err != nil {
			return Block{}, err
		}
	}
	return last, nil
}

// Finalise makes as many blocks as it takes for the present head to be final.
func (n *Node) Finalise() (Block, error) { return n.MineBlocks(int(n.config.FinalDepth)) }

// Head and Final are the newest and the newest final block.
func (n *Node) Head() Block { return n.describe(n.head()) }

// Final is the newest block that can't be undone.
func (n *Node) Final() Block { return n.describe(n.final()) }

func (n *Node) describe(h *types.Header) Block {
	return report(n.eth.BlockChain().GetBlock(h.Hash(), h.Number.Uint64()))
}

// produceBlocks makes blocks by time until ctx ends: each interval while there is work, seldom
// otherwise.
func (n *Node) produceBlocks(ctx context.Context) error {
	last := time.Now()
	return n.rhythm.Tick(ctx, func() error {
		if !n.hasWork() && time.Since(last) < time.Duration(n.idle.Load()) {
			return nil
		}
		last = time.Now()
		if _, err := n.MineBlock(); err != nil && ctx.Err() == nil {
			return errors.Join(errors.New("no more blocks are made"), err)
		}
		return nil
	})
}

// hasWork reports whether transactions wait, or were mined so lately that they are not final yet.
func (n *Node) hasWork() bool {
	if waiting, _ := n.eth.TxPool().Stats(); waiting > 0 {
		return true
	}
	n.sealing.Lock()
	defer n.sealing.Unlock()
	const spare = 2 // watchers look once more after finality
	return n.head().Number.Uint64() < n.worked+n.config.FinalDepth+spare
}
