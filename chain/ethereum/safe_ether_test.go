package ethereum

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"kivuko/chain"
)

// receivedLog is the event of a Safe that received ether.
func receivedLog(safe, sender common.Address, wei int64) *types.Log {
	return &types.Log{
		Address: safe, Data: common.BigToHash(big.NewInt(wei)).Bytes(),
		Topics: []common.Hash{receivedTopic, common.BytesToHash(sender.Bytes())},
	}
}

// posing fills block 95 with a payment, and with events of so many contracts that look like those of a Safe.
func (s *stub) posing(contracts int) {
	id := common.HexToHash(someID)
	logs := []*types.Log{transferLog(usdtContract, alice, bob, 7)}
	for i := range contracts {
		logs = append(logs, receivedLog(common.BigToAddress(big.NewInt(int64(i+1_000))), alice, 1))
	}
	s.fill([]transaction{{Hash: id, From: alice, To: &usdtContract}}, types.Receipts{receiptOf(id, 95, 1, logs...)})
	s.set("eth_getCode", fixed(hexutil.Bytes{0x60}))
	s.set("eth_getStorageAt", fixed(common.Hash{}))
}

// onlyPayment checks that the payment of posing is listed and nothing else.
func onlyPayment(t *testing.T, got chain.BlockTransfers, err error) {
	t.Helper()
	if err != nil || len(got.Movements) != 1 || got.Movements[0].To != bob.Hex() {
		t.Errorf("%+v, %v; want one payment", got.Movements, err)
	}
}

// Anyone can have thousands of contracts make a Safe's events in one block. That must not hold up the deposits.
func TestContractsThatPoseAsSafesCostLittle(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.posing(5_000)
	c := driver(t, s)
	got, err := c.Transfers(t.Context(), 95)
	onlyPayment(t, got, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.calls["eth_getCode"]; n != 202 {
		t.Errorf("the code of %d accounts was read, want 200 and the two of Safe", n)
	}
	const most = 10
	if s.requests > most {
		t.Errorf("%d requests, want at most %d", s.requests, most)
	}
}

// A node that can't show the state before a block is no reason to leave out a deposit, as long as another node can; and none to
// stop the deposits of others, if no node can.
func TestStateThatANodeHasNotKept(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"missing trie node 0xab", "batches are not allowed"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			lacks, has := newStub(t), newStub(t)
			for _, s := range []*stub{lacks, has} {
				s.posing(1)
			}
			lacks.set("eth_getCode", fails(-32000, text))
			c := driver(t, lacks, has)
			got, err := c.Transfers(t.Context(), 95)
			onlyPayment(t, got, err)
			if has.called("eth_getCode") == 0 {
				t.Error("the other node was not asked")
			}
			has.set("eth_getCode", fails(-32000, text))
			got, err = c.Transfers(t.Context(), 95)
			onlyPayment(t, got, err)
		})
	}
}

// A node that is broken while it is asked for state will respond later: until then the block is not listed.
func TestStateOfABrokenNode(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.posing(1)
	s.set("eth_getCode", func(_ []json.RawMessage) (any, *rpcError) {
		s.fail(503)
		return nil, nil
	})
	_, err := driver(t, s).Transfers(t.Context(), 95)
	wantReason(t, err, chain.ReasonUnavailable, "503")
}

// A node that doesn't come to an end with the state holds up the other deposits no longer than a query may take.
func TestStateThatDoesNotCome(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.posing(1)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	s.set("eth_getCode", func([]json.RawMessage) (any, *rpcError) {
		<-over
		return nil, nil
	})
	c := driver(t, s)
	c.config.CallTimeout = 200 * time.Millisecond
	got, err := c.Transfers(t.Context(), 95)
	onlyPayment(t, got, err)
}

// movedIn is what safeEther lists of block 95 for safeAt, whose next number before it was 7.
func movedIn(t *testing.T, c *Client, input []byte, logs ...*types.Log) []chain.Movement {
	t.Helper()
	id := common.HexToHash(someID)
	b := &fullBlock{Transactions: []transaction{{Hash: id, From: alice, To: &safeAt, Input: input}}}
	events := eventsOf(types.Receipts{receiptOf(id, 95, 1, logs...)}, []common.Address{safeAt})[safeAt]
	moved, ok := c.explain(b, safeAt, 7, events)
	if !ok {
		t.Fatal("the block is not explained")
	}
	sent := [][]chain.Movement{moved[0]}
	return append(sent[0], c.receivedBy(safeAt, b, events, sent, [][]chain.Movement{nil})[0]...)
}

// Ether that a Safe pays to itself does not move, as that of a wallet to itself does not.
func TestASafePaysItself(t *testing.T) {
	t.Parallel()
	c := driver(t, newStub(t))
	for to, want := range map[common.Address]int{safeAt: 0, bob: 1} {
		tx := safeCall(to, big.NewInt(5), nil, 7)
		logs := []*types.Log{executed(95, tx.hash(c.chainID(), safeAt), successTopic)}
		if to == safeAt {
			logs = append([]*types.Log{receivedLog(safeAt, safeAt, 5)}, logs...)
		}
		if got := movedIn(t, c, tx.execution(make([]byte, 65)), logs...); len(got) != want {
			t.Errorf("a payment to %s is listed as %+v", to, got)
		}
	}
}
