package ethereum

import (
	"encoding/json"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// knows puts one transaction into a block of the stub, and sets whether the stub finds its receipt.
func (s *stub) knows(latest, final, in uint64, id common.Hash, found bool) {
	s.heads(latest, final)
	s.mu.Lock()
	plain := s.methods["eth_getBlockByNumber"]
	s.mu.Unlock()
	s.set("eth_getBlockByNumber", func(params []json.RawMessage) (any, *rpcError) {
		answer, fault := plain(params)
		if b, ok := answer.(map[string]any); ok && b["number"] == hexutil.Uint64(in) {
			b["transactions"] = []common.Hash{id}
		}
		return answer, fault
	})
	s.set("eth_getTransactionReceipt", func(params []json.RawMessage) (any, *rpcError) {
		var asked common.Hash
		if err := json.Unmarshal(params[0], &asked); err != nil {
			return nil, &rpcError{-32602, err.Error()}
		}
		if found && asked == id {
			return receiptOf(id, in, 1), nil
		}
		return nil, nil
	})
}

// A node that has nonces and balances but finds no transactions must not cause a transaction with a used number to be given
// up: that very transaction used it.
func TestAbsenceAtANodeWithoutIndex(t *testing.T) {
	t.Parallel()
	other := common.HexToHash("0xfeed")
	attempt := exchange.ChainAttempt{TxID: someID, Nonce: 7}
	want := chain.Transfer{From: alice.Hex(), To: bob.Hex(), Amount: money.Must(money.USDT, "1")}
	for name, c := range map[string]struct {
		latest, final, in uint64
		found             bool
		verdict           chain.Verdict // empty: no result
	}{
		"finds what is in the final block":        {100, 90, 90, true, chain.VerdictRebuild},
		"finds what is in the block below":        {100, 90, 88, true, chain.VerdictRebuild},
		"finds nothing of the final block":        {100, 90, 90, false, ""},
		"finds nothing of the block below":        {100, 90, 88, false, ""},
		"finds nothing of long before":            {longMemory + 100, longMemory + 90, 89, false, ""},
		"has no transactions to be asked for yet": {100, 90, 50, false, chain.VerdictRebuild},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, down := newStub(t), newStub(t)
			s.knows(c.latest, c.final, c.in, other, c.found)
			s.set("eth_getTransactionCount", fixed(hexutil.Uint64(8)))
			down.fail(500)
			f, err := chain.Inquire(t.Context(), driver(t, down, s), attempt, want)
			if c.verdict == "" {
				if chain.ReasonOf(err) != chain.ReasonUnavailable {
					t.Errorf("judged %s, %v", chain.Judge(f), err)
				}
				return
			}
			if err != nil || chain.Judge(f) != c.verdict {
				t.Errorf("judged %s, %v; want %s", chain.Judge(f), err, c.verdict)
			}
		})
	}
}

// For a transaction that was found on the chain, a used number is no proof of absence: a node that does not have it is
// behind.
func TestAdoptedIsNeverGivenUp(t *testing.T) {
	t.Parallel()
	s, down := newStub(t), newStub(t)
	s.knows(100, 90, 50, common.HexToHash("0xfeed"), false)
	s.set("eth_getTransactionCount", fixed(hexutil.Uint64(8)))
	down.fail(500)
	want := chain.Transfer{From: alice.Hex(), To: bob.Hex(), Amount: money.Must(money.USDT, "1")}
	f, err := chain.Inquire(t.Context(), driver(t, down, s), exchange.ChainAttempt{TxID: someID, Adopted: true}, want)
	if err != nil || chain.Judge(f) != chain.VerdictBroadcast {
		t.Errorf("judged %s, %v", chain.Judge(f), err)
	}
}

// A node that has seen the transaction and can't return it is no proof of absence, even if other nodes miss it.
func TestSightingIsNoAbsence(t *testing.T) {
	t.Parallel()
	id, number := common.HexToHash(someID), hexutil.Uint64(85)
	for name, stage := range map[string]func(*stub){
		"a transaction in a block without its receipt": func(s *stub) {
			s.set("eth_getTransactionByHash", fixed(transaction{Hash: id, From: alice, To: &bob, BlockNumber: &number}))
		},
		"a receipt without its transaction": func(s *stub) { s.set("eth_getTransactionReceipt", fixed(receiptOf(id, 85, 1))) },
		"a receipt that does not come": func(s *stub) {
			s.set("eth_getTransactionByHash", fixed(transaction{Hash: id, From: alice, To: &bob, BlockNumber: &number}))
			s.set("eth_getTransactionReceipt", fails(-32005, "too many requests"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			knows, misses := newStub(t), newStub(t)
			stage(knows)
			l, err := driver(t, knows, misses).Locate(t.Context(), someID)
			if chain.ReasonOf(err) != chain.ReasonUnavailable {
				t.Errorf("%+v, %v", l, err)
			}
		})
	}
}
