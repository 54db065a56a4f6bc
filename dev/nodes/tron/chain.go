package tron

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

const (
	// maxBlockBytes is java-tron's BLOCK_SIZE.
	maxBlockBytes = 2_000_000
	// maxPending is java-tron's node.maxTransactionPendingSize.
	maxPending = 2_000
	// solidIndex picks the solidified block among the witnesses' latest blocks in
	// ascending order (java-tron DposService.updateSolidBlock: 30 % of 27).
	solidIndex = witnesses * 30 / 100
)

// block is a produced block with its receipts and what undoes it.
type block struct {
	message *core.Block
	id      Hash
	number  int64
	time    int64 // milliseconds
	witness int
	infos   []*core.TransactionInfo
	marks   *effects
	undo    undo // nil once solidified: such a block is never undone
}

// effects are the fault switches' marks on a block. They are stored with it,
// because a replay cannot know them otherwise.
type effects struct {
	Forced  map[string]string `json:"forced,omitempty"`  // transaction id to contract result
	Factors map[string]int64  `json:"factors,omitempty"` // contract address to energy factor
}

func (e *effects) forced(id Hash) core.Transaction_ResultContractResult {
	return core.Transaction_ResultContractResult(core.Transaction_ResultContractResult_value[e.Forced[id.String()]])
}

func (e *effects) factors() map[Address]int64 {
	out := make(map[Address]int64, len(e.Factors))
	for text, factor := range e.Factors {
		out[mustAddress(text)] = factor
	}
	return out
}

// pooled is a transaction that waits for a block.
type pooled struct {
	incoming
	notBefore int64 // the first block number that may hold it
	info      *core.TransactionInfo
}

// place is where a mined transaction is.
type place struct{ number, index int64 }

// chain is the block chain, its state and its pool of waiting transactions. The
// state's open journal always holds the effects of the pool on top of the head,
// as a java-tron full node shows them to its callers.
type chain struct {
	mu       sync.RWMutex
	log      *slog.Logger
	now      func() time.Time
	interval time.Duration
	file     *blockFile // nil in memory
	keys     []*ecdsa.PrivateKey

	state   *state
	blocks  []*block
	byID    map[Hash]int64
	byTx    map[Hash]place
	pool    []*pooled
	inPool  map[Hash]*pooled
	factors map[Address]int64 // energy factors the next block will set
	solid   int64
	turn    int // the next witness to sign
	chainID uint64
}

func newChain(log *slog.Logger, now func() time.Time, interval time.Duration, alloc map[Address]int64) (*chain, error) {
	s, first, err := genesis(alloc)
	if err != nil {
		return nil, err
	}
	return &chain{
		log: log, now: now, interval: interval, keys: witnessKeys(),
		state: s, blocks: []*block{first}, byID: map[Hash]int64{first.id: 0}, byTx: map[Hash]place{},
		inPool: map[Hash]*pooled{}, factors: map[Address]int64{}, turn: 1, chainID: chainIDOf(first.id),
	}, nil
}

func (c *chain) head() *block { return c.blocks[len(c.blocks)-1] }

func (c *chain) context(number, time int64, witness Address) *blockContext {
	return &blockContext{
		number: number, time: time, witness: witness, chainID: c.chainID,
		blockID: func(n uint64) common.Hash {
			if n >= uint64(len(c.blocks)) {
				return common.Hash{}
			}
			return common.Hash(c.blocks[n].id)
		},
	}
}

// pendingContext is what a transaction sees before it is in a block.
func (c *chain) pendingContext() *blockContext {
	return c.context(c.head().number+1, c.head().time, Address{})
}

// slotMillis is the shortest time to the next block.
func (c *chain) slotMillis() int64 { return max(1, c.interval.Milliseconds()) }

// produce makes one block of the pool's transactions; with empty set it leaves
// them waiting.
func (c *chain) produce(empty bool) (*block, error) {
	parent := c.head()
	witness := c.turn % witnesses
	b := &block{number: parent.number + 1, witness: witness}
	b.time = max(parent.time+1, c.now().UnixMilli())
	signer := AddressOfKey(c.keys[witness])
	context := c.context(b.number, b.time, signer)

	c.state.revert(0)
	b.marks = c.startBlock()
	var txs []*core.Transaction
	var waiting []*pooled
	if empty {
		waiting = c.pool
	} else {
		txs, waiting = c.pack(context, b)
	}
	raw := &core.BlockHeaderRaw{
		Number: b.number, Timestamp: b.time, ParentHash: parent.id[:], WitnessAddress: signer[:],
		Version: blockVersion, TxTrieRoot: merkleRoot(txs),
	}
	b.id = BlockID(raw)
	signature, err := crypto.Sign(headerDigest(raw), c.keys[witness])
	if err != nil {
		return nil, fmt.Errorf("sign block %d: %w", b.number, err)
	}
	b.message = &core.Block{Transactions: txs, BlockHeader: &core.BlockHeader{RawData: raw, WitnessSignature: signature}}
	if c.file != nil {
		if err := c.file.appendBlock(b.message, b.marks); err != nil {
			c.state.revert(0)
			c.refill(c.pool)
			return nil, err
		}
	}
	c.connect(b)
	clear(c.factors)
	c.refill(waiting)
	return b, nil
}

// startBlock sets the energy factors due and returns the block's marks.
func (c *chain) startBlock() *effects {
	marks := &effects{}
	for a, factor := range c.factors {
		if marks.Factors == nil {
			marks.Factors = map[string]int64{}
		}
		marks.Factors[a.String()] = factor
	}
	c.setFactors()
	return marks
}

func (c *chain) setFactors() {
	for a, factor := range c.factors {
		c.state.setEnergyFactor(a, factor)
	}
}

// pack fills a block. An account whose permissions change gets nothing else into
// that block (java-tron Manager.generateBlock).
func (c *chain) pack(context *blockContext, b *block) (txs []*core.Transaction, waiting []*pooled) {
	closed := map[Address]bool{}
	size := 0
	for _, p := range c.pool {
		bytes := proto.Size(p.tx)
		if closed[p.owner] || p.notBefore > b.number || size+bytes > maxBlockBytes {
			waiting = append(waiting, p)
			continue
		}
		if p.tx.RawData.Expiration <= b.time {
			c.log.Info("transaction expired in the pool", "tx", p.id)
			continue
		}
		mark := c.state.mark()
		in := p.incoming
		in.tx = proto.Clone(p.tx).(*core.Transaction)
		info, err := c.state.applyTransaction(context, &in)
		if err != nil {
			c.state.revert(mark)
			c.log.Info("transaction fell out of the pool", "tx", p.id, "reason", err)
			continue
		}
		if in.forced != core.Transaction_Result_DEFAULT {
			if b.marks.Forced == nil {
				b.marks.Forced = map[string]string{}
			}
			b.marks.Forced[p.id.String()] = in.forced.String()
		}
		_, closes := p.message.(*core.AccountPermissionUpdateContract)
		closed[p.owner] = closes
		size += bytes
		txs, b.infos = append(txs, in.tx), append(b.infos, info)
	}
	return txs, waiting
}

// connect makes b, whose effects are the state's open journal, the new head.
func (c *chain) connect(b *block) {
	b.undo = c.state.cut()
	c.blocks = append(c.blocks, b)
	c.byID[b.id] = b.number
	for i, info := range b.infos {
		c.byTx[Hash(info.Id)] = place{b.number, int64(i)}
	}
	c.turn = b.witness + 1
	c.solidify()
}

// solidify applies the rule of DPoS: a block is final when 19 of the 27 witnesses
// have built on it or made it.
func (c *chain) solidify() {
	latest := make([]int64, witnesses)
	seen := 0
	for i := len(c.blocks) - 1; i >= 1 && seen < witnesses; i-- {
		if b := c.blocks[i]; latest[b.witness] == 0 {
			latest[b.witness] = b.number
			seen++
		}
	}
	slices.Sort(latest)
	was := c.solid
	c.solid = max(was, latest[solidIndex])
	for n := was; n <= c.solid; n++ {
		c.blocks[n].undo = nil
	}
}

// refill puts transactions back on top of the head, in order, and drops those
// that no longer hold.
func (c *chain) refill(waiting []*pooled) {
	c.pool = nil
	clear(c.inPool)
	c.setFactors()
	for _, p := range waiting {
		p.tx = cloneTransaction(p.tx) // a caller may be reading the one it was given
		if err := c.admit(p); err != nil {
			c.log.Info("transaction fell out of the pool", "tx", p.id, "reason", err)
		}
	}
}

// admit applies a transaction to the pending state and pools it.
func (c *chain) admit(p *pooled) error {
	if !c.knowsReference(p.tx.RawData) {
		return errReference
	}
	mark := c.state.mark()
	p.tx.Ret = nil
	info, err := c.state.applyTransaction(c.pendingContext(), &p.incoming)
	if err != nil {
		c.state.revert(mark)
		return err
	}
	p.info = info
	c.pool = append(c.pool, p)
	c.inPool[p.id] = p
	return nil
}

// errSolidified refuses a reorganisation that no fork could cause.
var errSolidified = errors.New("a solidified block is never reorganised")

// reorganise replaces the last depth blocks by a longer branch of empty ones, as
// a switch to another fork does. The transactions of the lost blocks go back to
// the pool, unless drop is set.
func (c *chain) reorganise(depth int, drop bool) error {
	from := len(c.blocks) - depth
	if depth < 1 || from < 1 {
		return fmt.Errorf("reorganise %d blocks: want 1 to %d", depth, c.head().number-c.solid)
	}
	if int64(from) <= c.solid {
		return fmt.Errorf("reorganise %d blocks: block %d is solid: %w", depth, c.solid, errSolidified)
	}
	if c.file != nil {
		if err := c.file.appendReorganisation(depth); err != nil {
			return err
		}
	}
	lost := c.disconnect(depth)
	if !drop {
		c.pool = append(lost, c.pool...)
	}
	for range depth + 1 {
		if _, err := c.produce(true); err != nil {
			return err
		}
	}
	return nil
}

// disconnect undoes the last depth blocks and returns their transactions.
func (c *chain) disconnect(depth int) []*pooled {
	c.state.revert(0)
	from := len(c.blocks) - depth
	factors := map[Address]int64{}
	var lost []*pooled
	for _, b := range c.blocks[from:] {
		delete(c.byID, b.id)
		for _, info := range b.infos {
			delete(c.byTx, Hash(info.Id))
		}
		maps.Copy(factors, b.marks.factors())
		lost = append(lost, b.transactions()...)
	}
	for i := len(c.blocks) - 1; i >= from; i-- {
		c.state.apply(c.blocks[i].undo)
	}
	maps.Copy(factors, c.factors)
	c.factors = factors
	c.blocks = c.blocks[:from:from]
	return lost
}

// transactions returns a lost block's transactions ready for the pool.
func (b *block) transactions() []*pooled {
	var out []*pooled
	for _, tx := range b.message.Transactions {
		in, err := decode(proto.Clone(tx).(*core.Transaction))
		if err != nil {
			panic(fmt.Sprintf("tron: block %d holds a transaction that does not decode: %v", b.number, err))
		}
		in.forced = b.marks.forced(in.id)
		out = append(out, &pooled{incoming: *in})
	}
	return out
}

// refusal texts that do not depend on the transaction.
var (
	errDuplicate = &Refusal{api.Return_DUP_TRANSACTION_ERROR, "Dup transaction."}
	errExpired   = &Refusal{api.Return_TRANSACTION_EXPIRATION_ERROR, "Transaction expired"}
	errReference = &Refusal{api.Return_TAPOS_ERROR, "Tapos check error."}
	errBusy      = &Refusal{api.Return_SERVER_BUSY, "Server busy."}
)
