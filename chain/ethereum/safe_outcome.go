package ethereum

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// logRange is how many blocks are searched for events at once: what nodes of providers allow at least.
const logRange = 1_000

// The events with which a Safe reports what it carried out, with the hash of the SafeTx as their first topic. Each uses up one
// number. A call that fails is reverted with its number, unless the SafeTx has a gas amount or a refund.
var (
	successTopic = crypto.Keccak256Hash([]byte("ExecutionSuccess(bytes32,uint256)"))
	failureTopic = crypto.Keccak256Hash([]byte("ExecutionFailure(bytes32,uint256)"))
)

// Outcome reads what became of a SafeTx from the account's number and its events, because anyone may carry out what the owners
// signed: the payer's own transaction may fail while the SafeTx was executed, or be undone while another takes its place. So no
// id of an execution is needed.
func (c *Client) Outcome(ctx context.Context, j chain.Joint, _ ...string) (chain.JointOutcome, error) {
	account, _, err := c.rebuilt(j)
	if err != nil {
		return chain.JointOutcome{}, err
	}
	return ask(ctx, c.nodes, func(ctx context.Context, conn *rpc.Client) (chain.JointOutcome, error) {
		head, err := readHead(ctx, conn)
		if err != nil {
			return chain.JointOutcome{}, err
		}
		if head.Final.Number < j.Block.Number {
			return chain.JointOutcome{}, chain.Errorf(chain.ReasonUnavailable,
				"the node's final block is %d, the joint transaction was prepared at %d", head.Final.Number, j.Block.Number)
		}
		final, err := numberOf(ctx, conn, account, head.Final)
		if err != nil {
			return chain.JointOutcome{}, err
		}
		if final > j.Sequence {
			return c.decided(ctx, conn, account, j, head.Final, final-j.Sequence)
		}
		return c.undecided(ctx, conn, account, j, head)
	})
}

// numberOf is the next number of a Safe at a block.
func numberOf(ctx context.Context, conn *rpc.Client, account common.Address, b chain.Block) (uint64, error) {
	var value common.Hash
	err := conn.CallContext(ctx, &value, "eth_getStorageAt", account, slotNonce, at(b))
	return value.Big().Uint64(), err
}

// executions lists a Safe's executions in a range of blocks, oldest first.
func executions(ctx context.Context, conn *rpc.Client, account common.Address, from, to uint64) ([]types.Log, error) {
	var logs []types.Log
	err := conn.CallContext(ctx, &logs, "eth_getLogs", map[string]any{
		"address": account, "fromBlock": tagOf(from), "toBlock": tagOf(to), "topics": []any{[]common.Hash{successTopic, failureTopic}},
	})
	for _, l := range logs {
		if l.Address != account || len(l.Topics) != 2 || l.BlockNumber < from || l.BlockNumber > to {
			return nil, chain.Errorf(chain.ReasonProtocol,
				"the node lists event %d of block %d, which was not asked for", l.Index, l.BlockNumber)
		}
	}
	return logs, err
}

// decided is the outcome when a final transaction has used the number. The number is behind the last `back` executions, of which
// the first used it. A node must show all of them: one that leaves some out must never look like a proof that a payment was
// not made.
func (c *Client) decided(
	ctx context.Context, conn *rpc.Client, account common.Address, j chain.Joint, final chain.Block, back uint64,
) (chain.JointOutcome, error) {
	var found []types.Log
	for to := final.Number; uint64(len(found)) < back && to > j.Block.Number; {
		from := max(j.Block.Number, to-min(to, logRange)) + 1
		logs, err := executions(ctx, conn, account, from, to)
		if err != nil {
			return chain.JointOutcome{}, err
		}
		found, to = append(logs, found...), from-1
	}
	if at := slices.IndexFunc(found, func(l types.Log) bool { return l.Topics[1] == common.BytesToHash(j.Digest) }); at >= 0 {
		return c.carriedOut(ctx, conn, j, found[at])
	}
	if uint64(len(found)) < back {
		return chain.JointOutcome{}, chain.Errorf(chain.ReasonUnavailable,
			"%s carried out %d transactions from the number %d on, the node lists %d", account, back, j.Sequence, len(found))
	}
	o := chain.JointOutcome{State: chain.JointSuperseded}
	var err error
	o.TxID, o.Location, err = c.evidence(ctx, conn, found[uint64(len(found))-back])
	return o, err
}

// undecided is the outcome while no final transaction has used the number: open, unless a block that may be undone has this
// very SafeTx.
func (c *Client) undecided(
	ctx context.Context, conn *rpc.Client, account common.Address, j chain.Joint, head chain.Head,
) (chain.JointOutcome, error) {
	open := chain.JointOutcome{State: chain.JointOpen, Location: chain.Location{Stage: chain.StageAbsent, Head: head}}
	latest, err := numberOf(ctx, conn, account, head.Latest)
	if err != nil || latest <= j.Sequence {
		return open, err
	}
	logs, err := executions(ctx, conn, account, head.Final.Number+1, head.Latest.Number)
	if err != nil {
		return open, err
	}
	for _, l := range logs {
		if l.Topics[1] == common.BytesToHash(j.Digest) {
			return c.carriedOut(ctx, conn, j, l)
		}
	}
	return open, nil
}

// evidence is the transaction of an event.
func (c *Client) evidence(ctx context.Context, conn *rpc.Client, event types.Log) (string, chain.Location, error) {
	l, err := c.locate(ctx, conn, event.TxHash)
	if err == nil && l.Block.ID != event.BlockHash.Hex() {
		err = chain.Errorf(chain.ReasonUnavailable, "the block %d of execution %s is being replaced", event.BlockNumber, event.TxHash)
	}
	return event.TxHash.Hex(), l, err
}

// carriedOut is the outcome of a SafeTx whose execution an event reports.
func (c *Client) carriedOut(ctx context.Context, conn *rpc.Client, j chain.Joint, event types.Log) (chain.JointOutcome, error) {
	o := chain.JointOutcome{State: chain.JointIncluded}
	var err error
	if o.TxID, o.Location, err = c.evidence(ctx, conn, event); err != nil {
		return o, err
	}
	if o.Location.Transfers, err = withEther(ctx, conn, j, event, o.Location.Transfers); err != nil {
		return o, err
	}
	switch {
	case o.Location.Stage != chain.StageFinal:
	case event.Topics[0] == successTopic && does(j, o.Location.Transfers):
		o.State = chain.JointExecuted
	default:
		o.State = chain.JointFailed
	}
	return o, nil
}

// does reports whether movements have the joint transaction's payment, exactly.
func does(j chain.Joint, moved []chain.Movement) bool {
	return j.Transfer == nil || slices.ContainsFunc(moved, func(m chain.Movement) bool {
		return m.From == j.Transfer.From && m.To == j.Transfer.To && m.Amount.Equal(j.Transfer.Amount)
	})
}

// withEther adds the ether that a SafeTx moves. Contracts' ether has no event of its own; but the account reports the success of
// a SafeTx only when its call, with the ether, has succeeded.
func withEther(
	ctx context.Context, conn *rpc.Client, j chain.Joint, event types.Log, moved []chain.Movement,
) ([]chain.Movement, error) {
	if j.Transfer == nil || j.Transfer.Amount.Asset() != money.ETH || event.Topics[0] != successTopic {
		return moved, nil
	}
	var r *types.Receipt
	if err := conn.CallContext(ctx, &r, "eth_getTransactionReceipt", event.TxHash); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errors.New("the receipt is gone")
	}
	at := slices.IndexFunc(r.Logs, func(l *types.Log) bool {
		return l.Address == event.Address && len(l.Topics) == 2 && l.Topics[0] == event.Topics[0] && l.Topics[1] == event.Topics[1]
	})
	if at < 0 || r.BlockHash != event.BlockHash {
		return nil, chain.Errorf(chain.ReasonUnavailable,
			"the receipt of execution %s has not its event: its block is being replaced", event.TxHash)
	}
	return append(moved, chain.Movement{
		TxID: event.TxHash.Hex(), Index: uint32(at), From: j.Transfer.From, To: j.Transfer.To, Amount: j.Transfer.Amount,
	}), nil
}
