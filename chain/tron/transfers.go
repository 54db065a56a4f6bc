package tron

import (
	"context"
	"encoding/hex"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc"

	"kivuko/chain"
)

// transferSource is the common part of Wallet and WalletSolidity for reading whole blocks.
type transferSource interface {
	GetBlockByNum2(ctx context.Context, in *api.NumberMessage, opts ...grpc.CallOption) (*api.BlockExtention, error)
	GetTransactionInfoByBlockNum(ctx context.Context, in *api.NumberMessage, opts ...grpc.CallOption) (*api.TransactionInfoList, error)
}

// Transfers lists the movements in one block: from a solidity node when the block is final, else
// from a full node. A block that does not exist yet is ReasonUnavailable.
func (c *Client) Transfers(ctx context.Context, number uint64) (chain.BlockTransfers, error) {
	read := func(source func(*node) transferSource) func(context.Context, *node) (chain.BlockTransfers, error) {
		return func(ctx context.Context, n *node) (chain.BlockTransfers, error) {
			return c.transfersOf(ctx, source(n), number)
		}
	}
	head, err := c.Head(ctx)
	if err != nil {
		return chain.BlockTransfers{}, err
	}
	switch {
	case number > head.Latest.Number:
		return chain.BlockTransfers{}, chain.Errorf(chain.ReasonUnavailable, "block %d does not exist yet, the newest is %d", number, head.Latest.Number)
	case number <= head.Final.Number:
		return ask(ctx, c.solid, read(func(n *node) transferSource { return n.solidity }))
	}
	return ask(ctx, c.full, read(func(n *node) transferSource { return n.wallet }))
}

// transfersOf reads a block and its receipts. Every transaction must have its receipt: a node without receipts, or a
// reorganisation between the two queries, must never look like a block without deposits.
func (c *Client) transfersOf(ctx context.Context, s transferSource, number uint64) (chain.BlockTransfers, error) {
	answer, err := s.GetBlockByNum2(ctx, &api.NumberMessage{Num: int64(number)})
	if err != nil {
		return chain.BlockTransfers{}, err
	}
	block, err := header(answer)
	if err != nil {
		return chain.BlockTransfers{}, err
	}
	if block.Number != number {
		return chain.BlockTransfers{}, chain.Errorf(chain.ReasonProtocol, "asked for block %d, got block %d", number, block.Number)
	}
	list, err := s.GetTransactionInfoByBlockNum(ctx, &api.NumberMessage{Num: int64(number)})
	if err != nil {
		return chain.BlockTransfers{}, err
	}
	receipts := make(map[string]*core.TransactionInfo, len(list.GetTransactionInfo()))
	for _, info := range list.GetTransactionInfo() {
		receipts[hex.EncodeToString(info.GetId())] = info
	}
	out := chain.BlockTransfers{Block: block}
	for _, t := range answer.GetTransactions() {
		moved, err := c.blockMovements(t, receipts, block)
		if chain.ReasonOf(err) == chain.ReasonProtocol { // one odd event must not hide the rest of the block
			out.Unreadable = append(out.Unreadable, chain.Unreadable{TxID: hex.EncodeToString(t.GetTxid()), Detail: err.Error()})
			continue
		}
		if err != nil {
			return chain.BlockTransfers{}, err
		}
		out.Movements = append(out.Movements, moved...)
	}
	return out, nil
}

func (c *Client) blockMovements(t *api.TransactionExtention, receipts map[string]*core.TransactionInfo, block chain.Block) ([]chain.Movement, error) {
	tx, id := t.GetTransaction(), hex.EncodeToString(t.GetTxid())
	info, ok := receipts[id]
	if !ok || info.GetBlockNumber() != int64(block.Number) {
		return nil, chain.Errorf(chain.ReasonUnavailable, "the node has no receipt for transaction %s of block %d", id, block.Number)
	}
	if good, _ := verdict(tx, info); !good {
		return nil, nil
	}
	return c.movements(id, tx.GetRawData(), info)
}
