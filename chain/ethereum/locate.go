package ethereum

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/chain/endpoints"
	"kivuko/exchange/money"
)

// transaction is the part of a node's transaction that this package reads.
type transaction struct {
	Hash        common.Hash     `json:"hash"`
	From        common.Address  `json:"from"`
	To          *common.Address `json:"to"`
	Value       *hexutil.Big    `json:"value"`
	Input       hexutil.Bytes   `json:"input"`
	BlockNumber *hexutil.Uint64 `json:"blockNumber"` // nil while it is pending
}

func (t transaction) value() *big.Int {
	if t.Value == nil {
		return new(big.Int)
	}
	return (*big.Int)(t.Value)
}

// The codes of a receipt's status, for which the network has no names.
const (
	codeSuccess  = "SUCCESS"
	codeReverted = "REVERTED"
)

// Locate finds a transaction. "Absent" allows another payment to be built, so it needs more: every reachable node must miss
// it and prove that it would find it. The final block of the result is the lowest of theirs, read before the query, so that
// the absence is true of at least that chain.
func (c *Client) Locate(ctx context.Context, tx string) (chain.Location, error) {
	id, err := parseID(tx)
	if err != nil {
		return chain.Location{}, err
	}
	return endpoints.Locate(ctx, c.nodes, chain.StageFinal, reading(func(ctx context.Context, conn *rpc.Client) (chain.Location, error) {
		return c.locate(ctx, conn, id)
	}))
}

func parseID(tx string) (common.Hash, error) {
	b, err := hexutil.Decode(shortened(tx))
	if err != nil || len(b) != common.HashLength {
		return common.Hash{}, chain.Errorf(chain.ReasonProtocol, "%q is not an Ethereum transaction id of 0x and 64 hexadecimal digits", quote(tx))
	}
	return common.BytesToHash(b), nil
}

// shortened keeps long texts, which can't be an id, from being decoded.
func shortened(s string) string {
	if len(s) > maxTextLength {
		return ""
	}
	return s
}

// locate queries one node. It queries the transaction before its receipt: a pending transaction becomes included, so this
// order can't miss it in between.
func (c *Client) locate(ctx context.Context, conn *rpc.Client, id common.Hash) (chain.Location, error) {
	head, err := readHead(ctx, conn)
	if err != nil {
		return chain.Location{}, err
	}
	var t *transaction
	if err := conn.CallContext(ctx, &t, "eth_getTransactionByHash", id); err != nil {
		return chain.Location{}, err
	}
	l, err := c.described(ctx, conn, id, t, head)
	if e, ok := errors.AsType[*chain.Error](err); err != nil && t != nil && (!ok || e.Reason == chain.ReasonUnavailable) {
		err = chain.Wrap(chain.ReasonUnavailable, fmt.Errorf("%w: %w", endpoints.ErrSeen, plain(err)), "the transaction %s", id)
	}
	return l, err
}

// described reads the receipt of a transaction and returns its stage.
func (c *Client) described(ctx context.Context, conn *rpc.Client, id common.Hash, t *transaction, head chain.Head) (chain.Location, error) {
	var r *types.Receipt
	if err := conn.CallContext(ctx, &r, "eth_getTransactionReceipt", id); err != nil {
		return chain.Location{}, err
	}
	switch {
	case t == nil && r == nil:
		return absent(ctx, conn, head)
	case r == nil && t.BlockNumber == nil:
		return chain.Location{Stage: chain.StagePending, Head: head}, nil
	case t == nil || r == nil:
		return chain.Location{}, chain.Wrap(chain.ReasonUnavailable, endpoints.ErrSeen, "the node has only a part of the transaction %s: its block is being added or removed", id)
	case t.Hash != id || r.TxHash != id || r.BlockNumber == nil || !r.BlockNumber.IsUint64():
		return chain.Location{}, chain.Errorf(chain.ReasonProtocol, "asked for transaction %s, got %s with the receipt of %s", id, t.Hash, r.TxHash)
	}
	return c.included(ctx, conn, *t, r, head)
}

// included describes a transaction with a receipt. Nodes keep receipts of blocks that were undone, so the receipt's block
// must be the one at its height.
func (c *Client) included(ctx context.Context, conn *rpc.Client, t transaction, r *types.Receipt, head chain.Head) (chain.Location, error) {
	h, err := readHeader(ctx, conn, tagOf(r.BlockNumber.Uint64()))
	if err != nil {
		return chain.Location{}, err
	}
	if h.Hash != r.BlockHash {
		return chain.Location{}, chain.Errorf(chain.ReasonUnavailable, "the block %d of transaction %s is being replaced", uint64(h.Number), t.Hash)
	}
	l := chain.Location{Stage: chain.StageIncluded, Block: h.block(), Code: codeReverted, Fee: feeOf(r), Head: head}
	if l.Block.Number <= head.Final.Number {
		l.Stage = chain.StageFinal
	}
	if l.Block.Number > head.Latest.Number {
		l.Head.Latest = l.Block // the block was made after the head was read
	}
	if r.Status == types.ReceiptStatusSuccessful {
		l.OK, l.Code = true, codeSuccess
	}
	l.Transfers, err = c.movements(t, r)
	return l, err
}

// feeOf is what the sender paid.
func feeOf(r *types.Receipt) money.Amount {
	if r.EffectiveGasPrice == nil {
		return money.Zero(money.ETH)
	}
	return eth(new(big.Int).Mul(r.EffectiveGasPrice, new(big.Int).SetUint64(r.GasUsed)))
}
