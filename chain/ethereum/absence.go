package ethereum

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
)

const (
	// longMemory is how far below the final block a node must still find transactions: a day of blocks, far
	// more than a transaction that is offered again and again takes.
	longMemory = 7_200
	// probes is how many blocks are looked through for a transaction to ask for. Blocks of a busy network
	// are never empty.
	probes = 4
)

// listedBlock is a block with the ids of its transactions.
type listedBlock struct {
	header
	Transactions []common.Hash `json:"transactions"`
}

// absent is the answer of a node that does not find a transaction, if its word is good. Nodes answer the
// same whether there is no such transaction or they keep no index of it (one that was synchronised a short
// while ago, or without receipts), while they know balances and numbers of the whole chain. So the node has
// to find what is there: a transaction of the final block, and one of long before.
func absent(ctx context.Context, conn *rpc.Client, head chain.Head) (chain.Location, error) {
	final := head.Final.Number
	for _, from := range []uint64{final, final - min(final, longMemory)} {
		if err := finds(ctx, conn, from); err != nil {
			return chain.Location{}, err
		}
	}
	return chain.Location{Stage: chain.StageAbsent, Head: head}, nil
}

// finds asks for the receipt of the last transaction of a block, or of the nearest one below that has any.
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
