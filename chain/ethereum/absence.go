package ethereum

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
)

const (
	// longMemory is how far below the final block a node must still find transactions: a day of blocks, far longer than a
	// transaction is rebroadcast.
	longMemory = 7_200
	// probes is how many blocks are searched for a transaction to query. Blocks of a busy network are never empty.
	probes = 4
)

// listedBlock is a block with the ids of its transactions.
type listedBlock struct {
	header
	Transactions []common.Hash `json:"transactions"`
}

// absent checks the "not found" of a node. Nodes answer the same for a transaction that does not exist and for one that they
// have not indexed (recently synchronised nodes, or nodes without receipts), even when they have balances and nonces of the
// whole chain. So the node must find two existing transactions: one of the final block, and one from long before.
func absent(ctx context.Context, conn *rpc.Client, head chain.Head) (chain.Location, error) {
	final := head.Final.Number
	for _, from := range []uint64{final, final - min(final, longMemory)} {
		if err := finds(ctx, conn, from); err != nil {
			return chain.Location{}, err
		}
	}
	return chain.Location{Stage: chain.StageAbsent, Head: head}, nil
}

// finds queries the receipt of the last transaction of a block, or of the nearest lower block that has one.
func finds(ctx context.Context, conn *rpc.Client, from uint64) error {
	for number := from; number > 0 && from-number < probes; number-- {
		tag := tagOf(number)
		var b *listedBlock
		if err := conn.CallContext(ctx, &b, "eth_getBlockByNumber", tag, false); err != nil {
			return err
		}
		if b == nil {
			return chain.Errorf(chain.ReasonUnavailable, "the node does not have the block %d, so what it does not find proves nothing", number)
		}
		if err := b.check(tag); err != nil {
			return err
		}
		if len(b.Transactions) == 0 {
			continue
		}
		known := b.Transactions[len(b.Transactions)-1]
		var r *types.Receipt
		if err := conn.CallContext(ctx, &r, "eth_getTransactionReceipt", known); err != nil {
			return err
		}
		if r == nil || r.TxHash != known {
			return chain.Errorf(chain.ReasonUnavailable, "the node does not find transaction %s of block %d either, so what it does not find proves nothing", known, number)
		}
		return nil
	}
	return nil
}
