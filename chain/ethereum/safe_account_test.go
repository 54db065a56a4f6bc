package ethereum

import (
	"encoding/json"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"kivuko/chain"
	"kivuko/chain/endpoints"
)

// An approval on the chain is as good as a signature. Code that ran when the account was made can write one into the storage and
// make its event, so it counts only when the owner's own transaction made it.
func TestApprovalsAreTheOwnersOwn(t *testing.T) {
	t.Parallel()
	owner, approved := newKey(t), common.HexToHash("0xab")
	own := func() *types.DynamicFeeTx {
		return &types.DynamicFeeTx{ChainID: big.NewInt(stubChain), To: &safeAt, Data: encodeCall(approveSignature, static(approved.Bytes()))}
	}
	for name, c := range map[string]struct {
		edit   func(*types.DynamicFeeTx)
		signer testKey
		status uint64
		fails  bool
	}{
		"the owner's own":           {nil, owner, 1, false},
		"a stranger's":              {nil, newKey(t), 1, true},
		"through another contract":  {func(tx *types.DynamicFeeTx) { tx.To = &bob }, owner, 1, true},
		"of a creation":             {func(tx *types.DynamicFeeTx) { tx.To = nil }, owner, 1, true},
		"in a call of setup":        {func(tx *types.DynamicFeeTx) { tx.Data = selector("setup()") }, owner, 1, true},
		"of another hash":           {func(tx *types.DynamicFeeTx) { tx.Data[35] ^= 1 }, owner, 1, true},
		"with more in the calldata": {func(tx *types.DynamicFeeTx) { tx.Data = append(tx.Data, 0) }, owner, 1, true},
		"in one that failed":        {nil, owner, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := own()
			if c.edit != nil {
				c.edit(content)
			}
			tx, err := types.SignNewTx(c.signer.PrivateKey, types.LatestSignerForChainID(content.ChainID), content)
			if err != nil {
				t.Fatal(err)
			}
			event := approvalOf(owner, approved)
			receipt := receiptOf(tx.Hash(), 60, c.status, event)
			s := newStub(t)
			s.set("eth_getTransactionByHash", fixed(tx))
			s.set("eth_getTransactionReceipt", fixed(receipt))
			s.set("eth_getLogs", fixed([]*types.Log{event}))
			err = ownedBy(t, driver(t, s), owner.address(), approved)
			if c.fails {
				wantReason(t, err, chain.ReasonForeign, "not one that its owner signed")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// An owner can approve as often as it pays for. That makes the account no other one.
func TestManyApprovals(t *testing.T) {
	t.Parallel()
	owner, s := newKey(t), newStub(t)
	txs, receipts, places := map[common.Hash]*types.Transaction{}, map[common.Hash]*types.Receipt{}, map[common.Hash]bool{}
	var events []*types.Log
	for i := range approvalsPage + 1 {
		approved := common.BigToHash(big.NewInt(int64(i + 1)))
		tx, err := types.SignNewTx(owner.PrivateKey, types.LatestSignerForChainID(big.NewInt(stubChain)), &types.DynamicFeeTx{
			ChainID: big.NewInt(stubChain), Nonce: uint64(i), To: &safeAt, Data: encodeCall(approveSignature, static(approved.Bytes())),
		})
		if err != nil {
			t.Fatal(err)
		}
		event := approvalOf(owner, approved)
		txs[tx.Hash()], receipts[tx.Hash()] = tx, receiptOf(tx.Hash(), 60, 1, event)
		places[entryOf(approved.Bytes(), entryOf(owner.address().Bytes(), slotApprovals))] = true
		events = append(events, event)
	}
	s.set("eth_getLogs", fixed(events))
	s.set("eth_getTransactionByHash", byHash(txs))
	s.set("eth_getTransactionReceipt", byHash(receipts))
	conn, err := driver(t, s).nodes.Nodes()[0].client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, strange, err := approvalsOf(t.Context(), conn, safeAt, chain.Block{Number: 200_000})
	if err != nil || strange != "" || len(got) != approvalsPage+1 {
		t.Fatalf("%d approvals, %s, %v", len(got), strange, err)
	}
	for _, place := range got {
		if !places[place] {
			t.Errorf("the place %s is of no approval", place)
		}
	}
}

// byHash answers with what has the hash that is asked for.
func byHash[T any](all map[common.Hash]T) answer {
	return func(params []json.RawMessage) (any, *rpcError) {
		var id common.Hash
		if err := json.Unmarshal(params[0], &id); err != nil {
			return nil, &rpcError{-32602, err.Error()}
		}
		return all[id], nil
	}
}

// approvalOf is the event of an owner's approval.
func approvalOf(owner testKey, approved common.Hash) *types.Log {
	return &types.Log{Address: safeAt, Topics: []common.Hash{approveTopic, approved, common.BytesToHash(owner.address().Bytes())}}
}

// A node that searches small ranges only is asked for pieces, back to the account's setup. One that searches nothing is not down.
func TestApprovalsAreSearchedInPieces(t *testing.T) {
	t.Parallel()
	owner, approved := newKey(t), common.HexToHash("0xab")
	tx, err := types.SignNewTx(owner.PrivateKey, types.LatestSignerForChainID(big.NewInt(stubChain)), &types.DynamicFeeTx{
		ChainID: big.NewInt(stubChain), To: &safeAt, Data: encodeCall(approveSignature, static(approved.Bytes())),
	})
	if err != nil {
		t.Fatal(err)
	}
	s, event := newStub(t), approvalOf(owner, approved)
	s.set("eth_getTransactionByHash", fixed(tx))
	s.set("eth_getTransactionReceipt", fixed(receiptOf(tx.Hash(), 199_000, 1, event)))
	next := uint64(200_000)
	s.set("eth_getLogs", func(params []json.RawMessage) (any, *rpcError) {
		var q struct{ FromBlock, ToBlock hexutil.Uint64 }
		if err := json.Unmarshal(params[0], &q); err != nil {
			return nil, &rpcError{-32602, err.Error()}
		}
		from, to := uint64(q.FromBlock), uint64(q.ToBlock)
		if to-from >= logRange {
			return nil, &rpcError{-32005, "range is too large"}
		}
		if to != next {
			t.Errorf("blocks %d to %d are searched, want up to %d", from, to, next)
		}
		next = from - 1
		logs := []*types.Log{}
		for block, l := range map[uint64]*types.Log{
			100_000: {Address: safeAt, Topics: []common.Hash{setupTopic, {}}, BlockNumber: 100_000}, 199_000: event,
		} {
			if from <= block && block <= to {
				logs = append(logs, l)
			}
		}
		return logs, nil
	})
	c := driver(t, s)
	if err := ownedBy(t, c, owner.address(), approved); err != nil {
		t.Error(err)
	}
	if next > 100_000 || next < 100_000-batchSize*logRange {
		t.Errorf("the search ended at block %d, the setup was in 100000", next)
	}
	s.set("eth_getLogs", fails(-32601, "no such method"))
	err = ownedBy(t, c, owner.address(), approved)
	wantReason(t, err, chain.ReasonUnavailable, "does not say whether")
	if !errors.Is(err, endpoints.ErrUnable) {
		t.Errorf("the node counts as down: %v", err)
	}
}

// ownedBy inspects, at block 200000, a Safe of one owner, whose storage has an approval of this owner besides.
func ownedBy(t *testing.T, c *Client, owner common.Address, approved common.Hash) error {
	t.Helper()
	values := map[common.Hash]common.Hash{slotThreshold: common.BigToHash(big.NewInt(1))}
	root, err := storageRoot(map[common.Hash]common.Hash{
		slotThreshold: values[slotThreshold], entryOf(sentinel.Bytes(), slotOwners): common.BytesToHash(owner.Bytes()),
		entryOf(owner.Bytes(), slotOwners):                               common.BytesToHash(sentinel.Bytes()),
		entryOf(approved.Bytes(), entryOf(owner.Bytes(), slotApprovals)): common.BigToHash(big.NewInt(1)),
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.nodes.Nodes()[0].client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := safeState{owners: []common.Address{owner}, threshold: 1}
	return s.isAll(t.Context(), conn, safeAt, root, values, chain.Block{Number: 200_000})
}
