package ethereum

import (
	"context"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/trie"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

// fullBlock is a block with its transactions.
type fullBlock struct {
	header
	Transactions []transaction `json:"transactions"`
}

// Transfers lists the movements in one block. A block that does not exist yet is ReasonUnavailable. When no node that has the
// block can prove what ether Safes moved in it, it is listed without: the reconciliation of balances finds it, and the deposits
// of others don't wait.
func (c *Client) Transfers(ctx context.Context, number uint64) (chain.BlockTransfers, error) {
	var unproven *chain.BlockTransfers
	var last error
	for got, err := range endpoints.All(ctx, c.nodes, reading(func(ctx context.Context, conn *rpc.Client) (listed, error) {
		return c.transfersOf(ctx, conn, number)
	})) {
		switch {
		case err == nil && got.proven:
			return got.BlockTransfers, nil
		case err == nil:
			unproven = &got.BlockTransfers
		case unproven == nil && chain.ReasonOf(err) != chain.ReasonUnavailable:
			return chain.BlockTransfers{}, err
		default:
			last = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if unproven != nil {
		return *unproven, nil
	}
	return chain.BlockTransfers{}, last
}

// listed are a block's movements as one node shows them.
type listed struct {
	chain.BlockTransfers
	proven bool // also of the ether of Safes, see safeEther
}

// transfersOf lists what a node's block moved.
func (c *Client) transfersOf(ctx context.Context, conn *rpc.Client, number uint64) (listed, error) {
	b, receipts, err := wholeBlock(ctx, conn, number)
	if err != nil {
		return listed{}, err
	}
	out := listed{BlockTransfers: chain.BlockTransfers{Block: b.block()}}
	known := make([][]chain.Movement, len(receipts))
	for i, t := range b.Transactions {
		moved, err := c.movements(t, receipts[i])
		if err != nil { // one odd event must not hide the rest of the block
			out.Unreadable = append(out.Unreadable, chain.Unreadable{TxID: t.Hash.Hex(), Detail: err.Error()})
			continue
		}
		known[i] = moved
	}
	sent, proven, err := c.safeEther(ctx, conn, b, receipts, known)
	if err != nil {
		return listed{}, err
	}
	out.proven = proven
	for i := range known {
		out.Movements = append(append(out.Movements, known[i]...), sent[i]...)
	}
	return out, nil
}

// wholeBlock reads a block, and then its receipts by its hash, so that both are of one branch. The receipts must match the
// root in the header: a node that leaves out a receipt or an event must never look like a block without deposits.
func wholeBlock(ctx context.Context, conn *rpc.Client, number uint64) (*fullBlock, types.Receipts, error) {
	tag := tagOf(number)
	var b *fullBlock
	if err := conn.CallContext(ctx, &b, "eth_getBlockByNumber", tag, true); err != nil {
		return nil, nil, err
	}
	if b == nil {
		return nil, nil, chain.Errorf(chain.ReasonUnavailable, "block %d does not exist yet", number)
	}
	if err := b.check(tag); err != nil {
		return nil, nil, err
	}
	var receipts types.Receipts
	if err := conn.CallContext(ctx, &receipts, "eth_getBlockReceipts", b.Hash); err != nil {
		return nil, nil, err
	}
	if len(receipts) != len(b.Transactions) {
		return nil, nil, chain.Errorf(chain.ReasonUnavailable, "the node has %d receipts for the %d transactions of block %d",
			len(receipts), len(b.Transactions), number)
	}
	if root := types.DeriveSha(receipts, trie.NewStackTrie(nil)); root != b.ReceiptsRoot {
		return nil, nil, chain.Errorf(chain.ReasonUnavailable, "the receipts of block %d have the root %s, its header says %s", number, root, b.ReceiptsRoot)
	}
	for i, t := range b.Transactions {
		if receipts[i].TxHash != t.Hash || receipts[i].BlockHash != b.Hash {
			return nil, nil, chain.Errorf(chain.ReasonUnavailable, "the node has no receipt for transaction %s of block %d", t.Hash, number)
		}
	}
	return b, receipts, nil
}
