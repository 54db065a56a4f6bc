package ethereum

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"kivuko/chain"
	"kivuko/chain/endpoints"
	"kivuko/exchange/money"
)

// allowance is a token's event of what an account allowed.
func allowance(token, owner, spender common.Address) *types.Log {
	return &types.Log{
		Address: token, Topics: []common.Hash{allowanceTopic, common.BytesToHash(owner.Bytes()), common.BytesToHash(spender.Bytes())}, Data: make([]byte, wordLength),
	}
}

// Every spender that an event names is asked for what it may still take, at the final block. What was taken back is no allowance.
func TestAllowances(t *testing.T) {
	t.Parallel()
	s, other := newStub(t), common.HexToAddress("0xc0")
	s.set("eth_getLogs", func(params []json.RawMessage) (any, *rpcError) {
		var q struct {
			FromBlock, ToBlock hexutil.Uint64
			Address            []common.Address
			Topics             [][]common.Hash
		}
		if err := json.Unmarshal(params[0], &q); err != nil {
			return nil, &rpcError{-32602, err.Error()}
		}
		if q.FromBlock != 0 || q.ToBlock != 90 || len(q.Address) != 2 || len(q.Topics) != 2 || q.Topics[1][0] != common.BytesToHash(safeAt.Bytes()) {
			t.Errorf("it asks for %+v", q)
		}
		return []*types.Log{
			allowance(usdtContract, safeAt, bob), allowance(usdcContract, safeAt, bob), allowance(usdtContract, safeAt, other), allowance(usdtContract, safeAt, bob),
		}, nil
	})
	asked := 0
	s.set("eth_call", func(params []json.RawMessage) (any, *rpcError) {
		var m message
		if err := json.Unmarshal(params[0], &m); err != nil {
			return nil, &rpcError{-32602, err.Error()}
		}
		asked++
		left := new(big.Int)
		if m.To == usdtContract && strings.HasSuffix(common.Bytes2Hex(m.Input), "0b0b") {
			left.SetUint64(7)
		}
		return hexutil.Bytes(common.BigToHash(left).Bytes()), nil
	})
	c := driver(t, s)
	got, err := c.Allowances(t.Context(), safeAt.Hex())
	if want := (chain.Allowance{Asset: money.USDT, Spender: bob.Hex(), Right: "allowance"}); err != nil || len(got) != 1 || got[0] != want || asked != 3 {
		t.Errorf("%+v after %d calls, %v", got, asked, err)
	}
	s.set("eth_call", fixed(hexutil.Bytes{}))
	_, err = c.Allowances(t.Context(), safeAt.Hex())
	wantReason(t, err, chain.ReasonProtocol, "does not say what")
}

// What a node does not search, or answers about other accounts, is not taken for no allowance.
func TestAllowancesAreNotGuessed(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	c := driver(t, s)
	s.set("eth_getLogs", fails(-32005, "range is too large"))
	_, err := c.Allowances(t.Context(), safeAt.Hex())
	wantReason(t, err, chain.ReasonUnavailable, "does not search the whole chain")
	if !errors.Is(err, endpoints.ErrUnable) {
		t.Errorf("the node counts as down: %v", err)
	}
	for name, l := range map[string]*types.Log{
		"another owner": allowance(usdtContract, alice, bob),
		"another token": allowance(alice, safeAt, bob),
		"no spender":    {Address: usdtContract, Topics: []common.Hash{allowanceTopic, common.BytesToHash(safeAt.Bytes())}},
	} {
		s.set("eth_getLogs", fixed([]*types.Log{l}))
		if _, err := c.Allowances(t.Context(), safeAt.Hex()); chain.ReasonOf(err) != chain.ReasonProtocol {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := make([]*types.Log, maxSpenders+1)
	for i := range many {
		many[i] = allowance(usdtContract, safeAt, common.BigToAddress(big.NewInt(int64(i+1))))
	}
	s.set("eth_getLogs", fixed(many))
	_, err = c.Allowances(t.Context(), safeAt.Hex())
	wantReason(t, err, chain.ReasonForeign, "501 spenders")
}
