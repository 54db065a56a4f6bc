package ethereum

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// executed is an event of safeAt in a block of its own transaction.
func executed(block uint64, hash common.Hash, topic common.Hash) *types.Log {
	return &types.Log{
		Address: safeAt, Topics: []common.Hash{topic, hash}, Data: make([]byte, 32), BlockNumber: block, BlockHash: hashAt(block),
		TxHash: crypto.Keccak256Hash([]byte(fmt.Sprint(block))),
	}
}

// history makes the stub's Safe have so many numbers used by its final and its newest block, and these events. It returns the
// ranges of blocks that were searched.
func (s *stub) history(final, latest uint64, events ...*types.Log) func() [][2]uint64 {
	var mu sync.Mutex
	var searched [][2]uint64
	s.set("eth_getStorageAt", func(params []json.RawMessage) (any, *rpcError) {
		var b struct{ BlockHash common.Hash }
		if err := json.Unmarshal(params[2], &b); err != nil {
			return nil, &rpcError{-32602, err.Error()}
		}
		if b.BlockHash == hashAt(90) || b.BlockHash == hashAt(4_990) {
			return common.BytesToHash([]byte{byte(final)}), nil
		}
		return common.BytesToHash([]byte{byte(latest)}), nil
	})
	s.set("eth_getLogs", func(params []json.RawMessage) (any, *rpcError) {
		var q struct{ FromBlock, ToBlock hexutil.Uint64 }
		if err := json.Unmarshal(params[0], &q); err != nil {
			return nil, &rpcError{-32602, err.Error()}
		}
		mu.Lock()
		defer mu.Unlock()
		searched = append(searched, [2]uint64{uint64(q.FromBlock), uint64(q.ToBlock)})
		found := []*types.Log{}
		for _, e := range events {
			if e.BlockNumber >= uint64(q.FromBlock) && e.BlockNumber <= uint64(q.ToBlock) {
				found = append(found, e)
			}
		}
		return found, nil
	})
	return func() [][2]uint64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(searched)
	}
}

func TestOutcomeIsProvenByEvents(t *testing.T) {
	t.Parallel()
	const number = 7
	amount := money.Must(money.USDT, "5")
	paid, less := transferLog(usdtContract, safeAt, bob, 5_000_000), transferLog(usdtContract, safeAt, bob, 4_999_999)
	other := crypto.Keccak256Hash([]byte("another SafeTx"))
	for _, c := range []struct {
		name          string
		final, latest uint64
		events        func(own common.Hash) []*types.Log // the newest is the mined one
		moves         *types.Log
		want          chain.JointState
		fails         chain.Reason
	}{
		{"its number is next", number, number, nil, nil, chain.JointOpen, ""},
		{"a number before is next", number - 2, number - 2, nil, nil, chain.JointOpen, ""},
		{"it is in a block that may be undone", number, number + 1, func(own common.Hash) []*types.Log {
			return []*types.Log{executed(95, own, successTopic)}
		}, paid, chain.JointIncluded, ""},
		{"another one is in a block that may be undone", number, number + 1, func(common.Hash) []*types.Log {
			return []*types.Log{executed(95, other, successTopic)}
		}, paid, chain.JointOpen, ""},
		{"it is final", number + 1, number + 1, func(own common.Hash) []*types.Log {
			return []*types.Log{executed(60, other, successTopic), executed(85, own, successTopic)}
		}, paid, chain.JointExecuted, ""},
		{"it is final and paid less", number + 1, number + 1, func(own common.Hash) []*types.Log {
			return []*types.Log{executed(85, own, successTopic)}
		}, less, chain.JointFailed, ""},
		{"its call failed and used the number", number + 1, number + 1, func(own common.Hash) []*types.Log {
			return []*types.Log{executed(85, own, failureTopic)}
		}, paid, chain.JointFailed, ""}, // an equal payment by something else in the transaction proves nothing
		{"another one used its number", number + 1, number + 1, func(common.Hash) []*types.Log {
			return []*types.Log{executed(60, common.Hash{1}, successTopic), executed(85, other, successTopic)}
		}, paid, chain.JointSuperseded, ""},
		{"the node lists no event of it", number + 1, number + 1, nil, nil, "", chain.ReasonUnavailable},
		{"the node lists fewer events than numbers", number + 2, number + 2, func(common.Hash) []*types.Log {
			return []*types.Log{executed(85, other, successTopic)}
		}, paid, "", chain.ReasonUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			d := driver(t, s)
			j, _ := proposal(t, d, amount)
			j.Block = chain.Block{Number: 50}
			var events []*types.Log
			if c.events != nil {
				events = c.events(common.BytesToHash(j.Digest))
				last := events[len(events)-1]
				receipt := receiptOf(last.TxHash, last.BlockNumber, types.ReceiptStatusSuccessful)
				if receipt.Logs = append(receipt.Logs, last); c.moves != nil {
					moved := *c.moves // a log belongs to one receipt
					receipt = receiptOf(last.TxHash, last.BlockNumber, types.ReceiptStatusSuccessful, &moved, last)
				}
				s.mine(transaction{Hash: last.TxHash, From: alice, To: &safeAt}, receipt)
			}
			s.history(c.final, c.latest, events...)
			o, err := d.Outcome(t.Context(), j)
			if c.fails != "" {
				wantReason(t, err, c.fails, "the node lists")
				return
			}
			if err != nil || o.State != c.want {
				t.Fatalf("%+v, %v, want %s", o, err, c.want)
			}
			if o.State != chain.JointOpen && o.TxID != events[len(events)-1].TxHash.Hex() {
				t.Errorf("the transaction is %s", o.TxID)
			}
		})
	}
}

// A node whose final block is older than that of the preparation knows nothing about what came after.
func TestOutcomeOfANodeThatIsBehind(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	c := driver(t, s)
	j, _ := proposal(t, c, money.Must(money.USDT, "5"))
	j.Block = chain.Block{Number: 91}
	_, err := c.Outcome(t.Context(), j)
	wantReason(t, err, chain.ReasonUnavailable, "final block is 90")
}

// The search covers every block since the preparation, none twice, in pieces that nodes allow.
func TestOutcomeSearchesAllBlocks(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.heads(5_000, 4_990)
	c := driver(t, s)
	j, _ := proposal(t, c, money.Must(money.USDT, "5"))
	j.Block = chain.Block{Number: 50}
	searched := s.history(9, 9)
	if _, err := c.Outcome(t.Context(), j); chain.ReasonOf(err) != chain.ReasonUnavailable {
		t.Fatal(err)
	}
	next := uint64(4_990)
	for _, r := range searched() {
		if r[1] != next || r[1]-r[0] >= logRange || r[0] > r[1] {
			t.Errorf("searched %v", searched())
		}
		next = r[0] - 1
	}
	if next != 50 {
		t.Errorf("the search ended at %d: %v", next, searched())
	}
}

// shows is a stub whose Safe has used the number 7 by a final block, with these events, of which the last is in a transaction
// with this input.
func shows(t *testing.T, input []byte, events ...*types.Log) *stub {
	t.Helper()
	s := newStub(t)
	s.history(8, 8, events...)
	if len(events) == 0 {
		return s
	}
	last := events[len(events)-1]
	tx := transaction{Hash: last.TxHash, From: alice, To: &safeAt, Input: input}
	receipt := receiptOf(last.TxHash, last.BlockNumber, types.ReceiptStatusSuccessful, last)
	s.mine(tx, receipt)
	s.mu.Lock()
	headers := s.methods["eth_getBlockByNumber"]
	s.mu.Unlock()
	s.set("eth_getBlockByNumber", func(params []json.RawMessage) (any, *rpcError) {
		found, fault := headers(params)
		if b, ok := found.(map[string]any); ok && b["number"] == hexutil.Uint64(last.BlockNumber) {
			b["receiptsRoot"] = types.DeriveSha(types.Receipts{receipt}, trie.NewStackTrie(nil))
			if string(params[1]) == "true" {
				b["transactions"] = []transaction{tx}
			}
		}
		return found, fault
	})
	s.set("eth_getBlockReceipts", fixed(types.Receipts{receipt}))
	return s
}

// That another execution took the number is never believed of one node alone.
func TestOutcomeOfNodesThatDisagree(t *testing.T) {
	t.Parallel()
	j, _ := proposal(t, driver(t, newStub(t)), money.Must(money.ETH, "1"))
	j.Block = chain.Block{Number: 50}
	own, other, third := common.BytesToHash(j.Digest), common.Hash{1}, common.Hash{2}
	input := safeCall(bob, big.NewInt(1e18), nil, 7).execution(make([]byte, 65))
	ours := func() *stub { return shows(t, input, executed(85, own, successTopic)) }
	misplaced := func() *stub {
		return shows(t, input, executed(60, own, successTopic), executed(85, other, successTopic))
	}
	behind := newStub(t)
	behind.history(7, 7)
	others := func() *stub { return shows(t, nil, executed(85, other, successTopic)) }
	for name, c := range map[string]struct {
		nodes []*stub
		want  chain.JointState // empty: none can be had
	}{
		"one has its execution":                 {[]*stub{others(), ours()}, chain.JointExecuted},
		"all have another one":                  {[]*stub{others(), others()}, chain.JointSuperseded},
		"one is behind":                         {[]*stub{others(), behind}, chain.JointOpen},
		"they have different ones":              {[]*stub{others(), shows(t, nil, executed(84, third, successTopic))}, ""},
		"one does not show it":                  {[]*stub{others(), shows(t, nil)}, chain.JointSuperseded},
		"one has it at another number":          {[]*stub{others(), misplaced()}, ""},
		"one has it and not its transaction":    {[]*stub{others(), shows(t, nil, executed(85, own, successTopic))}, ""},
		"its event was before, at none of ours": {[]*stub{misplaced()}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := driver(t, c.nodes...).Outcome(t.Context(), j)
			if c.want == "" {
				if chain.ReasonOf(err) != chain.ReasonUnavailable {
					t.Errorf("%+v, %v", o, err)
				}
				return
			}
			if err != nil || o.State != c.want {
				t.Errorf("%+v, %v, want %s", o, err, c.want)
			}
		})
	}
}

// What moves no token has no event but the account's own, so its block must prove it.
func TestOutcomeWithoutATokenIsProvenByItsBlock(t *testing.T) {
	t.Parallel()
	offline := driver(t, newStub(t))
	ether, keys := proposal(t, offline, money.Must(money.ETH, "1"))
	change := chain.JointDraft{
		Account: safeAt.Hex(), Sequence: 7, Quorum: quorumOf(2, keys...),
		Owners: &chain.OwnersChange{Owners: quorumOf(1, keys[:2]...).Owners, Threshold: 1},
	}
	steps, err := ownerSteps(change.Quorum, *change.Owners)
	if err != nil {
		t.Fatal(err)
	}
	previous, err := places(steps, []common.Address{keys[0].address(), keys[1].address(), keys[2].address()})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := offline.joint(safeAt, change, ownersTx(safeAt, steps, previous, 7))
	if err != nil {
		t.Fatal(err)
	}
	for name, j := range map[string]chain.Joint{
		"ether":              ether,
		"a cancellation":     jointOf(t, offline, chain.JointDraft{Account: safeAt.Hex(), Sequence: 7, Quorum: quorumOf(2, keys...)}),
		"a change of owners": changes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j.Block = chain.Block{Number: 50}
			_, tx, err := offline.rebuilt(j)
			if err != nil {
				t.Fatal(err)
			}
			own := func() *types.Log { return executed(85, common.BytesToHash(j.Digest), successTopic) }
			calldata := tx.execution(make([]byte, 65))
			o, err := driver(t, shows(t, calldata, own())).Outcome(t.Context(), j)
			if err != nil || o.State != chain.JointExecuted {
				t.Errorf("%+v, %v", o, err)
			}
			tx.operation = operationDelegateCall
			tx.to = alice
			for what, s := range map[string]*stub{
				"other code":      shows(t, tx.execution(make([]byte, 65)), own()),
				"no call of it":   shows(t, nil, own()),
				"another receipt": shows(t, calldata, own()),
			} {
				if what == "another receipt" {
					s.set("eth_getBlockReceipts", fixed(types.Receipts{receiptOf(own().TxHash, 85, 1)}))
				}
				o, err := driver(t, s).Outcome(t.Context(), j)
				if chain.ReasonOf(err) != chain.ReasonUnavailable {
					t.Errorf("%s: %+v, %v", what, o, err)
				}
			}
		})
	}
}
