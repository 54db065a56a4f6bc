package ethereum

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

// Broadcast sends signed bytes to every configured node at once. The best response counts.
func (c *Client) Broadcast(ctx context.Context, raw []byte) (chain.Broadcast, error) {
	tx, err := decodeSigned(raw)
	if err != nil {
		return chain.Broadcast{}, err
	}
	if tx.ChainId().Cmp(c.chainID()) != 0 {
		return chain.Broadcast{}, chain.Errorf(chain.ReasonProtocol, "the transaction is for the chain %s, not for %s", tx.ChainId(), c.chainID())
	}
	return endpoints.Offer(ctx, c.nodes, connected(func(ctx context.Context, conn *rpc.Client) (chain.Broadcast, error) {
		var got common.Hash
		err := conn.CallContext(ctx, &got, "eth_sendRawTransaction", hexutil.Bytes(raw))
		if e, ok := errors.AsType[rpc.Error](err); ok {
			return readRefusal(e), nil
		}
		if err == nil && got != tx.Hash() {
			return chain.Broadcast{State: chain.BroadcastUnknown, Code: "WRONG_ID", Text: "the node accepted it as " + got.Hex()}, nil
		}
		return chain.Broadcast{State: chain.BroadcastAccepted, Code: "OK"}, err
	})), nil
}

// refusals maps the error texts of nodes for a broadcast: those of go-ethereum, of Foundry's anvil (compared in reference
// runs), and of Nethermind, Besu and Erigon where they differ. The API has no codes for them (execution-apis). The order
// matters where one text contains another. They suggest when to try again; they are no proof.
var refusals = []struct {
	text  string
	state chain.BroadcastState
	code  string
}{
	{"already known", chain.BroadcastKnown, "ALREADY_KNOWN"},
	{"alreadyknown", chain.BroadcastKnown, "ALREADY_KNOWN"},
	{"already imported", chain.BroadcastKnown, "ALREADY_KNOWN"},
	{"known transaction", chain.BroadcastKnown, "ALREADY_KNOWN"},
	{"nonce too low", chain.BroadcastRejected, "NONCE_TOO_LOW"},
	{"oldnonce", chain.BroadcastRejected, "NONCE_TOO_LOW"},
	{"nonce too high", chain.BroadcastRejected, "NONCE_TOO_HIGH"},
	{"underpriced", chain.BroadcastRejected, "UNDERPRICED"},
	{"insufficient funds", chain.BroadcastRejected, "INSUFFICIENT_FUNDS"},
	{"intrinsic gas too low", chain.BroadcastRejected, "GAS_TOO_LOW"},
	{"exceeds block gas limit", chain.BroadcastRejected, "GAS_TOO_HIGH"},
	{"less than block base fee", chain.BroadcastRejected, "FEE_BELOW_BASE"},
	{"exceeds the configured cap", chain.BroadcastRejected, "FEE_CAP"},
	{"invalid sender", chain.BroadcastRejected, "INVALID_SENDER"},
	{"invalid chain id", chain.BroadcastRejected, "INVALID_CHAIN"},
	{"higher than max fee per gas", chain.BroadcastRejected, "TIP_ABOVE_CAP"},
}

// readRefusal maps a node's error. An unknown one (a full pool, a rate limit) says nothing about the transaction.
func readRefusal(e rpc.Error) chain.Broadcast {
	text := strings.ToLower(e.Error())
	b := chain.Broadcast{State: chain.BroadcastUnknown, Code: strconv.Itoa(e.ErrorCode()), Text: quote(e.Error())}
	if strings.Contains(text, "unknown transaction") {
		return b // it would match "known transaction"
	}
	for _, r := range refusals {
		if strings.Contains(text, r.text) {
			b.State, b.Code = r.state, r.code
			return b
		}
	}
	return b
}
