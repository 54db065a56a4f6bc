package tron

import (
	"bytes"
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// transferTopics is the topic count of a TRC-20 Transfer: its hash and two indexed addresses. A Transfer with four topics is
// a TRC-721 and moves no money.
const transferTopics = 3

// nativeIndex numbers movements of TRX within a transaction above any event, so that the numbers don't collide: first the
// transfer itself, then those that contracts made.
const nativeIndex = 1 << 20

// maxMovements bounds the events of one transaction.
const maxMovements = nativeIndex

// transferTopic is the hash that marks a Transfer event.
func transferTopic() []byte { return crypto.Keccak256([]byte("Transfer(address,address,uint256)")) }

// tokenMovements reads the Transfer events of the configured tokens. Tokens are identified by address, never by name.
// Calldata is ignored because it misses transfers that contracts make, and return values because mainnet's USDT returns
// false on success.
func (c *Client) tokenMovements(tx string, logs []*core.TransactionInfo_Log) ([]chain.Movement, error) {
	if len(logs) >= maxMovements {
		return nil, chain.Errorf(chain.ReasonProtocol, "transaction %s has %d events", tx, len(logs))
	}
	topic := transferTopic()
	var out []chain.Movement
	for i, l := range logs {
		contract, ok := fromLog(l.GetAddress())
		asset, ours := c.assets[contract]
		if !ok || !ours || len(l.GetTopics()) != transferTopics || !bytes.Equal(l.GetTopics()[0], topic) {
			continue
		}
		from, okFrom := fromWord(l.GetTopics()[1])
		to, okTo := fromWord(l.GetTopics()[2])
		if !okFrom || !okTo || len(l.GetData()) != wordLength {
			return nil, chain.Errorf(chain.ReasonProtocol, "event %d of transaction %s is a malformed Transfer of %s", i, tx, asset)
		}
		amount, err := units(asset, new(big.Int).SetBytes(l.GetData()))
		if err != nil {
			return nil, err
		}
		out = append(out, chain.Movement{TxID: tx, Index: uint32(i), From: from.String(), To: to.String(), Amount: amount})
	}
	return out, nil
}

// nativeMovements reads a successful transaction's movements of TRX: its own transfer or call value, and the transfers that
// contracts made, if the node keeps them (vm.saveInternalTx).
func nativeMovements(tx string, raw *core.TransactionRaw, internal []*core.InternalTransaction) ([]chain.Movement, error) {
	var out []chain.Movement
	add := func(from, to []byte, sun int64) {
		source, okFrom := fromLog(from)
		target, okTo := fromLog(to)
		if okFrom && okTo && sun > 0 && source != target {
			out = append(out, chain.Movement{
				TxID: tx, From: source.String(), To: target.String(), Amount: sunOf(sun),
				Index: nativeIndex,
			})
		}
	}
	for _, contract := range raw.GetContract() {
		message, err := contract.GetParameter().UnmarshalNew()
		if err != nil {
			continue // a kind of contract that this version does not support moves no coin of ours
		}
		switch m := message.(type) {
		case *core.TransferContract:
			add(m.GetOwnerAddress(), m.GetToAddress(), m.GetAmount())
		case *core.TriggerSmartContract:
			add(m.GetOwnerAddress(), m.GetContractAddress(), m.GetCallValue())
		}
	}
	if len(internal) >= math.MaxInt32-nativeIndex {
		return nil, chain.Errorf(chain.ReasonProtocol, "transaction %s has %d inner transactions", tx, len(internal))
	}
	for i, inner := range internal {
		if inner.GetRejected() || !movesCoin[string(inner.GetNote())] {
			continue
		}
		for _, v := range inner.GetCallValueInfo() {
			if v.GetTokenId() != "" {
				continue
			}
			before := len(out)
			add(inner.GetCallerAddress(), inner.GetTransferToAddress(), v.GetCallValue())
			if len(out) > before {
				out[before].Index = nativeIndex + 1 + uint32(i)
			}
		}
	}
	return out, nil
}

// movesCoin has the kinds of inner transactions that transfer TRX. The others (staking, delegating) also have an amount, but
// it does not become the other account's (java-tron Program.addInternalTx).
var movesCoin = map[string]bool{"call": true, "create": true, "suicide": true}

// movements reads everything that an included transaction moved.
func (c *Client) movements(tx string, raw *core.TransactionRaw, info *core.TransactionInfo) ([]chain.Movement, error) {
	tokens, err := c.tokenMovements(tx, info.GetLog())
	if err != nil {
		return nil, err
	}
	native, err := nativeMovements(tx, raw, info.GetInternalTransactions())
	return append(tokens, native...), err
}

// outOfEnergy is the code of a contract call that the sender's energy, its TRX for more, or the fee limit did not cover. All of the
// fee limit that the sender had is burnt, and nothing is moved.
var outOfEnergy = core.Transaction_Result_OUT_OF_ENERGY.String()

// verdict reads whether an included transaction succeeded, and the network's result code. The result of a contract call is
// in its receipt, that of a plain transfer in the transaction. Only an explicit success is success.
func verdict(tx *core.Transaction, info *core.TransactionInfo) (ok bool, code string) {
	result := info.GetReceipt().GetResult()
	if result == core.Transaction_Result_DEFAULT && len(tx.GetRet()) > 0 {
		result = tx.GetRet()[0].GetContractRet()
	}
	good := result == core.Transaction_Result_SUCCESS && info.GetResult() == core.TransactionInfo_SUCESS
	return good, result.String()
}

// feeOf is what the sender paid.
func feeOf(info *core.TransactionInfo) money.Amount { return sunOf(info.GetFee()) }
