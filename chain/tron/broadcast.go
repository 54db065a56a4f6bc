package tron

import (
	"context"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

// Broadcast sends signed bytes to every configured full node at once. The best response counts.
func (c *Client) Broadcast(ctx context.Context, raw []byte) (chain.Broadcast, error) {
	tx, err := decodeSigned(raw)
	if err != nil {
		return chain.Broadcast{}, err
	}
	return endpoints.Offer(ctx, c.full, func(ctx context.Context, n *node) (chain.Broadcast, error) {
		answer, err := n.wallet.BroadcastTransaction(ctx, tx)
		if err != nil {
			return chain.Broadcast{}, err
		}
		return readBroadcast(answer), nil
	}), nil
}

// broadcastStates maps java-tron's codes for a broadcast (Wallet.broadcastTransaction). DUP_TRANSACTION_ERROR means that the
// node has seen the transaction, included or not. The busy and disconnected codes, and OTHER_ERROR, say nothing about the
// transaction.
var broadcastStates = map[api.ReturnResponseCode]chain.BroadcastState{
	api.Return_DUP_TRANSACTION_ERROR:           chain.BroadcastKnown,
	api.Return_SIGERROR:                        chain.BroadcastRejected,
	api.Return_CONTRACT_VALIDATE_ERROR:         chain.BroadcastRejected,
	api.Return_CONTRACT_EXE_ERROR:              chain.BroadcastRejected,
	api.Return_BANDWITH_ERROR:                  chain.BroadcastRejected,
	api.Return_TAPOS_ERROR:                     chain.BroadcastRejected,
	api.Return_TOO_BIG_TRANSACTION_ERROR:       chain.BroadcastRejected,
	api.Return_TRANSACTION_EXPIRATION_ERROR:    chain.BroadcastRejected,
	api.Return_SERVER_BUSY:                     chain.BroadcastUnknown,
	api.Return_NO_CONNECTION:                   chain.BroadcastUnknown,
	api.Return_NOT_ENOUGH_EFFECTIVE_CONNECTION: chain.BroadcastUnknown,
	api.Return_BLOCK_UNSOLIDIFIED:              chain.BroadcastUnknown,
	api.Return_OTHER_ERROR:                     chain.BroadcastUnknown,
}

// readBroadcast maps a node's response. An empty message also has the success code, because that is zero in the encoding, so
// success requires the result to be true.
func readBroadcast(r *api.Return) chain.Broadcast {
	b := chain.Broadcast{State: chain.BroadcastUnknown, Code: r.GetCode().String(), Text: quote(r.GetMessage())}
	switch {
	case r.GetCode() == api.Return_SUCCESS && r.GetResult():
		b.State = chain.BroadcastAccepted
	case r.GetCode() == api.Return_SUCCESS:
		b.Code = "NO_RESULT"
	default:
		if s, known := broadcastStates[r.GetCode()]; known {
			b.State = s
		}
	}
	return b
}
