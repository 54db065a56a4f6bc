package tron

import (
	"bytes"
	"testing"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"

	"kivuko/exchange/money"
)

func TestVerdicts(t *testing.T) {
	receipt := func(r core.Transaction_ResultContractResult) *core.TransactionInfo {
		return &core.TransactionInfo{Receipt: &core.ResourceReceipt{Result: r}}
	}
	own := func(r core.Transaction_ResultContractResult) *core.Transaction {
		return &core.Transaction{Ret: []*core.Transaction_Result{{ContractRet: r}}}
	}
	flagged := receipt(core.Transaction_Result_SUCCESS)
	flagged.Result = core.TransactionInfo_FAILED
	for name, q := range map[string]struct {
		tx   *core.Transaction
		info *core.TransactionInfo
		ok   bool
		code string
	}{
		"a call":                      {&core.Transaction{}, receipt(core.Transaction_Result_SUCCESS), true, "SUCCESS"},
		"a transfer":                  {own(core.Transaction_Result_SUCCESS), receipt(core.Transaction_Result_DEFAULT), true, "SUCCESS"},
		"a reverted call":             {own(core.Transaction_Result_SUCCESS), receipt(core.Transaction_Result_REVERT), false, "REVERT"},
		"a call out of energy":        {&core.Transaction{}, receipt(core.Transaction_Result_OUT_OF_ENERGY), false, "OUT_OF_ENERGY"},
		"no result at all":            {&core.Transaction{}, &core.TransactionInfo{}, false, "DEFAULT"},
		"success that is also failed": {&core.Transaction{}, flagged, false, "SUCCESS"},
	} {
		if ok, code := verdict(q.tx, q.info); ok != q.ok || code != q.code {
			t.Errorf("%s: %v %s", name, ok, code)
		}
	}
}

func TestTokenMovements(t *testing.T) {
	c := offline(t)
	token := c.contracts[money.USDT]
	from, to := accountID{1}, accountID{2}
	word := func(a accountID) []byte { return append(make([]byte, 12), a[:]...) }
	good := func() *core.TransactionInfo_Log {
		return &core.TransactionInfo_Log{
			Address: bytes.Clone(token[:]), Topics: [][]byte{transferTopic(), word(from), word(to)},
			Data: money.Must(money.USDT, "3").Units().FillBytes(make([]byte, 32)),
		}
	}
	with := func(edit func(*core.TransactionInfo_Log)) []*core.TransactionInfo_Log {
		l := good()
		edit(l)
		return []*core.TransactionInfo_Log{l}
	}
	for name, q := range map[string]struct {
		logs  []*core.TransactionInfo_Log
		count int
		fails bool
	}{
		"a transfer":                {with(func(*core.TransactionInfo_Log) {}), 1, false},
		"with a 21-byte address":    {with(func(l *core.TransactionInfo_Log) { l.Address = token.full() }), 1, false},
		"another token":             {with(func(l *core.TransactionInfo_Log) { l.Address[0] ^= 1 }), 0, false},
		"another event":             {with(func(l *core.TransactionInfo_Log) { l.Topics[0] = make([]byte, 32) }), 0, false},
		"four topics (TRC-721)":     {with(func(l *core.TransactionInfo_Log) { l.Topics = append(l.Topics, make([]byte, 32)) }), 0, false},
		"two topics":                {with(func(l *core.TransactionInfo_Log) { l.Topics = l.Topics[:2] }), 0, false},
		"no topics":                 {with(func(l *core.TransactionInfo_Log) { l.Topics = nil }), 0, false},
		"no address":                {with(func(l *core.TransactionInfo_Log) { l.Address = nil }), 0, false},
		"a short amount":            {with(func(l *core.TransactionInfo_Log) { l.Data = l.Data[1:] }), 0, true},
		"a short address word":      {with(func(l *core.TransactionInfo_Log) { l.Topics[2] = l.Topics[2][1:] }), 0, true},
		"an impossible amount":      {with(func(l *core.TransactionInfo_Log) { l.Data = bytes.Repeat([]byte{0xff}, 32) }), 0, true},
		"two, with a fee":           {[]*core.TransactionInfo_Log{good(), good()}, 2, false},
		"behind an event of others": {[]*core.TransactionInfo_Log{{Address: make([]byte, 20)}, good()}, 1, false},
	} {
		got, err := c.tokenMovements("id", q.logs)
		if (err != nil) != q.fails || len(got) != q.count {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		for i, m := range got {
			if m.From != from.String() || m.To != to.String() || !m.Amount.Equal(money.Must(money.USDT, "3")) || m.Index != uint32(len(q.logs)-q.count+i) {
				t.Errorf("%s: %+v", name, m)
			}
		}
	}
}

func TestNativeMovements(t *testing.T) {
	a, b := accountID{1}, accountID{2}
	inner := func(note string, value int64, edit func(*core.InternalTransaction)) *core.InternalTransaction {
		i := &core.InternalTransaction{
			CallerAddress: a.full(), TransferToAddress: b.full(), Note: []byte(note),
			CallValueInfo: []*core.InternalTransaction_CallValueInfo{{CallValue: value}},
		}
		if edit != nil {
			edit(i)
		}
		return i
	}
	raw := &core.TransactionRaw{}
	if err := setContract(raw, core.Transaction_Contract_TriggerSmartContract,
		&core.TriggerSmartContract{OwnerAddress: a.full(), ContractAddress: b.full(), CallValue: 5}); err != nil {
		t.Fatal(err)
	}
	got, err := nativeMovements("id", raw, []*core.InternalTransaction{
		inner("call", 7, nil),
		inner("call", 0, nil),
		inner("suicide", 8, nil),
		inner("delegateResourceOfEnergy", 9, nil),
		inner("freezeForEnergy", 9, nil),
		inner("call", 9, func(i *core.InternalTransaction) { i.Rejected = true }),
		inner("call", 9, func(i *core.InternalTransaction) { i.CallValueInfo[0].TokenId = "1000001" }),
		inner("call", 9, func(i *core.InternalTransaction) { i.TransferToAddress = a.full() }),
	})
	if err != nil {
		t.Fatal(err)
	}
	var sums []int64
	seen := map[uint32]bool{}
	for _, m := range got {
		sums = append(sums, m.Amount.Units().Int64())
		if seen[m.Index] || m.Index < nativeIndex {
			t.Errorf("index %d", m.Index)
		}
		seen[m.Index] = true
	}
	if len(sums) != 3 || sums[0] != 5 || sums[1] != 7 || sums[2] != 8 {
		t.Errorf("moved %v", sums)
	}
}
