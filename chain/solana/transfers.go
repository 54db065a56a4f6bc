package solana

import (
	"context"

	"kivuko/chain"
)

// Transfers lists the movements in the block of one slot. A slot that does not exist yet, or whose block no node has, is
// ReasonUnavailable; one that will never have a block is Skipped.
func (c *Client) Transfers(ctx context.Context, slot uint64) (chain.BlockTransfers, error) {
	return ask(ctx, c.nodes, func(ctx context.Context, n *node) (chain.BlockTransfers, error) {
		final, err := call[uint64](ctx, n, "getSlot", options{"commitment": finalized})
		if err != nil {
			return chain.BlockTransfers{}, err
		}
		commitment := finalized
		if slot > final {
			commitment = confirmed
			latest, err := call[uint64](ctx, n, "getSlot", options{"commitment": confirmed})
			if err != nil {
				return chain.BlockTransfers{}, err
			}
			if slot > latest {
				return chain.BlockTransfers{}, chain.Errorf(chain.ReasonUnavailable, "slot %d does not exist yet, the newest is %d", slot, latest)
			}
		}
		b, err := readBlock(ctx, n, slot, commitment, "full")
		switch rpcCode(err) {
		case codeSlotSkipped, codeSlotSkippedArchive:
			return skipped(ctx, n, slot, final)
		case codeUnsupportedVersion:
			return chain.BlockTransfers{}, chain.Wrap(chain.ReasonProtocol, err, "block %d holds a transaction in a format newer than %d", slot, maxVersion)
		}
		if err != nil {
			return chain.BlockTransfers{}, err
		}
		return c.transfersOf(b, slot)
	})
}

// transfersOf reads the transactions of a block. Each must have its balances: a node that does not keep them must never look
// like a block without deposits.
func (c *Client) transfersOf(b *blockAnswer, slot uint64) (chain.BlockTransfers, error) {
	at, err := b.header(slot)
	if err != nil {
		return chain.BlockTransfers{}, err
	}
	if b.Transactions == nil {
		return chain.BlockTransfers{}, chain.Errorf(chain.ReasonUnavailable, "the node returned block %d without its transactions", slot)
	}
	out := chain.BlockTransfers{Block: at}
	for i := range b.Transactions {
		tx := &b.Transactions[i]
		e, err := c.effect(tx)
		if chain.ReasonOf(err) == chain.ReasonProtocol && len(tx.Transaction.Signatures) > 0 { // it must not hide the rest of the block
			out.Unreadable = append(out.Unreadable, chain.Unreadable{TxID: tx.Transaction.Signatures[0], Detail: err.Error()})
			continue
		}
		if err != nil {
			return chain.BlockTransfers{}, err
		}
		out.Movements = append(out.Movements, e.moved...)
	}
	return out, nil
}

// skipped proves that a slot has no block. Nodes return the same code for a skipped slot and for a block that they lack, and
// a missed block is a lost deposit. The proof is the next final block, if its parent is older than the slot.
func skipped(ctx context.Context, n *node, slot, final uint64) (chain.BlockTransfers, error) {
	unproven := chain.Errorf(chain.ReasonUnavailable, "node %s has no block in slot %d and can't prove that there is none", n.endpoint, slot)
	if slot > final {
		return chain.BlockTransfers{}, unproven
	}
	next, err := call[[]uint64](ctx, n, "getBlocksWithLimit", slot, 1, options{"commitment": finalized})
	if err != nil {
		return chain.BlockTransfers{}, err
	}
	if len(next) != 1 || next[0] <= slot {
		return chain.BlockTransfers{}, unproven
	}
	b, err := readBlock(ctx, n, next[0], finalized, "none")
	if err != nil {
		return chain.BlockTransfers{}, err
	}
	if b.ParentSlot >= slot {
		return chain.BlockTransfers{}, unproven
	}
	return chain.BlockTransfers{Block: chain.Block{Number: slot}, Skipped: true}, nil
}
