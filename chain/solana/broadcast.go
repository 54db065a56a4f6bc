package solana

import (
	"context"
	"encoding/json"
	"errors"

	bin "github.com/gagliardetto/binary"
	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

// Broadcast sends signed bytes to every configured node at once. The best response counts. Nodes are told neither to check
// nor to repeat them: the transaction was simulated when it was built, a lagging node's check could wrongly stop it, and the
// caller repeats.
func (c *Client) Broadcast(ctx context.Context, raw []byte) (chain.Broadcast, error) {
	id, err := decodeSigned(raw)
	if err != nil {
		return chain.Broadcast{}, err
	}
	hash, durable, err := referenceOf(raw)
	if err != nil {
		return chain.Broadcast{}, err
	}
	if durable { // the nonce account decides whether it can still be included
		hash = sdk.Hash{}
	}
	return endpoints.Offer(ctx, c.nodes, func(ctx context.Context, n *node) (chain.Broadcast, error) {
		return offer(ctx, n, raw, id, hash)
	}), nil
}

// referenceOf returns the blockhash of a transaction, and whether it is the value of a nonce account.
func referenceOf(raw []byte) (sdk.Hash, bool, error) {
	tx := &sdk.Transaction{}
	if err := tx.UnmarshalWithDecoder(bin.NewBinDecoder(raw)); err != nil {
		return sdk.Hash{}, false, chain.Errorf(chain.ReasonProtocol, "the bytes are not a signed transaction")
	}
	return tx.Message.RecentBlockhash, advances(&tx.Message), nil
}

// offer sends the bytes to one node. A node that does not check accepts bytes that it will silently drop. So it is asked
// afterwards whether the transaction is already included, and if not, whether it still knows the blockhash, unless that is
// zero.
func offer(ctx context.Context, n *node, raw []byte, id string, hash sdk.Hash) (chain.Broadcast, error) {
	got, err := callOnce[string](ctx, n, "sendTransaction", encode(raw), options{
		"encoding": "base64", "skipPreflight": true, "maxRetries": 0,
	})
	if e, ok := errors.AsType[*rpcError](err); ok {
		return readRefusal(e), nil
	}
	if err != nil {
		return chain.Broadcast{}, err
	}
	if got != id {
		return chain.Broadcast{}, chain.Errorf(chain.ReasonProtocol, "the node calls transaction %s %q", id, quote(got))
	}
	status, _, err := statusOf(ctx, n, id, false)
	if err != nil {
		return accepted(), nil //nolint:nilerr // the node has the bytes; the failed query changes nothing
	}
	if status != nil {
		return chain.Broadcast{State: chain.BroadcastKnown, Code: alreadyProcessed}, nil
	}
	if hash.IsZero() {
		return accepted(), nil
	}
	valid, err := call[contextAnswer[bool]](ctx, n, "isBlockhashValid", hash.String(), options{"commitment": "processed"})
	if err == nil && !valid.Value {
		return chain.Broadcast{State: chain.BroadcastRejected, Code: blockhashNotFound, Text: "the node does not know the blockhash, or not any more"}, nil
	}
	return accepted(), nil
}

func accepted() chain.Broadcast {
	return chain.Broadcast{State: chain.BroadcastAccepted, Code: succeeded}
}

// Errors of a transaction (transaction-error lib.rs TransactionError) that show its state.
const (
	alreadyProcessed  = "AlreadyProcessed"
	blockhashNotFound = "BlockhashNotFound"
)

// readRefusal maps a node's refusal of a broadcast. An error about the transaction rejects it; any other (a node that is
// behind, busy or broken) says nothing about it.
func readRefusal(e *rpcError) chain.Broadcast {
	var data struct {
		Err json.RawMessage `json:"err"`
	}
	_ = json.Unmarshal(e.Data, &data) // not every refusal has data of this form
	failure := failureOf(data.Err)
	b := chain.Broadcast{State: chain.BroadcastUnknown, Code: failure, Text: quote(e.Message)}
	switch {
	case failure == alreadyProcessed:
		b.State = chain.BroadcastKnown
	case e.Code == codePreflightFailure && failure != "":
		b.State = chain.BroadcastRejected
	case e.Code == codeSignatureInvalid:
		b.State, b.Code = chain.BroadcastRejected, "SignatureFailure"
	case e.Code == codeInvalidParams:
		b.State, b.Code = chain.BroadcastRejected, "InvalidParams"
	default:
		b.Code = "REFUSED"
	}
	return b
}
