package tron

import (
	"bytes"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

// What tests compare a product's books with: the chain read directly, not
// through the interface under test.

// maxListed bounds the lists below; the newest entries win.
const maxListed = 10_000

// Movement is one change of hands of TRX or a token.
type Movement struct {
	Block       int64  `json:"block"`
	Transaction Hash   `json:"transaction"`
	LogIndex    int    `json:"log_index"` // within the transaction; -1 for TRX
	Token       string `json:"token"`     // contract address; "" for TRX
	From        string `json:"from"`
	To          string `json:"to"`
	Amount      string `json:"amount"` // sun or token units
	Solid       bool   `json:"solid"`
}

// Transaction is a transaction an address signed for, was paid by or is called in.
type Transaction struct {
	ID     Hash   `json:"id"`
	Block  int64  `json:"block"` // 0 while it waits in the pool
	Type   string `json:"type"`
	Owner  string `json:"owner"`
	Result string `json:"result"`
	Fee    int64  `json:"fee"` // sun
	Energy int64  `json:"energy"`
	Solid  bool   `json:"solid"`
}

// Summary is the node at a glance.
type Summary struct {
	Head          Block  `json:"head"`
	Solid         Block  `json:"solid"`
	Pending       int    `json:"pending"`
	Paused        bool   `json:"paused"`
	IntervalMilli int64  `json:"interval_ms"`
	Faults        Faults `json:"faults"`
	ChainID       uint64 `json:"chain_id"`
	Genesis       string `json:"genesis_address"`
	USDT          string `json:"usdt"`
	USDC          string `json:"usdc"`
	StateDigest   Hash   `json:"state_digest"`
}

var transferTopic = crypto.Keccak256([]byte("Transfer(address,address,uint256)"))

// Movements lists what went from or to an address, oldest first: TRX transfers
// that succeeded and Transfer logs of any token.
func (n *Node) Movements(of Address) []Movement {
	c := n.chain
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []Movement
	for _, b := range c.blocks {
		for i, info := range b.infos {
			for _, m := range movements(b.message.Transactions[i], info) {
				if m.From == of.String() || m.To == of.String() {
					m.Block, m.Transaction, m.Solid = b.number, Hash(info.Id), b.number <= c.solid
					out = append(out, m)
				}
			}
		}
	}
	return out[max(0, len(out)-maxListed):]
}

func movements(tx *core.Transaction, info *core.TransactionInfo) (out []Movement) {
	in, err := decode(tx)
	if err == nil && info.Result == core.TransactionInfo_SUCESS {
		if m, ok := in.message.(*core.TransferContract); ok {
			to, _ := addressOf(m.ToAddress)
			out = append(out, Movement{LogIndex: -1, From: in.owner.String(), To: to.String(), Amount: big.NewInt(m.Amount).String()})
		}
	}
	for i, l := range info.Log {
		if len(l.Topics) != 3 || !bytes.Equal(l.Topics[0], transferTopic) {
			continue
		}
		out = append(out, Movement{
			LogIndex: i, Token: wordAddress(l.Address).String(), From: wordAddress(l.Topics[1]).String(),
			To: wordAddress(l.Topics[2]).String(), Amount: new(big.Int).SetBytes(l.Data).String(),
		})
	}
	return out
}

// wordAddress takes the low 20 bytes; the ones above may hold anything.
func wordAddress(word []byte) (a Address) {
	a[0] = addressPrefix
	copy(a[1:], word[len(word)-20:])
	return a
}

// Transactions lists the transactions that concern an address, oldest first, the
// waiting ones last.
func (n *Node) Transactions(of Address) []Transaction {
	c := n.chain
	c.mu.RLock()
	defer c.mu.RUnlock()
	var out []Transaction
	for _, b := range c.blocks {
		for i, info := range b.infos {
			if t, ok := describe(b.message.Transactions[i], info, of); ok {
				t.Block, t.Solid = b.number, b.number <= c.solid
				out = append(out, t)
			}
		}
	}
	for _, p := range c.pool {
		if t, ok := describe(p.tx, p.info, of); ok {
			out = append(out, t)
		}
	}
	return out[max(0, len(out)-maxListed):]
}

func describe(tx *core.Transaction, info *core.TransactionInfo, of Address) (Transaction, bool) {
	in, err := decode(tx)
	if err != nil {
		return Transaction{}, false
	}
	concerns := in.owner == of || bytes.Equal(info.ContractAddress, of[:])
	for _, m := range movements(tx, info) {
		concerns = concerns || m.From == of.String() || m.To == of.String()
	}
	return Transaction{
		ID: in.id, Type: tx.RawData.Contract[0].Type.String(), Owner: in.owner.String(),
		Result: tx.Ret[0].ContractRet.String(), Fee: info.Fee, Energy: info.Receipt.GetEnergyUsageTotal(),
	}, concerns
}

// Summary describes the node. StateDigest is the same on two nodes that hold the
// same state and the same pool.
func (n *Node) Summary() Summary {
	interval, paused := n.rhythm.State()
	s := Summary{Paused: paused, IntervalMilli: interval.Milliseconds()}
	s.Faults = n.CurrentFaults()
	c := n.chain
	c.mu.RLock()
	defer c.mu.RUnlock()
	s.Head, s.Solid, s.Pending, s.ChainID = c.head().report(), c.top(true).report(), len(c.pool), c.chainID
	s.Genesis, s.USDT, s.USDC, s.StateDigest = GenesisAddress, USDTAddress, USDCAddress, c.state.digest()
	return s
}
