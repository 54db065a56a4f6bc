package ethereum

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/chain/endpoints"
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
//
// "Superseded" allows another payment to be made, so it rests on no single node: every node that answers must show that the same
// other execution used the number. A node that shows the SafeTx's own final execution decides.
func (c *Client) Outcome(ctx context.Context, j chain.Joint, _ ...string) (chain.JointOutcome, error) {
	account, _, err := c.rebuilt(j)
	if err != nil {
		return chain.JointOutcome{}, err
	}
	var best chain.JointOutcome
	var failures []error
	for o, err := range endpoints.All(ctx, c.nodes, reading(func(ctx context.Context, conn *rpc.Client) (chain.JointOutcome, error) {
		return c.outcome(ctx, conn, account, j)
	})) {
		switch {
		case err != nil:
			failures = append(failures, err)
		case o.State == chain.JointExecuted || o.State == chain.JointFailed:
			return o, nil
		case o.State == chain.JointSuperseded && best.State == chain.JointSuperseded && o.TxID != best.TxID:
			return chain.JointOutcome{}, chain.Errorf(chain.ReasonUnavailable,
				"the nodes disagree on what used the number %d of %s: %s or %s", j.Sequence, account, best.TxID, o.TxID)
		case weight(o.State) > weight(best.State):
			best = o
		}
	}
	for _, err := range failures {
		impossible := chain.ReasonOf(err) != chain.ReasonUnavailable
		if best.State != chain.JointIncluded && (impossible || errors.Is(err, endpoints.ErrSeen)) {
			return chain.JointOutcome{}, err
		}
	}
	if best.State == "" {
		return best, chain.Wrap(chain.ReasonUnavailable, errors.Join(failures...), "no node shows what became of the SafeTx %s", j.ID)
	}
	return best, nil
}

// weight orders what nodes that disagree say: that another execution took the number is believed last.
func weight(s chain.JointState) int {
	switch s {
	case chain.JointIncluded:
		return 3
	case chain.JointOpen:
		return 2
	case chain.JointSuperseded:
		return 1
	case chain.JointExecuted, chain.JointFailed, chain.JointExpired: // the last does not exist on Ethereum
	}
	return 0
}

// outcome is what one node shows.
func (c *Client) outcome(ctx context.Context, conn *rpc.Client, account common.Address, j chain.Joint) (chain.JointOutcome, error) {
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
// the first used it. A node must show all of them, and the SafeTx at no other place: one that leaves some out, or has some that do
// not belong there, must never look like a proof that a payment was made or was not.
func (c *Client) decided(
	ctx context.Context, conn *rpc.Client, account common.Address, j chain.Joint, final chain.Block, back uint64,
) (chain.JointOutcome, error) {
	var found []types.Log
	for to := final.Number; to > j.Block.Number; {
		from := max(j.Block.Number, to-min(to, logRange)) + 1
		logs, err := executions(ctx, conn, account, from, to)
		if err != nil {
			return chain.JointOutcome{}, err
		}
		found, to = append(logs, found...), from-1
	}
	ours := func(l types.Log) bool { return l.Topics[1] == common.BytesToHash(j.Digest) }
	shown, seen := uint64(len(found)) >= back, slices.ContainsFunc(found, ours)
	if shown {
		switch used := found[uint64(len(found))-back]; {
		case ours(used):
			return c.carriedOut(ctx, conn, j, used)
		case !seen:
			o := chain.JointOutcome{State: chain.JointSuperseded}
			var err error
			o.TxID, o.Location, err = c.evidence(ctx, conn, used)
			return o, err
		}
	}
	err := chain.Errorf(chain.ReasonUnavailable,
		"%s carried out %d transactions from the number %d on, the node lists %d", account, back, j.Sequence, len(found))
	if seen {
		err = chain.Wrap(chain.ReasonUnavailable, fmt.Errorf("%w: %w", endpoints.ErrSeen, err),
			"the SafeTx %s is among them, not at its number", j.ID)
	}
	return chain.JointOutcome{}, err
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
	o, err := c.effect(ctx, conn, j, event)
	if e, ok := errors.AsType[*chain.Error](err); err != nil && (!ok || e.Reason == chain.ReasonUnavailable) {
		err = chain.Wrap(chain.ReasonUnavailable, fmt.Errorf("%w: %w", endpoints.ErrSeen, understood(err)),
			"the execution of the SafeTx %s in %s", j.ID, event.TxHash)
	}
	return o, err
}

func (c *Client) effect(ctx context.Context, conn *rpc.Client, j chain.Joint, event types.Log) (chain.JointOutcome, error) {
	o := chain.JointOutcome{State: chain.JointIncluded}
	var err error
	if o.TxID, o.Location, err = c.evidence(ctx, conn, event); err != nil {
		return o, err
	}
	token := j.Transfer != nil && j.Transfer.Amount.Asset() != money.ETH
	final, success := o.Location.Stage == chain.StageFinal, event.Topics[0] == successTopic
	if success && !token {
		moved, err := c.proveCall(ctx, conn, j, event)
		if err != nil && final {
			return o, err
		}
		o.Location.Transfers = append(o.Location.Transfers, moved...)
	}
	switch {
	case !final:
	case success && does(j, o.Location.Transfers):
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

// proveCall proves the execution of a SafeTx that has no event but the account's own: code that the owners let the account run could
// make that one too. It is proven by its block: the receipts match the header, and the transaction calls the account with just
// this SafeTx. The account reports a success only when its call, with the ether, has succeeded. It lists the ether.
func (c *Client) proveCall(ctx context.Context, conn *rpc.Client, j chain.Joint, event types.Log) ([]chain.Movement, error) {
	b, receipts, err := wholeBlock(ctx, conn, event.BlockNumber)
	if err != nil {
		return nil, err
	}
	in := slices.IndexFunc(b.Transactions, func(t transaction) bool { return t.Hash == event.TxHash })
	if b.Hash != event.BlockHash || in < 0 {
		return nil, chain.Errorf(chain.ReasonUnavailable, "the block %d of execution %s is being replaced", event.BlockNumber, event.TxHash)
	}
	at := slices.IndexFunc(receipts[in].Logs, func(l *types.Log) bool {
		return l.Address == event.Address && len(l.Topics) == 2 && l.Topics[0] == event.Topics[0] && l.Topics[1] == event.Topics[1]
	})
	from := b.Transactions[in]
	t, direct := readExecution(from.Input)
	t.nonce = j.Sequence
	ours := direct && from.To != nil && *from.To == event.Address && t.hash(c.chainID(), event.Address) == common.BytesToHash(j.Digest)
	if at < 0 || !ours {
		return nil, chain.Errorf(chain.ReasonUnavailable,
			"the transaction %s does not prove that it carried out the SafeTx %s: it is not the account's own call of it", event.TxHash, j.ID)
	}
	if j.Transfer == nil {
		return nil, nil
	}
	return []chain.Movement{{
		TxID: event.TxHash.Hex(), Index: uint32(at), From: j.Transfer.From, To: j.Transfer.To, Amount: j.Transfer.Amount,
	}}, nil
}
