package ethereum

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// doomed are waiting transactions that are to fail in their block, with the token that each calls.
type doomed map[common.Hash]common.Address

// doomedBlock lists what the next block must hold for a doomed transaction to fail in it: what its
// sender must have mined before, then the issuer's pausing of the token, the transaction, and the end
// of the pause. No other payment notices. It gives nothing when no doomed transaction can be mined.
func (n *Node) doomedBlock() ([]*types.Transaction, error) {
	if len(n.doomed) == 0 {
		return nil, nil
	}
	if err := n.eth.TxPool().Sync(); err != nil {
		return nil, err
	}
	fee, _ := uint256.FromBig(n.nextBaseFee())
	pending, _ := n.eth.TxPool().Pending(txpool.PendingFilter{BaseFee: fee})
	for _, txs := range pending {
		for i, lazy := range txs {
			token, ok := n.doomed[lazy.Hash]
			if !ok {
				continue
			}
			delete(n.doomed, lazy.Hash)
			return n.failing(txs[:i+1], token)
		}
	}
	for id := range n.doomed {
		if !n.eth.TxPool().Has(id) {
			delete(n.doomed, id) // replaced, or forgotten with the pool
		}
	}
	return nil, nil
}

// failing puts a pause of the token around the last of a sender's transactions.
func (n *Node) failing(txs []*txpool.LazyTransaction, token common.Address) ([]*types.Transaction, error) {
	nonce, err := n.issuerNonce()
	if err != nil {
		return nil, err
	}
	var out []*types.Transaction
	for i, lazy := range txs {
		tx := lazy.Resolve()
		if tx == nil {
			return nil, nil // it left the pool in this moment
		}
		if i < len(txs)-1 {
			out = append(out, tx)
			continue
		}
		for _, step := range []string{"pause()", "", "unpause()"} {
			if step == "" {
				out = append(out, tx)
				continue
			}
			own, err := n.sign(key(IssuerKey), &types.DynamicFeeTx{Nonce: nonce, Gas: callGas, To: &token, Data: Calldata(step)})
			if err != nil {
				return nil, err
			}
			out = append(out, own)
			nonce++
		}
	}
	return out, nil
}

// issuerNonce is the number of the issuer's next transaction. The issuer never uses the pool.
func (n *Node) issuerNonce() (uint64, error) {
	state, err := n.eth.BlockChain().State()
	if err != nil {
		return 0, err
	}
	return state.GetNonce(IssuerAddress()), nil
}
