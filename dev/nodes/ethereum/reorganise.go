package ethereum

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// errFinal refuses a reorganisation that no fork could cause.
var errFinal = errors.New("a final block is never reorganised")

// Reorganise replaces the newest depth blocks, none of them final, by a longer branch of empty blocks.
// Their transactions return to the pool unless drop is set; then they are as if never sent.
func (n *Node) Reorganise(depth int, drop bool) error {
	n.sealing.Lock()
	defer n.sealing.Unlock()
	head, final := n.head(), n.final()
	undoable := new(big.Int).Sub(head.Number, final.Number).Int64()
	if depth < 1 || int64(depth) > undoable {
		return fmt.Errorf("ethereum: reorganise %d blocks: want 1 to %d: %w", depth, undoable, errFinal)
	}
	// The pool follows the chain in the background: what it still holds may be mined by now.
	if err := n.eth.TxPool().Sync(); err != nil {
		return fmt.Errorf("ethereum: reorganise: %w", err)
	}
	waiting := n.waiting()
	lost := n.transactionsOf(head, depth)
	parent := n.ancestor(head, uint64(depth))
	for range depth + 1 {
		block, err := n.seal(parent, content{empty: true})
		if err != nil {
			return fmt.Errorf("ethereum: reorganise: %w", err)
		}
		parent = block.Header()
	}
	if err := n.refill(waiting, lost, drop); err != nil {
		return fmt.Errorf("ethereum: reorganise: %w", err)
	}
	n.log.Info("reorganised", "blocks", depth, "dropped", drop, "head", parent.Hash())
	return nil
}

// transactionsOf lists the transactions of the newest blocks, oldest first.
func (n *Node) transactionsOf(head *types.Header, blocks int) []*types.Transaction {
	var out []*types.Transaction
	for h := head; blocks > 0; blocks-- {
		b := n.eth.BlockChain().GetBlock(h.Hash(), h.Number.Uint64())
		out = append(slices.Clone([]*types.Transaction(b.Transactions())), out...)
		h = n.eth.BlockChain().GetHeaderByHash(h.ParentHash)
	}
	return out
}

// waiting lists what the pool holds, by sender and number.
func (n *Node) waiting() []*types.Transaction {
	pending, queued := n.eth.TxPool().Content()
	var out []*types.Transaction
	for _, part := range []map[common.Address][]*types.Transaction{pending, queued} {
		for _, txs := range part {
			out = append(out, txs...)
		}
	}
	slices.SortStableFunc(out, func(a, b *types.Transaction) int { return cmp.Compare(a.Nonce(), b.Nonce()) })
	return out
}

// refill makes the pool hold what it held before a reorganisation, with or without what the lost
// blocks held. go-ethereum has put back some of it by itself.
func (n *Node) refill(waiting, lost []*types.Transaction, drop bool) error {
	pool := n.eth.TxPool()
	if err := pool.Sync(); err != nil {
		return err
	}
	pool.Clear()
	if !drop {
		waiting = append(lost, waiting...)
	}
	for i, err := range pool.Add(waiting, true) {
		if err != nil {
			n.log.Info("transaction fell out of the pool", "tx", waiting[i].Hash(), "reason", err)
		}
	}
	return nil
}

// Forget empties the pool, as a node does that was restarted or is short of memory.
func (n *Node) Forget() {
	n.sealing.Lock()
	defer n.sealing.Unlock()
	n.eth.TxPool().Clear()
}

const (
	// maxBaseFeeGwei bounds what SetBaseFee may be asked for.
	maxBaseFeeGwei = 10_000
	// maxBaseFeeBlocks bounds the blocks that it may make: an eighth more each, from one wei to the most.
	maxBaseFeeBlocks = 400
)

// SetBaseFee makes blocks until the next one's base fee is at least, or where it is above already at
// most, the given wei. The protocol computes the base fee from how full blocks are, so full or empty
// ones are made; what waits in the pool keeps waiting. The exact fee follows from the steps of an eighth.
func (n *Node) SetBaseFee(wei *big.Int) error {
	most := new(big.Int).Mul(big.NewInt(maxBaseFeeGwei), big.NewInt(params.GWei))
	if wei == nil || wei.Sign() <= 0 || wei.Cmp(most) > 0 {
		return fmt.Errorf("ethereum: set the base fee: want 1 to %s wei", most)
	}
	n.sealing.Lock()
	defer n.sealing.Unlock()
	before := n.nextBaseFee()
	rise := before.Cmp(wei) < 0
	for range maxBaseFeeBlocks {
		now := n.nextBaseFee()
		if (rise && now.Cmp(wei) >= 0) || (!rise && now.Cmp(wei) <= 0) {
			return nil
		}
		what := content{empty: true}
		if rise {
			var err error
			if what, err = n.fullBlock(); err != nil {
				return fmt.Errorf("ethereum: set the base fee: %w", err)
			}
		}
		if _, err := n.seal(n.head(), what); err != nil {
			return fmt.Errorf("ethereum: set the base fee: %w", err)
		}
		if !rise && n.nextBaseFee().Cmp(now) == 0 {
			return nil // it falls no further
		}
	}
	return fmt.Errorf("ethereum: the base fee is %s wei after %d blocks", n.nextBaseFee(), maxBaseFeeBlocks)
}

// nextBaseFee is the base fee of the next block, in wei.
func (n *Node) nextBaseFee() *big.Int { return eip1559.CalcBaseFee(chainConfig(), n.head()) }

// fullBlock uses up a block's gas to the last unit, within the protocol's limit for one transaction
// (EIP-7825).
func (n *Node) fullBlock() (content, error) {
	k := key(fillerKey)
	state, err := n.eth.BlockChain().State()
	if err != nil {
		return content{}, err
	}
	nonce := state.GetNonce(addressOf(k))
	var out content
	for left := n.head().GasLimit; left >= params.TxGas; {
		gas := min(left, params.MaxTxGas)
		tx, err := n.sign(k, &types.DynamicFeeTx{Nonce: nonce, Gas: gas, To: &sink})
		if err != nil {
			return content{}, err
		}
		out.exact = append(out.exact, tx)
		nonce++
		left -= gas
	}
	return out, nil
}
