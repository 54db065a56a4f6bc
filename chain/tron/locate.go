package tron

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/grpc"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

// found is a transaction in a block of one node.
type found struct {
	tx    *core.Transaction
	info  *core.TransactionInfo
	block chain.Block
}

// transactionSource is the common part of Wallet and WalletSolidity for finding transactions.
type transactionSource interface {
	blockSource
	GetTransactionById(ctx context.Context, in *api.BytesMessage, opts ...grpc.CallOption) (*core.Transaction, error)
	GetTransactionInfoById(ctx context.Context, in *api.BytesMessage, opts ...grpc.CallOption) (*core.TransactionInfo, error)
}

// Locate finds a transaction. The solidity nodes are queried first; what one of them has is final. "Absent" allows another
// payment to be built, so it needs more: every reachable solidity and full node must miss it. The head is the lowest of
// theirs, read before the query, so that the absence is true of at least that chain.
func (c *Client) Locate(ctx context.Context, tx string) (chain.Location, error) {
	id, err := hex.DecodeString(tx)
	if err != nil || len(id) != hashLength {
		return chain.Location{}, chain.Errorf(chain.ReasonProtocol, "%q is not a TRON transaction id of 64 hexadecimal digits", quote([]byte(tx)))
	}
	final, err := c.locateFinal(ctx, tx, id)
	if err != nil || final.Stage == chain.StageFinal {
		return final, err
	}
	return c.locateRecent(ctx, tx, id, final.Head.Final)
}

// locateFinal queries all solidity nodes until one has the transaction.
func (c *Client) locateFinal(ctx context.Context, tx string, id []byte) (chain.Location, error) {
	return endpoints.Locate(ctx, c.solid, chain.StageFinal, func(ctx context.Context, n *node) (chain.Location, error) {
		head, err := newest(ctx, n.solidity)
		if err != nil {
			return chain.Location{}, err
		}
		f, err := lookUp(ctx, n.solidity, tx, id)
		if err != nil {
			return chain.Location{}, err
		}
		return c.location(chain.StageFinal, tx, f, headOf(head, head))
	})
}

// locateRecent queries all full nodes until one has the transaction in a block.
func (c *Client) locateRecent(ctx context.Context, tx string, id []byte, final chain.Block) (chain.Location, error) {
	return endpoints.Locate(ctx, c.full, chain.StageIncluded, func(ctx context.Context, n *node) (chain.Location, error) {
		head, err := newest(ctx, n.wallet)
		if err != nil {
			return chain.Location{}, err
		}
		// Query the pending state before the included one: a transaction moves from the first to the second, so this order
		// can't miss it in between.
		waiting, err := isPending(ctx, n.wallet, id)
		if err != nil {
			return chain.Location{}, err
		}
		f, err := lookUp(ctx, n.wallet, tx, id)
		if errors.Is(err, errNoReceipt) { // a full node also has pending transactions
			waiting, err = true, nil
		}
		if err != nil {
			return chain.Location{}, err
		}
		l, err := c.location(chain.StageIncluded, tx, f, headOf(head, final))
		if l.Stage == chain.StageAbsent && waiting {
			l.Stage = chain.StagePending
		}
		return l, err
	})
}

// isPending asks whether a transaction waits for a block. Not every node supports it.
func isPending(ctx context.Context, w api.WalletClient, id []byte) (bool, error) {
	tx, err := w.GetTransactionFromPending(ctx, &api.BytesMessage{Value: id})
	if unimplemented(err) {
		return false, nil
	}
	return tx.GetRawData() != nil, err
}

var errNoReceipt = fmt.Errorf("%w without a receipt", endpoints.ErrSeen)

// lookUp reads a transaction and its receipt; nil when the node has it in no block. "Not found" is an empty message without
// an error. A node without receipts (storage.transHistory.switch) still has transactions, so both are requested.
func lookUp(ctx context.Context, s transactionSource, tx string, id []byte) (*found, error) {
	info, err := s.GetTransactionInfoById(ctx, &api.BytesMessage{Value: id})
	if err != nil {
		return nil, err
	}
	body, err := s.GetTransactionById(ctx, &api.BytesMessage{Value: id})
	switch {
	case err != nil:
		return nil, err
	case len(info.GetId()) == 0 && body.GetRawData() == nil:
		return nil, nil
	case len(info.GetId()) == 0:
		return nil, chain.Wrap(chain.ReasonUnavailable, errNoReceipt, "the node has the transaction %s but not its receipt", tx)
	}
	if body.GetRawData() == nil {
		return nil, chain.Wrap(chain.ReasonUnavailable, endpoints.ErrSeen, "the node has the receipt of %s but not the transaction", tx)
	}
	got, err := txID(body.GetRawData())
	if err != nil {
		return nil, err
	}
	if got != tx || hex.EncodeToString(info.GetId()) != tx || info.GetBlockNumber() <= 0 {
		return nil, chain.Errorf(chain.ReasonProtocol, "asked for transaction %s, got %s with the receipt of %x in block %d",
			tx, got, info.GetId(), info.GetBlockNumber())
	}
	block, err := blockAt(ctx, s, uint64(info.GetBlockNumber()))
	if err != nil {
		return nil, err
	}
	return &found{tx: body, info: info, block: block}, nil
}

// location describes what was found, or that it was not found.
func (c *Client) location(stage chain.Stage, tx string, f *found, head chain.Head) (chain.Location, error) {
	if f == nil {
		return chain.Location{Stage: chain.StageAbsent, Head: head}, nil
	}
	l := chain.Location{Stage: stage, Block: f.block, Fee: feeOf(f.info), Head: head}
	if l.OK, l.Code = verdict(f.tx, f.info); !l.OK {
		l.OutOfGas = l.Code == outOfEnergy
		return l, nil // the effects of a failed transaction were undone
	}
	moved, err := c.movements(tx, f.tx.GetRawData(), f.info)
	if err != nil {
		return chain.Location{}, err
	}
	l.Transfers = moved
	return l, nil
}
