package ethereum

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// transferTopics is the topic count of an ERC-20 Transfer: its hash and two indexed addresses. A Transfer with four topics
// is an ERC-721 and moves no money.
const transferTopics = 3

// nativeIndex numbers the transaction's own transfer of ether above any event, so that the numbers don't collide.
const nativeIndex = 1 << 20

// maxMovements bounds the events of one transaction.
const maxMovements = nativeIndex

// transferTopic is the hash that marks a Transfer event.
func transferTopic() common.Hash {
	return crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
}

// tokenMovements reads the Transfer events of the configured tokens from one receipt. Tokens are identified by address,
// never by name, and calldata is ignored because it misses transfers that contracts make. A movement is numbered by its
// event's place in the receipt: nodes number events within the block, and that number changes when a reorganisation includes
// the transaction again. Events with a zero amount are left out: anyone can make them between any two addresses.
func (c *Client) tokenMovements(tx string, logs []*types.Log) ([]chain.Movement, error) {
	if len(logs) >= maxMovements {
		return nil, chain.Errorf(chain.ReasonProtocol, "transaction %s has %d events", tx, len(logs))
	}
	topic := transferTopic()
	var out []chain.Movement
	for i, l := range logs {
		asset, ours := c.assets[l.Address]
		if !ours || len(l.Topics) != transferTopics || l.Topics[0] != topic {
			continue
		}
		if len(l.Data) != wordLength {
			return nil, chain.Errorf(chain.ReasonProtocol, "event %d of transaction %s is a malformed Transfer of %s", i, tx, asset)
		}
		amount, err := units(asset, new(big.Int).SetBytes(l.Data))
		if err != nil {
			return nil, err
		}
		if amount.IsZero() {
			continue
		}
		out = append(out, chain.Movement{
			TxID: tx, Index: uint32(i), From: common.BytesToAddress(l.Topics[1].Bytes()).Hex(),
			To: common.BytesToAddress(l.Topics[2].Bytes()).Hex(), Amount: amount,
		})
	}
	return out, nil
}

// movements reads what an included transaction moved; nothing if it failed. Ether that contracts pass on has no event and is
// not found here. That of Safes is found in their block (safeEther); the reconciliation of balances finds the rest.
func (c *Client) movements(t transaction, r *types.Receipt) ([]chain.Movement, error) {
	if r.Status != types.ReceiptStatusSuccessful {
		return nil, nil
	}
	out, err := c.tokenMovements(t.Hash.Hex(), r.Logs)
	if err != nil {
		return nil, err
	}
	sent := t.value()
	if sent.Sign() <= 0 || t.To == nil || *t.To == t.From {
		return out, nil
	}
	amount, err := units(money.ETH, sent)
	if err != nil {
		return nil, err
	}
	return append(out, chain.Movement{TxID: t.Hash.Hex(), Index: nativeIndex, From: t.From.Hex(), To: t.To.Hex(), Amount: amount}), nil
}
