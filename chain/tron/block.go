package tron

import (
	"context"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"google.golang.org/grpc"

	"kivuko/chain"
)

const hashLength = 32

// blockSource is the common part of Wallet and WalletSolidity for reading blocks.
type blockSource interface {
	GetBlock(ctx context.Context, in *api.BlockReq, opts ...grpc.CallOption) (*api.BlockExtention, error)
	GetBlockByNum2(ctx context.Context, in *api.NumberMessage, opts ...grpc.CallOption) (*api.BlockExtention, error)
	GetNowBlock2(ctx context.Context, in *api.EmptyMessage, opts ...grpc.CallOption) (*api.BlockExtention, error)
}

// newest reads the header of a node's newest block, without its transactions if the node supports that.
func newest(ctx context.Context, s blockSource) (chain.Block, error) {
	answer, err := s.GetBlock(ctx, &api.BlockReq{})
	if unimplemented(err) {
		answer, err = s.GetNowBlock2(ctx, &api.EmptyMessage{})
	}
	if err != nil {
		return chain.Block{}, err
	}
	return header(answer)
}

// blockAt reads the header of one block.
func blockAt(ctx context.Context, s blockSource, number uint64) (chain.Block, error) {
	answer, err := s.GetBlock(ctx, &api.BlockReq{IdOrNum: strconv.FormatUint(number, 10)})
	if unimplemented(err) {
		answer, err = s.GetBlockByNum2(ctx, &api.NumberMessage{Num: int64(number)})
	}
	if err != nil {
		return chain.Block{}, err
	}
	b, err := header(answer)
	if err == nil && b.Number != number {
		err = chain.Errorf(chain.ReasonProtocol, "asked for block %d, got block %d", number, b.Number)
	}
	return b, err
}

// header reads a block's header. A node without the block returns an empty message.
func header(b *api.BlockExtention) (chain.Block, error) {
	raw := b.GetBlockHeader().GetRawData()
	if raw == nil || len(b.GetBlockid()) == 0 {
		return chain.Block{}, chain.Errorf(chain.ReasonUnavailable, "the node does not have the block")
	}
	if len(b.GetBlockid()) != hashLength || raw.GetNumber() < 0 || raw.GetTimestamp() < 0 {
		return chain.Block{}, chain.Errorf(chain.ReasonProtocol, "a block header has an id of %d bytes, number %d, time %d",
			len(b.GetBlockid()), raw.GetNumber(), raw.GetTimestamp())
	}
	return chain.Block{
		Number: uint64(raw.GetNumber()),
		ID:     hex.EncodeToString(b.GetBlockid()),
		Parent: hex.EncodeToString(raw.GetParentHash()),
		Time:   time.UnixMilli(raw.GetTimestamp()).UTC(),
	}, nil
}

// Head reads the newest block of a full node and the newest final one of a solidity node.
func (c *Client) Head(ctx context.Context) (chain.Head, error) {
	final, err := ask(ctx, c.solid, func(ctx context.Context, n *node) (chain.Block, error) { return newest(ctx, n.solidity) })
	if err != nil {
		return chain.Head{}, err
	}
	latest, err := ask(ctx, c.full, func(ctx context.Context, n *node) (chain.Block, error) { return newest(ctx, n.wallet) })
	if err != nil {
		return chain.Head{}, err
	}
	return headOf(latest, final), nil
}

// headOf joins the responses of two nodes. A full node may lag behind a solidity node, so the newest block is at least the
// final one.
func headOf(latest, final chain.Block) chain.Head {
	if latest.Number < final.Number {
		latest = final
	}
	return chain.Head{Latest: latest, Final: final}
}
