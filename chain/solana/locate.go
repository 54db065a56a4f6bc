package solana

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

// status is the progress of a signature as a node reports it.
type status struct {
	Slot       uint64          `json:"slot"`
	Err        json.RawMessage `json:"err"`
	Commitment string          `json:"confirmationStatus"`
}

// statusOf asks for a signature's status, nil if the node has none, and the slot of the node's state. Without history only
// the last minutes are searched.
func statusOf(ctx context.Context, n *node, id string, history bool) (*status, uint64, error) {
	answer, err := call[contextAnswer[[]*status]](ctx, n, "getSignatureStatuses", []string{id}, options{"searchTransactionHistory": history})
	if err != nil {
		return nil, 0, err
	}
	if len(answer.Value) != 1 {
		return nil, 0, chain.Errorf(chain.ReasonProtocol, "asked for one status, got %d", len(answer.Value))
	}
	return answer.Value[0], answer.Context.Slot, nil
}

// Locate finds a transaction. "Absent" allows another payment to be built, so it needs more: every reachable node must miss
// it, at a state not older than the final head of the result, and must keep a long enough history. The head is the lowest of
// theirs, read before the query, so that the absence is true of at least that chain.
//
// Nodes report nothing about waiting transactions. One in a block that the cluster has not confirmed is called pending.
func (c *Client) Locate(ctx context.Context, tx string) (chain.Location, error) {
	if len(tx) < minSignatureText || len(tx) > maxSignatureText {
		return chain.Location{}, notSignature(tx)
	}
	if s, err := sdk.SignatureFromBase58(tx); err != nil || s.String() != tx {
		return chain.Location{}, notSignature(tx)
	}
	return endpoints.Locate(ctx, c.nodes, chain.StageFinal, func(ctx context.Context, n *node) (chain.Location, error) {
		return c.locateAt(ctx, n, tx)
	})
}

func notSignature(tx string) error {
	return chain.Errorf(chain.ReasonProtocol, "%q is not the id of a transaction on Solana, which is 64 bytes in base58", quote(tx))
}

// locateAt queries one node.
func (c *Client) locateAt(ctx context.Context, n *node, tx string) (chain.Location, error) {
	head, err := readHead(ctx, n)
	if err != nil {
		return chain.Location{}, err
	}
	seen, at, err := statusOf(ctx, n, tx, true)
	if err != nil {
		return chain.Location{}, err
	}
	switch {
	case seen == nil:
		return absent(ctx, n, head, at, c.config.MinHistory)
	case seen.Commitment == finalized || seen.Commitment == confirmed:
		l, err := c.found(ctx, n, tx, head, seen.Commitment)
		if e, ok := errors.AsType[*chain.Error](err); err != nil && (!ok || e.Reason == chain.ReasonUnavailable) {
			err = chain.Wrap(chain.ReasonUnavailable, fmt.Errorf("%w: %w", endpoints.ErrSeen, err), "node %s has only the status of %s", n.endpoint, tx)
		}
		return l, err
	}
	return chain.Location{Stage: chain.StagePending, Head: head}, nil
}

// absent checks the "not found" of a node. Machines behind one address differ, and one that lags behind another's head, or
// keeps a short history, proves nothing.
func absent(ctx context.Context, n *node, head chain.Head, at, minHistory uint64) (chain.Location, error) {
	if at < head.Final.Number {
		return chain.Location{}, chain.Errorf(chain.ReasonUnavailable, "node %s looked at slot %d, its final block is %d", n.endpoint, at, head.Final.Number)
	}
	first, err := call[uint64](ctx, n, "getFirstAvailableBlock")
	if err != nil {
		return chain.Location{}, err
	}
	if first > 1 && first+minHistory > head.Final.Number {
		return chain.Location{}, chain.Errorf(chain.ReasonUnavailable, "node %s keeps nothing before block %d, which is too short to prove that a transaction is absent", n.endpoint, first)
	}
	return chain.Location{Stage: chain.StageAbsent, Head: head}, nil
}

// found describes a transaction that is in a block of the commitment.
func (c *Client) found(ctx context.Context, n *node, tx string, head chain.Head, commitment string) (chain.Location, error) {
	answer, err := call[*txAnswer](ctx, n, "getTransaction", tx, options{
		"commitment": commitment, "encoding": "json", "maxSupportedTransactionVersion": maxVersion,
	})
	if err != nil {
		return chain.Location{}, err
	}
	if answer == nil {
		return chain.Location{}, chain.Errorf(chain.ReasonUnavailable, "node %s has the status of %s but not the transaction", n.endpoint, tx)
	}
	if len(answer.Transaction.Signatures) == 0 || answer.Transaction.Signatures[0] != tx {
		return chain.Location{}, chain.Errorf(chain.ReasonProtocol, "asked for transaction %s, got another one", tx)
	}
	l := chain.Location{Stage: chain.StageIncluded, Head: head, Code: succeeded}
	if commitment == finalized {
		l.Stage = chain.StageFinal
	}
	if l.Block, err = headerAt(ctx, n, answer.Slot, commitment); err != nil {
		return chain.Location{}, err
	}
	if l.Stage == chain.StageFinal && head.Final.Number < l.Block.Number {
		l.Head.Final = l.Block // it became final between the queries
	}
	if l.Head.Latest.Number < l.Block.Number {
		l.Head.Latest = l.Block
	}
	e, err := c.effect(answer)
	if err != nil {
		return chain.Location{}, err
	}
	l.Fee, l.Transfers = e.fee, e.moved
	if l.OK = e.failure == ""; !l.OK {
		l.Code = e.failure
	}
	return l, nil
}
