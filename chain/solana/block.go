package solana

import (
	"context"
	"time"

	"kivuko/chain"
)

// The commitments that are used. Processed blocks may vanish; confirmed ones practically never do; finalized ones are final.
const (
	confirmed = "confirmed"
	finalized = "finalized"
)

// maxVersion is the newest transaction format that is supported. Nodes refuse to return blocks with newer ones. Formats 0
// and 1 (SIMD-0385) list accounts and balances in the same way, which is all that we read.
const maxVersion = 1

// headReads is how often the newest block is requested: a node may report a slot shortly before it can return the block.
const headReads = 3

// blockAnswer is the response to getBlock.
type blockAnswer struct {
	Blockhash         string     `json:"blockhash"`
	PreviousBlockhash string     `json:"previousBlockhash"`
	ParentSlot        uint64     `json:"parentSlot"`
	BlockHeight       *uint64    `json:"blockHeight"`
	BlockTime         *int64     `json:"blockTime"`
	Transactions      []txAnswer `json:"transactions"`
}

// readBlock reads one block, with or without its transactions. A node without the block returns an error or null.
func readBlock(ctx context.Context, n *node, slot uint64, commitment, details string) (*blockAnswer, error) {
	answer, err := call[*blockAnswer](ctx, n, "getBlock", slot, options{
		"commitment": commitment, "transactionDetails": details, "rewards": false,
		"encoding": "json", "maxSupportedTransactionVersion": maxVersion,
	})
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, chain.Errorf(chain.ReasonUnavailable, "node %s does not have block %d", n.endpoint, slot)
	}
	return answer, nil
}

// header reads the fields that identify a block.
func (b *blockAnswer) header(slot uint64) (chain.Block, error) {
	_, errID := readHash(b.Blockhash)
	_, errParent := readHash(b.PreviousBlockhash)
	if errID != nil || errParent != nil || (slot > 0 && b.ParentSlot >= slot) {
		return chain.Block{}, chain.Errorf(chain.ReasonProtocol, "block %d has the id %q, the parent %q in slot %d",
			slot, quote(b.Blockhash), quote(b.PreviousBlockhash), b.ParentSlot)
	}
	if b.BlockHeight == nil || b.BlockTime == nil || *b.BlockHeight > slot {
		return chain.Block{}, chain.Errorf(chain.ReasonUnavailable, "the node has no height or time for block %d", slot)
	}
	return chain.Block{
		Number: slot, ID: b.Blockhash, Parent: b.PreviousBlockhash,
		Height: *b.BlockHeight, Time: time.Unix(*b.BlockTime, 0).UTC(),
	}, nil
}

// headerAt reads the header of one block.
func headerAt(ctx context.Context, n *node, slot uint64, commitment string) (chain.Block, error) {
	b, err := readBlock(ctx, n, slot, commitment, "none")
	if err != nil {
		return chain.Block{}, err
	}
	return b.header(slot)
}

// newest reads the header of the newest block of a commitment.
func newest(ctx context.Context, n *node, commitment string) (chain.Block, error) {
	var b chain.Block
	var err error
	for range headReads {
		var slot uint64
		if slot, err = call[uint64](ctx, n, "getSlot", options{"commitment": commitment}); err != nil {
			return chain.Block{}, err
		}
		if b, err = headerAt(ctx, n, slot, commitment); rpcCode(err) != codeBlockNotAvailable {
			return b, err
		}
	}
	return b, err
}

// readHead reads both ends, the final one first, so that the newest is never behind it on one node.
func readHead(ctx context.Context, n *node) (chain.Head, error) {
	final, err := newest(ctx, n, finalized)
	if err != nil {
		return chain.Head{}, err
	}
	latest, err := newest(ctx, n, confirmed)
	if err != nil {
		return chain.Head{}, err
	}
	if latest.Number < final.Number {
		latest = final // machines behind one address may lag; a final block is also known
	}
	return chain.Head{Latest: latest, Final: final}, nil
}

// Head reads the newest confirmed block and the newest finalized one.
func (c *Client) Head(ctx context.Context) (chain.Head, error) {
	return ask(ctx, c.nodes, readHead)
}
