package ethereum

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// What tests compare a product's books with: the chain read directly, not through the interface
// under test.

// maxListed bounds the lists below; the newest entries win.
const maxListed = 10_000

// Movement is one change of hands of ether or a token.
type Movement struct {
	Block       uint64         `json:"block"`
	Transaction common.Hash    `json:"transaction"`
	LogIndex    int            `json:"log_index"` // within the transaction; -1 for ether
	Token       string         `json:"token"`     // "ETH", "USDT", "USDC" or a contract's address
	From        common.Address `json:"from"`
	To          common.Address `json:"to"`
	Amount      string         `json:"amount"` // wei or token units
	Final       bool           `json:"final"`
}

// Transaction is a transaction that an address sent, was paid by or is called in.
type Transaction struct {
	ID     common.Hash    `json:"id"`
	Block  uint64         `json:"block"` // 0 while it waits in the pool
	From   common.Address `json:"from"`
	Nonce  uint64         `json:"nonce"`
	OK     bool           `json:"ok"`
	Fee    string         `json:"fee"` // wei
	Final  bool           `json:"final"`
	Queued bool           `json:"queued"` // waits for an earlier number of its sender
}

// Summary is the node at a glance.
type Summary struct {
	Head          Block          `json:"head"`
	Final         Block          `json:"final"`
	Pending       int            `json:"pending"`
	Queued        int            `json:"queued"`
	BaseFee       string         `json:"base_fee"` // of the next block, in wei
	Paused        bool           `json:"paused"`
	IntervalMilli int64          `json:"interval_ms"`
	Faults        Faults         `json:"faults"`
	ChainID       uint64         `json:"chain_id"`
	Faucet        common.Address `json:"faucet"`
	Issuer        common.Address `json:"issuer"`
	USDT          common.Address `json:"usdt"`
	USDC          common.Address `json:"usdc"`
}

// Summary describes the node.
func (n *Node) Summary() Summary {
	interval, paused := n.rhythm.State()
	s := Summary{Paused: paused, IntervalMilli: interval.Milliseconds()}
	s.Faults = n.CurrentFaults()
	s.Head, s.Final, s.BaseFee = n.Head(), n.Final(), n.nextBaseFee().String()
	s.Pending, s.Queued = n.eth.TxPool().Stats()
	s.ChainID, s.Faucet, s.Issuer, s.USDT, s.USDC = ChainID, FaucetAddress(), IssuerAddress(), USDTAddress(), USDCAddress()
	return s
}

// mined is a transaction in its block.
type mined struct {
	tx      *types.Transaction
	from    common.Address
	receipt *types.Receipt
	block   uint64
	final   bool
}

// walk visits all transactions of the chain, oldest first.
func (n *Node) walk(visit func(mined)) error {
	chain := n.eth.BlockChain()
	head, final := n.head().Number.Uint64(), n.final().Number.Uint64()
	signer := types.LatestSigner(chain.Config())
	for number := uint64(1); number <= head; number++ {
		h := chain.GetHeaderByNumber(number)
		if h == nil || h.TxHash == types.EmptyTxsHash {
			continue // no header: the chain was reorganised in this moment
		}
		b := chain.GetBlock(h.Hash(), number)
		receipts := chain.GetReceiptsByHash(h.Hash())
		if b == nil || len(receipts) != len(b.Transactions()) {
			return fmt.Errorf("ethereum: block %d has %d receipts", number, len(receipts))
		}
		for i, tx := range b.Transactions() {
			from, err := types.Sender(signer, tx)
			if err != nil {
				return err
			}
			visit(mined{tx: tx, from: from, receipt: receipts[i], block: number, final: number <= final})
		}
	}
	return nil
}

// movements are what a transaction moved.
func (m mined) movements() []Movement {
	if m.receipt.Status != types.ReceiptStatusSuccessful {
		return nil
	}
	var out []Movement
	if m.tx.Value().Sign() > 0 && m.tx.To() != nil {
		out = append(out, Movement{LogIndex: -1, Token: "ETH", From: m.from, To: *m.tx.To(), Amount: m.tx.Value().String()})
	}
	topic := crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
	for i, l := range m.receipt.Logs {
		if len(l.Topics) != 3 || l.Topics[0] != topic || len(l.Data) != wordLength {
			continue
		}
		token := tokens()[l.Address]
		if token == "" {
			token = l.Address.Hex()
		}
		out = append(out, Movement{
			LogIndex: i, Token: token, From: common.BytesToAddress(l.Topics[1][:]), To: common.BytesToAddress(l.Topics[2][:]),
			Amount: common.BytesToHash(l.Data).Big().String(),
		})
	}
	for i := range out {
		out[i].Block, out[i].Transaction, out[i].Final = m.block, m.tx.Hash(), m.final
	}
	return out
}

// fee is what the sender paid for it, in wei.
func (m mined) fee() *big.Int {
	if m.receipt.EffectiveGasPrice == nil {
		return new(big.Int)
	}
	return new(big.Int).Mul(m.receipt.EffectiveGasPrice, new(big.Int).SetUint64(m.receipt.GasUsed))
}

// Movements lists what went from or to an address, oldest first: transactions with ether, and
// Transfer logs of any token.
func (n *Node) Movements(of common.Address) ([]Movement, error) {
	out := []Movement{}
	err := n.walk(func(m mined) {
		for _, one := range m.movements() {
			if one.From == of || one.To == of {
				out = append(out, one)
			}
		}
	})
	return out[max(0, len(out)-maxListed):], err
}

// Transactions lists the transactions that concern an address, oldest first, the waiting ones last.
func (n *Node) Transactions(of common.Address) ([]Transaction, error) {
	out := []Transaction{}
	err := n.walk(func(m mined) {
		concerns := m.from == of || (m.tx.To() != nil && *m.tx.To() == of)
		for _, one := range m.movements() {
			concerns = concerns || one.From == of || one.To == of
		}
		if concerns {
			out = append(out, Transaction{
				ID: m.tx.Hash(), Block: m.block, From: m.from, Nonce: m.tx.Nonce(), Final: m.final,
				OK: m.receipt.Status == types.ReceiptStatusSuccessful, Fee: m.fee().String(),
			})
		}
	})
	pending, queued := n.eth.TxPool().ContentFrom(of)
	for _, tx := range pending {
		out = append(out, Transaction{ID: tx.Hash(), From: of, Nonce: tx.Nonce(), Fee: "0"})
	}
	for _, tx := range queued {
		out = append(out, Transaction{ID: tx.Hash(), From: of, Nonce: tx.Nonce(), Fee: "0", Queued: true})
	}
	return out[max(0, len(out)-maxListed):], err
}
