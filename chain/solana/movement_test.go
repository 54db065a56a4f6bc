package solana

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// answerOf makes a transaction from its parts.
func answerOf(t testing.TB, keys []sdk.PublicKey, pre, post []uint64, before, after []any) *txAnswer {
	t.Helper()
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.String()
	}
	text, err := json.Marshal(map[string]any{
		"transaction": map[string]any{"signatures": []string{"id"}, "message": map[string]any{"accountKeys": names}},
		"meta": map[string]any{
			"err": nil, "fee": 5_000, "preBalances": pre, "postBalances": post,
			"preTokenBalances": append([]any{}, before...), "postTokenBalances": append([]any{}, after...),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	tx := &txAnswer{}
	if err := json.Unmarshal(text, tx); err != nil {
		t.Fatal(err)
	}
	return tx
}

func flow(index uint32, from, to, amount string, others ...string) string {
	quantity, asset, _ := strings.Cut(amount, " ")
	slices.Sort(others)
	return fmt.Sprintf("%d %s>%s %s %s %v", index, from, to, money.Must(money.Asset(asset), quantity), asset, others)
}

func flows(all []chain.Movement) []string {
	out := []string{}
	for _, m := range all {
		if !slices.IsSorted(m.Others) {
			out = append(out, "out of order")
		}
		out = append(out, flow(m.Index, m.From, m.To, m.Amount.String()+" "+string(m.Amount.Asset()), m.Others...))
	}
	return out
}

// A sender that is named by its wallet's address also has the token account that the money left, but not one that gained, nor one
// that is named itself.
func TestAccountsOfSenders(t *testing.T) {
	alice, bob, carol := named("alice").key(), named("bob").key(), named("carol").key()
	a, b, side := ataOf(t, alice, usdt), ataOf(t, bob, usdt), named("side account").key()
	keys := []sdk.PublicKey{named("payer").key(), a, b, side, ataOf(t, carol, usdt)}
	spent := []any{tokenEntry(1, usdt, alice, "3000000"), tokenEntry(2, usdt, bob, "4000000"), tokenEntry(3, usdt, bob, "1000000"), tokenEntry(4, usdt, carol, "0")}
	left := []any{tokenEntry(1, usdt, alice, "0"), tokenEntry(2, usdt, bob, "0"), tokenEntry(3, usdt, bob, "0"), tokenEntry(4, usdt, carol, "8000000")}
	want := []string{a.String(), b.String()}
	slices.Sort(want)
	e, err := stubbed(t, newStub()).effect(answerOf(t, keys, []uint64{10_000, 1, 1, 1, 1}, []uint64{5_000, 1, 1, 1, 1}, spent, left))
	if err != nil || len(e.moved) != 1 || !slices.Equal(e.moved[0].Accounts, want) {
		t.Errorf("%+v, %v; want the accounts %v", e.moved, err, want)
	}
}

func TestTokenMovements(t *testing.T) {
	c := stubbed(t, newStub())
	payer, alice, bob, carol := named("payer").key(), named("alice").key(), named("bob").key(), named("carol").key()
	a, b, d := ataOf(t, alice, usdt), ataOf(t, bob, usdt), ataOf(t, carol, usdt)
	side := named("side account").key() // of bob, not his associated one
	keys := []sdk.PublicKey{payer, a, b, d, side, ataOf(t, alice, usdc)}
	steady := []uint64{10_000, 1, 1, 1, 1, 1}
	after := []uint64{5_000, 1, 1, 1, 1, 1}
	entry := func(index int, owner sdk.PublicKey, amount string) any { return tokenEntry(index, usdt, owner, amount) }
	other := "So11111111111111111111111111111111111111112"
	for name, q := range map[string]struct {
		before, after []any
		want          []string
	}{
		"a payment": {
			[]any{entry(1, alice, "10000000"), entry(2, bob, "1")},
			[]any{entry(1, alice, "3000000"), entry(2, bob, "7000001")},
			[]string{flow(2, alice.String(), bob.String(), "7 USDT")},
		},
		"to a new account": {
			[]any{entry(1, alice, "10000000")},
			[]any{entry(1, alice, "3000000"), entry(2, bob, "7000000")},
			[]string{flow(2, alice.String(), bob.String(), "7 USDT")},
		},
		"from an account that was closed": {
			[]any{entry(1, alice, "7000000"), entry(2, bob, "0")},
			[]any{entry(2, bob, "7000000")},
			[]string{flow(2, alice.String(), bob.String(), "7 USDT")},
		},
		"to an account besides the associated one": {
			[]any{entry(1, alice, "7000000"), entry(4, bob, "0")},
			[]any{entry(1, alice, "0"), entry(4, bob, "7000000")},
			[]string{flow(4, alice.String(), side.String(), "7 USDT")},
		},
		"to an account that was handed away": {
			[]any{entry(1, alice, "7000000"), entry(2, carol, "0")},
			[]any{entry(1, alice, "0"), entry(2, carol, "7000000")},
			[]string{flow(2, alice.String(), b.String(), "7 USDT")},
		},
		"one pays two": {
			[]any{entry(1, alice, "7000000"), entry(2, bob, "0"), entry(3, carol, "0")},
			[]any{entry(1, alice, "0"), entry(2, bob, "3000000"), entry(3, carol, "4000000")},
			[]string{flow(2, alice.String(), bob.String(), "3 USDT"), flow(3, alice.String(), carol.String(), "4 USDT")},
		},
		"two pay one": {
			[]any{entry(1, alice, "3000000"), entry(2, bob, "4000000"), entry(3, carol, "0")},
			[]any{entry(1, alice, "0"), entry(2, bob, "0"), entry(3, carol, "7000000")},
			[]string{flow(3, bob.String(), carol.String(), "7 USDT", alice.String())},
		},
		"one pays beside another who moves more": {
			[]any{entry(1, alice, "1000000000"), entry(2, bob, "1001000000"), entry(3, carol, "0"), entry(4, payer, "0")},
			[]any{entry(1, alice, "0"), entry(2, bob, "0"), entry(3, carol, "1000000000"), entry(4, payer, "1001000000")},
			[]string{
				flow(3, bob.String(), carol.String(), "1000 USDT", alice.String()),
				flow(4, bob.String(), side.String(), "1001 USDT", alice.String()),
			},
		},
		"from an account besides the associated one": {
			[]any{entry(4, bob, "7000000"), entry(3, carol, "0")},
			[]any{entry(4, bob, "0"), entry(3, carol, "7000000")},
			[]string{flow(3, side.String(), carol.String(), "7 USDT", bob.String())},
		},
		"from both accounts of one": {
			[]any{entry(2, bob, "4000000"), entry(4, bob, "3000000"), entry(3, carol, "0")},
			[]any{entry(2, bob, "0"), entry(4, bob, "0"), entry(3, carol, "7000000")},
			[]string{flow(3, bob.String(), carol.String(), "7 USDT", side.String())},
		},
		"minted": {
			[]any{entry(1, alice, "0")},
			[]any{entry(1, alice, "7000000")},
			[]string{flow(1, usdt, alice.String(), "7 USDT")},
		},
		"burnt": {[]any{entry(1, alice, "7000000")}, []any{entry(1, alice, "0")}, []string{}},
		"two tokens": {
			[]any{entry(1, alice, "7000000"), entry(2, bob, "0"), tokenEntry(5, usdc, alice, "0")},
			[]any{entry(1, alice, "0"), entry(2, bob, "7000000"), tokenEntry(5, usdc, alice, "2000000")},
			[]string{flow(2, alice.String(), bob.String(), "7 USDT"), flow(5, usdc, alice.String(), "2 USDC")},
		},
		"another token": {
			[]any{tokenEntry(1, other, alice, "7000000"), tokenEntry(2, other, bob, "0")},
			[]any{tokenEntry(1, other, alice, "0"), tokenEntry(2, other, bob, "7000000")},
			[]string{},
		},
		"nothing moved": {[]any{entry(1, alice, "7")}, []any{entry(1, alice, "7")}, []string{}},
	} {
		e, err := c.effect(answerOf(t, keys, steady, after, q.before, q.after))
		if got := flows(e.moved); err != nil || !slices.Equal(got, q.want) {
			t.Errorf("%s: %v, want %v (%v)", name, got, q.want, err)
		}
	}
	strange := tokenEntry(1, usdt, alice, "7")
	strange["programId"] = sdk.Token2022ProgramID.String()
	nobody := tokenEntry(1, usdt, alice, "7")
	delete(nobody, "owner")
	for name, bad := range map[string][]any{
		"a fraction":       {entry(1, alice, "7.5")},
		"a negative":       {entry(1, alice, "-7")},
		"too much":         {entry(1, alice, "18446744073709551616")},
		"no such account":  {entry(6, alice, "7")},
		"an account twice": {entry(1, alice, "7"), entry(1, alice, "8")},
		"another program":  {strange},
		"nobody's":         {nobody},
	} {
		if e, err := c.effect(answerOf(t, keys, steady, after, nil, bad)); err == nil {
			t.Errorf("%s: %v", name, flows(e.moved))
		}
	}
}

func TestNativeMovements(t *testing.T) {
	c := stubbed(t, newStub())
	payer, alice, bob := named("payer").key(), named("alice").key(), named("bob").key()
	account := ataOf(t, bob, usdt)
	p, a, b := payer.String(), alice.String(), bob.String()
	opened := []any{tokenEntry(2, usdt, bob, "0")}
	for name, q := range map[string]struct {
		keys          []sdk.PublicKey
		pre, post     []uint64
		before, after []any
		fee           uint64
		want          []string
	}{
		"only a fee":   {[]sdk.PublicKey{payer, alice}, []uint64{9_000, 1}, []uint64{4_000, 1}, nil, nil, 5_000, []string{}},
		"by the payer": {[]sdk.PublicKey{alice, bob}, []uint64{9_000, 0}, []uint64{1_000, 3_000}, nil, nil, 5_000, []string{flow(nativeIndex+1, a, b, "0.000003 SOL")}},
		"sponsored": {
			[]sdk.PublicKey{payer, alice, bob},
			[]uint64{9_000, 8_000, 1},
			[]uint64{4_000, 1_000, 7_001},
			nil, nil, 5_000,
			[]string{flow(nativeIndex+2, a, b, "0.000007 SOL")},
		},
		"two pay one": {
			[]sdk.PublicKey{payer, alice, bob},
			[]uint64{9_000, 8_000, 1},
			[]uint64{3_000, 1_000, 8_001},
			nil, nil, 5_000,
			[]string{flow(nativeIndex+2, a, b, "0.000008 SOL", p)},
		},
		"to the payer": {[]sdk.PublicKey{payer, alice}, []uint64{9_000, 8_000}, []uint64{11_000, 1_000}, nil, nil, 5_000, []string{flow(nativeIndex, a, p, "0.000007 SOL")}},
		"rent": {
			[]sdk.PublicKey{payer, alice, account}, []uint64{90_000, 1, 0}, []uint64{45_000, 1, 40_000}, nil, opened, 45_000, []string{},
		},
		"rent of an account that had some": {
			[]sdk.PublicKey{payer, alice, account}, []uint64{90_000, 1, 10_000}, []uint64{55_000, 1, 40_000}, nil, opened, 35_000, []string{},
		},
		"rent and a payment": {
			[]sdk.PublicKey{alice, bob, account},
			[]uint64{90_000, 1, 0},
			[]uint64{38_000, 7_001, 40_000},
			nil, opened, 45_000,
			[]string{flow(nativeIndex+1, a, b, "0.000007 SOL")},
		},
		"rent by another": {
			[]sdk.PublicKey{payer, alice, account}, []uint64{9_000, 50_000, 0}, []uint64{4_000, 10_000, 40_000}, nil, opened, 5_000, []string{},
		},
	} {
		e, err := c.effect(answerOf(t, q.keys, q.pre, q.post, q.before, q.after))
		if got := flows(e.moved); err != nil || !slices.Equal(got, q.want) || !e.fee.Equal(lamports(q.fee)) {
			t.Errorf("%s: %v, fee %s, want %v (%v)", name, got, e.fee, q.want, err)
		}
	}
	for name, post := range map[string][]uint64{"too few balances": {1}, "too many": {1, 2, 3}} {
		if _, err := c.effect(answerOf(t, []sdk.PublicKey{payer, alice}, []uint64{1, 2}, post, nil, nil)); err == nil {
			t.Errorf("%s pass", name)
		}
	}
}

// Addresses of lookup tables come after the message's own accounts.
func TestLoadedAddresses(t *testing.T) {
	c := stubbed(t, newStub())
	payer, alice, bob := named("payer").key(), named("alice").key(), named("bob").key()
	tx := answerOf(t, []sdk.PublicKey{payer}, []uint64{9_000, 1, 1}, []uint64{4_000, 1, 1},
		[]any{tokenEntry(1, usdt, alice, "7000000")}, []any{tokenEntry(1, usdt, alice, "0"), tokenEntry(2, usdt, bob, "7000000")})
	tx.Meta.LoadedAddresses.Writable = []string{ataOf(t, alice, usdt).String()}
	tx.Meta.LoadedAddresses.Readonly = []string{ataOf(t, bob, usdt).String()}
	e, err := c.effect(tx)
	if got := flows(e.moved); err != nil || !slices.Equal(got, []string{flow(2, alice.String(), bob.String(), "7 USDT")}) {
		t.Errorf("%v (%v)", got, err)
	}
}

// An account that is a read-only signer of one instruction and written by another must not get the rights of a third one, as
// it does in solana-go's compiler.
func TestCompileJoinsRights(t *testing.T) {
	a, b, d := named("a").key(), named("b").key(), named("d").key()
	meta := func(key sdk.PublicKey, signer, writable bool) *sdk.AccountMeta {
		return &sdk.AccountMeta{PublicKey: key, IsSigner: signer, IsWritable: writable}
	}
	all := []sdk.Instruction{
		sdk.NewInstruction(sdk.TokenProgramID, sdk.AccountMetaSlice{meta(a, true, false), meta(b, true, false), meta(d, false, true)}, []byte{1}),
		sdk.NewInstruction(sdk.SystemProgramID, sdk.AccountMetaSlice{meta(b, false, true), meta(d, false, false)}, []byte{2}),
	}
	m, err := compile(named("payer").key(), sdk.Hash{1}, all)
	if err != nil {
		t.Fatal(err)
	}
	sameInstructions(t, m, all)
	body, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	again, err := readMessage(body)
	if err != nil {
		t.Fatal(err)
	}
	sameInstructions(t, again, all)
	if all[0].Accounts()[1].IsWritable {
		t.Error("the instructions were modified")
	}
}
