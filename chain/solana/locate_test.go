package solana

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// signedFixture is a signed payment of 10 USDT from alice to bob.
func signedFixture(t testing.TB, c *Client, d chain.Draft) chain.Signed {
	t.Helper()
	u, err := c.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := c.Sign(u, named("alice"), named("payer"))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// token is an entry of a transaction's token balances.
func tokenEntry(index int, mint string, owner sdk.PublicKey, amount string) map[string]any {
	return map[string]any{
		"accountIndex": index, "mint": mint, "owner": owner.String(), "programId": sdk.TokenProgramID.String(),
		"uiTokenAmount": map[string]any{"amount": amount, "decimals": 6, "uiAmount": nil, "uiAmountString": "wrong on purpose"},
	}
}

// receipt is the payment of signedFixture in a block: it creates the recipient's account.
func receipt(t testing.TB, id string) map[string]any {
	t.Helper()
	alice, bob, payer := named("alice").key(), named("bob").key(), named("payer").key()
	source, dest := ataOf(t, alice, usdt), ataOf(t, bob, usdt)
	return map[string]any{
		"slot": 1050, "blockTime": stubNow.Unix(), "version": "legacy",
		"transaction": map[string]any{"signatures": []string{id, id}, "message": map[string]any{
			"accountKeys": []string{payer.String(), alice.String(), source.String(), dest.String(), bob.String(), usdt},
		}},
		"meta": map[string]any{
			"err": nil, "fee": 10_040,
			"preBalances":       []uint64{1_000_000_000, 0, 2_039_280, 0, 0, 1},
			"postBalances":      []uint64{1_000_000_000 - 10_040 - 2_039_280, 0, 2_039_280, 2_039_280, 0, 1},
			"preTokenBalances":  []any{tokenEntry(2, usdt, alice, "100000000")},
			"postTokenBalances": []any{tokenEntry(2, usdt, alice, "90000000"), tokenEntry(3, usdt, bob, "10000000")},
			"loadedAddresses":   map[string]any{"writable": []string{}, "readonly": []string{}},
		},
	}
}

func seen(slot uint64, commitment string) map[string]any {
	return at(1100, []any{map[string]any{"slot": slot, "confirmations": nil, "err": nil, "confirmationStatus": commitment}})
}

func TestLocate(t *testing.T) {
	s, d := harness(t)
	c := stubbed(t, s)
	signed := signedFixture(t, c, d)
	for _, q := range []struct {
		status any
		want   chain.Stage
	}{
		{at(1100, []any{nil}), chain.StageAbsent},
		{seen(1099, "processed"), chain.StagePending},
		{seen(1050, "confirmed"), chain.StageIncluded},
		{seen(1050, "finalized"), chain.StageFinal},
	} {
		s.set(func() {
			s.answers["getSignatureStatuses"], s.answers["getTransaction"] = q.status, receipt(t, signed.TxID)
		})
		l, err := c.Locate(t.Context(), signed.TxID)
		if err != nil || l.Stage != q.want || l.Head.Final.Number != 1068 || l.Head.Final.Height != 968 || l.Head.Latest.Number != 1100 {
			t.Fatalf("want %s: %+v (%v)", q.want, l, err)
		}
		if q.want != chain.StageIncluded && q.want != chain.StageFinal {
			if l.OK || len(l.Transfers) > 0 {
				t.Errorf("%s with results: %+v", q.want, l)
			}
			continue
		}
		want := chain.Movement{TxID: signed.TxID, Index: 3, From: d.From, To: d.To, Amount: d.Amount, Accounts: []string{ataOf(t, named("alice").key(), usdt).String()}}
		if !l.OK || l.Code != succeeded || !l.Fee.Equal(lamports(10_040+2_039_280)) || l.Block.Number != 1050 || l.Block.Height != 950 ||
			len(l.Transfers) != 1 || fmt.Sprint(l.Transfers[0]) != fmt.Sprint(want) {
			t.Errorf("%s: %+v", q.want, l)
		}
	}
}

// TestAbsenceIsProven tests answers that look like absence and prove nothing.
func TestAbsenceIsProven(t *testing.T) {
	for name, q := range map[string]struct {
		edit func(*stub)
		want chain.Reason
	}{
		"a machine behind its final head": {func(s *stub) { s.answers["getSignatureStatuses"] = at(1067, []any{nil}) }, chain.ReasonUnavailable},
		"a node that forgets":             {func(s *stub) { s.answers["getFirstAvailableBlock"] = 900 }, chain.ReasonUnavailable},
		"a node without this method":      {func(s *stub) { s.answers["getFirstAvailableBlock"] = &rpcError{Code: -32601} }, chain.ReasonUnavailable},
		"a status without a body": {func(s *stub) {
			s.answers["getSignatureStatuses"], s.answers["getTransaction"] = seen(1050, finalized), nil
		}, chain.ReasonUnavailable},
		"no status at all":       {func(s *stub) { s.answers["getSignatureStatuses"] = at(1100, []any{}) }, chain.ReasonProtocol},
		"no block height":        {func(s *stub) { s.blocks[1068] = map[string]any{"blockHeight": nil} }, chain.ReasonUnavailable},
		"a height over its slot": {func(s *stub) { s.blocks[1068] = map[string]any{"blockHeight": 5000} }, chain.ReasonUnavailable},
	} {
		s, d := harness(t)
		c := stubbed(t, s)
		signed := signedFixture(t, c, d)
		s.set(func() { q.edit(s) })
		l, err := c.Locate(t.Context(), signed.TxID)
		if err == nil {
			t.Errorf("%s: %+v", name, l)
		}
		wantReason(t, name, err, q.want)
	}
}

func TestLocateAsksEveryNode(t *testing.T) {
	ahead, d := harness(t)
	behind, _ := harness(t)
	behind.final, behind.latest = 1000, 1032
	c := stubbed(t, ahead, behind)
	signed := signedFixture(t, c, d)
	l, err := c.Locate(t.Context(), signed.TxID)
	if err != nil || l.Stage != chain.StageAbsent || l.Head.Final.Number != 1000 {
		t.Errorf("the absence is claimed for %+v (%v)", l.Head.Final, err)
	}
	behind.set(func() {
		behind.answers["getSignatureStatuses"], behind.answers["getTransaction"] = seen(990, finalized), receipt(t, signed.TxID)
	})
	if l, err := c.Locate(t.Context(), signed.TxID); err != nil || l.Stage != chain.StageFinal {
		t.Errorf("the second node was not accepted: %+v (%v)", l, err)
	}
	other := receipt(t, strings.Repeat("1", 64))
	behind.set(func() { behind.answers["getTransaction"] = other })
	_, err = c.Locate(t.Context(), signed.TxID)
	wantReason(t, "another transaction", err, chain.ReasonProtocol)
}

// A node that has seen the transaction and can't return it is no proof of absence, even if other nodes miss it.
func TestSightingIsNoAbsence(t *testing.T) {
	for name, body := range map[string]func(t *testing.T, id string) any{
		"without its body": func(*testing.T, string) any { return nil },
		"without its token balances": func(t *testing.T, id string) any {
			return without(t, id, "postTokenBalances")
		},
		"busy": func(*testing.T, string) any { return &rpcError{Code: -32005} },
	} {
		knows, d := harness(t)
		misses, _ := harness(t)
		c := stubbed(t, knows, misses)
		signed := signedFixture(t, c, d)
		knows.set(func() {
			knows.answers["getSignatureStatuses"], knows.answers["getTransaction"] = seen(1050, finalized), body(t, signed.TxID)
		})
		l, err := c.Locate(t.Context(), signed.TxID)
		if err == nil {
			t.Errorf("%s: %+v", name, l)
		}
		wantReason(t, name, err, chain.ReasonUnavailable)
	}
}

// without is a payment with incomplete balances.
func without(t testing.TB, id, what string) map[string]any {
	t.Helper()
	tx := receipt(t, id)
	delete(tx["meta"].(map[string]any), what)
	return tx
}

func TestLocateFailed(t *testing.T) {
	s, d := harness(t)
	c := stubbed(t, s)
	signed := signedFixture(t, c, d)
	r := receipt(t, signed.TxID)
	r["meta"].(map[string]any)["err"] = json.RawMessage(`{"InstructionError":[4,{"Custom":17}]}`)
	s.set(func() { s.answers["getSignatureStatuses"], s.answers["getTransaction"] = seen(1050, finalized), r })
	l, err := c.Locate(t.Context(), signed.TxID)
	if err != nil || l.OK || l.Code != `{"InstructionError":[4,{"Custom":17}]}` || len(l.Transfers) != 0 || !l.Fee.Equal(lamports(10_040)) {
		t.Errorf("%+v (%v)", l, err)
	}
}

func TestBroadcast(t *testing.T) {
	for name, q := range map[string]struct {
		edit func(*stub, string)
		want chain.BroadcastState
		code string
	}{
		"taken":              {func(*stub, string) {}, chain.BroadcastAccepted, succeeded},
		"in a block":         {func(s *stub, _ string) { s.answers["getSignatureStatuses"] = seen(1099, "processed") }, chain.BroadcastKnown, alreadyProcessed},
		"too old":            {func(s *stub, _ string) { s.answers["isBlockhashValid"] = at(1100, false) }, chain.BroadcastRejected, blockhashNotFound},
		"status unavailable": {func(s *stub, _ string) { s.answers["getSignatureStatuses"] = &rpcError{Code: -32005} }, chain.BroadcastAccepted, succeeded},
		"already processed":  {refuse(codePreflightFailure, `{"err":"AlreadyProcessed"}`), chain.BroadcastKnown, alreadyProcessed},
		"unknown blockhash":  {refuse(codePreflightFailure, `{"err":"BlockhashNotFound"}`), chain.BroadcastRejected, blockhashNotFound},
		"would fail":         {refuse(codePreflightFailure, `{"err":{"InstructionError":[4,{"Custom":1}]}}`), chain.BroadcastRejected, `{"InstructionError":[4,{"Custom":1}]}`},
		"bad signature":      {refuse(codeSignatureInvalid, ``), chain.BroadcastRejected, "SignatureFailure"},
		"bad encoding":       {refuse(codeInvalidParams, ``), chain.BroadcastRejected, "InvalidParams"},
		"node behind":        {refuse(-32005, `{"numSlotsBehind":42}`), chain.BroadcastUnknown, "REFUSED"},
		"out of order":       {func(s *stub, _ string) { s.status = 503 }, chain.BroadcastUnknown, "NO_ANSWER"},
		"another id":         {func(s *stub, _ string) { s.answers["sendTransaction"] = "other" }, chain.BroadcastUnknown, "NO_ANSWER"},
	} {
		s, d := harness(t)
		c := stubbed(t, s)
		signed := signedFixture(t, c, d)
		s.set(func() {
			s.answers["sendTransaction"] = signed.TxID
			q.edit(s, signed.TxID)
		})
		b, err := c.Broadcast(t.Context(), signed.Raw)
		if err != nil || b.State != q.want || b.Code != q.code {
			t.Errorf("%s: %+v (%v)", name, b, err)
		}
	}
}

func refuse(code int, data string) func(*stub, string) {
	return func(s *stub, _ string) {
		s.answers["sendTransaction"] = &rpcError{Code: code, Message: "no", Data: json.RawMessage(orNull(data))}
	}
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

func TestBroadcastAsksEveryNode(t *testing.T) {
	sick, d := harness(t)
	well, _ := harness(t)
	c := stubbed(t, sick, well)
	signed := signedFixture(t, c, d)
	sick.set(func() { sick.answers["sendTransaction"] = &rpcError{Code: codeInvalidParams} })
	well.set(func() { well.answers["sendTransaction"] = signed.TxID })
	b, err := c.Broadcast(t.Context(), signed.Raw)
	if err != nil || b.State != chain.BroadcastAccepted || sick.count("sendTransaction") != 1 {
		t.Errorf("%+v (%v)", b, err)
	}
	if _, err := c.Broadcast(t.Context(), flipped(signed.Raw, 3)); err == nil {
		t.Error("bytes with a broken signature were offered")
	}
}

func TestTransfers(t *testing.T) {
	s, d := harness(t)
	c := stubbed(t, s)
	id := signedFixture(t, c, d).TxID
	tx := receipt(t, id)
	s.blocks[1050] = map[string]any{"transactions": []any{tx}}
	s.blocks[1090] = map[string]any{"transactions": []any{tx}}
	for _, slot := range []uint64{1050, 1090} {
		got, err := c.Transfers(t.Context(), slot)
		if err != nil || got.Skipped || got.Block.Number != slot || got.Block.ID != hashAt(slot) || len(got.Movements) != 1 || got.Movements[0].To != d.To {
			t.Errorf("%d: %+v (%v)", slot, got, err)
		}
	}
	_, err := c.Transfers(t.Context(), 1101)
	wantReason(t, "a slot to come", err, chain.ReasonUnavailable)
	for name, q := range map[string]struct {
		block map[string]any
		want  chain.Reason
	}{
		"without transactions":   {map[string]any{"transactions": nil}, chain.ReasonUnavailable},
		"without balances":       {map[string]any{"transactions": []any{map[string]any{"transaction": tx["transaction"], "meta": nil}}}, chain.ReasonUnavailable},
		"without token balances": {map[string]any{"transactions": []any{without(t, "half", "preTokenBalances"), tx}}, chain.ReasonUnavailable},
		"with half of them":      {map[string]any{"transactions": []any{without(t, "half", "postTokenBalances"), tx}}, chain.ReasonUnavailable},
		"without time":           {map[string]any{"blockTime": nil}, chain.ReasonUnavailable},
		"from the future":        {map[string]any{"parentSlot": 1051}, chain.ReasonProtocol},
		"with a bad hash":        {map[string]any{"blockhash": "0x12"}, chain.ReasonProtocol},
	} {
		s.set(func() { s.blocks[1051] = q.block })
		got, err := c.Transfers(t.Context(), 1051)
		if err == nil {
			t.Errorf("%s: %+v", name, got)
		}
		wantReason(t, name, err, q.want)
	}
	odd := receipt(t, "odd")
	odd["meta"].(map[string]any)["postTokenBalances"] = []any{tokenEntry(2, usdt, named("alice").key(), "1.5")}
	s.set(func() { s.blocks[1051] = map[string]any{"transactions": []any{odd, tx}} })
	got, err := c.Transfers(t.Context(), 1051)
	if err != nil || len(got.Movements) != 1 || len(got.Unreadable) != 1 || got.Unreadable[0].TxID != "odd" || got.Unreadable[0].Detail == "" {
		t.Errorf("beside an odd transaction: %+v (%v)", got, err)
	}
	s.set(func() { s.answers["getBlock"] = &rpcError{Code: codeUnsupportedVersion} })
	_, err = c.Transfers(t.Context(), 1050)
	wantReason(t, "an unknown format", err, chain.ReasonProtocol)
}

// A slot is skipped only when the next final block proves it, and not because a node lacks the block.
func TestSkippedSlots(t *testing.T) {
	for name, q := range map[string]struct {
		slot    uint64
		next    any
		parent  uint64
		skipped bool
	}{
		"passed over":      {1050, []uint64{1052}, 1049, true},
		"missing":          {1050, []uint64{1052}, 1050, false},
		"missing, further": {1050, []uint64{1052}, 1051, false},
		"there after all":  {1050, []uint64{1050}, 1049, false},
		"nothing after it": {1050, []uint64{}, 1049, false},
		"not final yet":    {1090, []uint64{1092}, 1089, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub()
			c := stubbed(t, s)
			s.answers["getBlocksWithLimit"] = q.next
			s.blocks[1052] = map[string]any{"parentSlot": q.parent}
			s.blocks[1092] = map[string]any{"parentSlot": q.parent} // false, and must not be accepted
			s.refuseBlock = map[uint64]int{q.slot: codeSlotSkippedArchive}
			got, err := c.Transfers(t.Context(), q.slot)
			if q.skipped != (err == nil && got.Skipped && got.Block.Number == q.slot) {
				t.Errorf("%+v (%v)", got, err)
			}
			if !q.skipped {
				wantReason(t, name, err, chain.ReasonUnavailable)
			}
		})
	}
}

func TestBalances(t *testing.T) {
	s, d := harness(t)
	c := stubbed(t, s)
	for asset, want := range map[money.Asset]string{money.USDT: "100", money.USDC: "0", money.SOL: "1"} {
		b, err := c.Balance(t.Context(), d.From, asset)
		if err != nil || !b.Amount.Equal(money.Must(asset, want)) || b.At.Number != 1100 || b.At.ID != hashAt(1100) {
			t.Errorf("%s: %+v (%v)", asset, b, err)
		}
	}
	alice, tether := named("alice").key(), sdk.MustPublicKeyFromBase58(usdt)
	s.set(func() {
		s.accounts[ataOf(t, alice, usdt).String()] = holdingAccount(tether, named("mallory").key(), 7, 1)
	})
	if b, err := c.Balance(t.Context(), d.From, money.USDT); err != nil || !b.Amount.IsZero() {
		t.Errorf("an account that was given away counts %s (%v)", b.Amount, err)
	}
	s.set(func() { s.accounts[usdt] = mintAccount(6, sdk.Token2022ProgramID) })
	_, err := c.Balance(t.Context(), d.From, money.USDT)
	wantReason(t, "a mint of Token-2022", err, chain.ReasonUnsupported)
}

func TestAddresses(t *testing.T) {
	c := stubbed(t, newStub())
	alice := named("alice")
	if got, err := c.Address(alice.PublicKey()); err != nil || got != alice.address() {
		t.Errorf("%s (%v)", got, err)
	}
	for _, bad := range []string{
		"", "abc", "0" + alice.address()[1:], alice.address() + "1", "l" + alice.address()[1:], strings.Repeat("1", 44),
		sdk.SystemProgramID.String(), sdk.TokenProgramID.String(), "1nc1nerator11111111111111111111111111111111",
		usdt, ataOf(t, alice.key(), usdt).String(), "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "0xdAC17F958D2ee523a2206206994597C13D831ec7",
	} {
		if got, err := c.ParseAddress(bad); err == nil {
			t.Errorf("%q is read as %s", bad, got)
		}
	}
	if _, err := c.Address(make([]byte, 65)); err == nil {
		t.Error("a key of another kind has an address")
	}
}

func TestConfig(t *testing.T) {
	good := Config{Nodes: []Endpoint{{URL: "https://node.example/key"}}, Genesis: GenesisMainnet, Tokens: map[money.Asset]string{money.USDT: usdt}}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Config){
		"no nodes":        func(c *Config) { c.Nodes = nil },
		"too many nodes":  func(c *Config) { c.Nodes = slices.Repeat(c.Nodes, maxNodes+1) },
		"another scheme":  func(c *Config) { c.Nodes = []Endpoint{{URL: "ftp://node.example"}} },
		"no host":         func(c *Config) { c.Nodes = []Endpoint{{URL: "https:///key"}} },
		"no genesis":      func(c *Config) { c.Genesis = "" },
		"a bad genesis":   func(c *Config) { c.Genesis = "mainnet" },
		"a bad mint":      func(c *Config) { c.Tokens = map[money.Asset]string{money.USDT: "x"} },
		"one mint twice":  func(c *Config) { c.Tokens = map[money.Asset]string{money.USDT: usdt, money.USDC: usdt} },
		"a coin as token": func(c *Config) { c.Tokens = map[money.Asset]string{money.TRX: usdt} },
		"a negative wait": func(c *Config) { c.CallTimeout = -time.Second },
		"prices reversed": func(c *Config) { c.Fees.PriceFloor = 2_000_000 },
		"a cap in TRX":    func(c *Config) { c.Fees.Cap = money.Must(money.TRX, "1") },
	} {
		bad := good
		edit(&bad)
		if _, err := New(bad); err == nil {
			t.Errorf("%s is accepted", name)
		} else if strings.Contains(err.Error(), "/key") {
			t.Errorf("%s: the provider's key is in %v", name, err)
		}
	}
	e := Endpoint{URL: "https://node.example/key?x=secret"}
	for _, text := range []string{e.String(), fmt.Sprintf("%v %+v %#v %s", e, e, e, e)} {
		if strings.Contains(text, "key") || strings.Contains(text, "secret") {
			t.Errorf("the provider's key is shown: %s", text)
		}
	}
}
