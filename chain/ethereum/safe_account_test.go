package ethereum

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"kivuko/chain"
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
			event := &types.Log{Address: safeAt, Topics: []common.Hash{
				crypto.Keccak256Hash([]byte("ApproveHash(bytes32,address)")), approved, common.BytesToHash(owner.address().Bytes()),
			}}
			receipt := receiptOf(tx.Hash(), 60, c.status, event)
			s := newStub(t)
			s.set("eth_getTransactionByHash", fixed(tx))
			s.set("eth_getTransactionReceipt", fixed(receipt))
			s.set("eth_getLogs", fixed([]*types.Log{event}))
			err = ownedBy(t, driver(t, s), owner.address(), map[common.Hash]common.Hash{
				entryOf(approved.Bytes(), entryOf(owner.address().Bytes(), slotApprovals)): common.BigToHash(big.NewInt(1)),
			})
			if c.fails {
				wantReason(t, err, chain.ReasonForeign, "not one that its owner signed")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// ownedBy inspects a Safe of one owner whose storage has these places besides.
func ownedBy(t *testing.T, c *Client, owner common.Address, besides map[common.Hash]common.Hash) error {
	t.Helper()
	values := map[common.Hash]common.Hash{slotThreshold: common.BigToHash(big.NewInt(1))}
	stored := map[common.Hash]common.Hash{
		slotThreshold: values[slotThreshold], entryOf(sentinel.Bytes(), slotOwners): common.BytesToHash(owner.Bytes()),
		entryOf(owner.Bytes(), slotOwners): common.BytesToHash(sentinel.Bytes()),
	}
	for place, value := range besides {
		stored[place] = value
	}
	root, err := storageRoot(stored)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.nodes.Nodes()[0].client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := safeState{owners: []common.Address{owner}, threshold: 1}
	return s.isAll(t.Context(), conn, safeAt, root, values, chain.Block{Number: 90})
}
