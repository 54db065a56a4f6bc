package solana

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"
	"github.com/gagliardetto/solana-go/rpc"

	"kivuko/dev/nodes/solana/programs/programstest"
)

// tokenBench has the real token programs.
func tokenBench(t *testing.T) *bench {
	t.Helper()
	return startBench(t, Config{Programs: programstest.Set(t)})
}

// own does one of the node's own transactions and makes its block.
func (b *bench) own(signature solana.Signature, err error) solana.Signature {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	b.block()
	if got := b.status(signature); got == nil || got.Err != nil {
		b.t.Fatalf("the node's own transaction: %+v", got)
	}
	return signature
}

// held is what an owner has of a mint.
func (b *bench) held(owner, mint solana.PublicKey) string {
	b.t.Helper()
	m, err := b.mint(mint)
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := b.client.GetTokenAccountBalance(context.Background(), associated(owner, mint, m.program), rpc.CommitmentProcessed)
	if err != nil {
		b.t.Fatal(err)
	}
	return out.Value.Amount
}

// transfer moves tokens of SPL Token between associated accounts that exist.
func (b *bench) transfer(from solana.PrivateKey, to, mint solana.PublicKey, amount uint64) *solana.Transaction {
	b.t.Helper()
	return b.signed(b.latest(), []solana.Instruction{
		token.NewTransferCheckedInstruction(amount, tokenDecimals, associated(from.PublicKey(), mint, solana.TokenProgramID), mint,
			associated(to, mint, solana.TokenProgramID), from.PublicKey(), nil).Build(),
	}, from)
}

func TestTokensMoveThroughTheRealProgram(t *testing.T) {
	b := tokenBench(t)
	alice, bob, usdt := b.alice(), newActor("bob").PublicKey(), mustKey(USDTAddress)
	b.own(b.FundToken(usdt, alice.PublicKey(), 5_000_000))
	b.own(b.FundToken(usdt, bob, 1))
	signature := b.send(b.transfer(alice, bob, usdt, 1_500_000))
	b.block()
	if got := b.held(bob, usdt); got != "1500001" {
		t.Errorf("bob has %s", got)
	}
	b.finalise()
	got, err := b.client.GetTransaction(context.Background(), signature, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]rpc.TokenBalance{"0.000001": got.Meta.PreTokenBalances, "1.500001": got.Meta.PostTokenBalances} {
		if len(list) != 2 {
			t.Errorf("balances %+v", list)
		}
		for _, balance := range list {
			if *balance.Owner == bob && (balance.UiTokenAmount.UiAmountString != name || *balance.ProgramId != solana.TokenProgramID || balance.Mint != usdt) {
				t.Errorf("bob's balance %+v %+v, want %s", balance, balance.UiTokenAmount, name)
			}
		}
	}
	parsed, err := b.client.GetParsedTransaction(context.Background(), signature, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(parsed.Transaction.Message.Instructions[0].Parsed)
	if err != nil || !strings.Contains(string(raw), "transferChecked") || !strings.Contains(string(raw), `"uiAmountString":"1.5"`) {
		t.Errorf("parsed: %s, %v", raw, err)
	}
	var changes []string
	for _, m := range b.Movements(bob) {
		if m.Token == USDTAddress && m.Owner == bob && m.Final {
			changes = append(changes, m.Change)
		}
	}
	if strings.Join(changes, " ") != "1 1500000" {
		t.Errorf("bob's movements: %v", changes)
	}
}

// An account that the transaction opens has no balance before; the program
// invocations that open it are shown.
func TestOpeningAnAccountIsShown(t *testing.T) {
	b := tokenBench(t)
	bob := newActor("bob").PublicKey()
	signature := b.own(b.FundToken(mustKey(USDCAddress), bob, 7))
	b.finalise()
	got, err := b.client.GetTransaction(context.Background(), signature, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Meta.PreTokenBalances) != 1 || len(got.Meta.PostTokenBalances) != 2 {
		t.Errorf("balances %+v, then %+v", got.Meta.PreTokenBalances, got.Meta.PostTokenBalances)
	}
	if inner := got.Meta.InnerInstructions; len(inner) != 1 || inner[0].Index != 1 || len(inner[0].Instructions) != 4 {
		t.Errorf("inner instructions %+v", inner)
	}
	raw := string(b.ask("getTransaction", signature, object{"encoding": "jsonParsed"}).Result)
	for _, want := range []string{"createIdempotent", "getAccountDataSize", "initializeImmutableOwner", "initializeAccount3", "createAccount"} {
		if !strings.Contains(raw, `"type":"`+want+`"`) {
			t.Errorf("no %s in %s", want, raw)
		}
	}
	held, err := b.client.GetTokenAccountsByOwner(context.Background(), bob, &rpc.GetTokenAccountsConfig{Mint: mustKey(USDCAddress).ToPointer()}, &rpc.GetTokenAccountsOpts{Encoding: solana.EncodingJSONParsed})
	if err != nil || len(held.Value) != 1 || !strings.Contains(string(held.Value[0].Account.Data.GetRawJSON()), `"state":"initialized"`) {
		t.Errorf("accounts %+v, %v", held, err)
	}
}

func TestFrozenAccountsRefuse(t *testing.T) {
	b := tokenBench(t)
	alice, bob, usdt := b.alice(), newActor("bob").PublicKey(), mustKey(USDTAddress)
	b.own(b.FundToken(usdt, alice.PublicKey(), 5))
	b.own(b.Freeze(usdt, bob, true))
	data := refused(t, second(b.offer(b.transfer(alice, bob, usdt, 1))), codePreflight).Data.(map[string]any)
	if raw, err := json.Marshal(data["err"]); err != nil || string(raw) != `{"InstructionError":[0,{"Custom":17}]}` {
		t.Errorf("refused with %s, %v", raw, err)
	}
	if raw := b.ask("getAccountInfo", associated(bob, usdt, solana.TokenProgramID), object{"encoding": "jsonParsed", "commitment": "processed"}); !strings.Contains(string(raw.Result), `"state":"frozen"`) {
		t.Errorf("account %s", raw.Result)
	}
	b.own(b.Freeze(usdt, bob, false))
	b.send(b.transfer(alice, bob, usdt, 1))
	b.block()
	if got := b.held(bob, usdt); got != "1" {
		t.Errorf("bob has %s", got)
	}
}

// The genesis accounts of Token-2022 do what a product must refuse.
func TestFeeAndMemoAccounts(t *testing.T) {
	b := tokenBench(t)
	bob, mint, memo := newActor("bob").PublicKey(), mustKey(FeeMintAddress), mustKey(MemoOwnerAddress)
	b.own(b.FundToken(mint, bob, 100_000))
	if got := b.held(bob, mint); got != "99000" {
		t.Errorf("bob has %s of 100000", got)
	}
	if _, err := b.FundToken(mint, memo, 100_000); err == nil || !strings.Contains(err.Error(), "0x24") {
		t.Errorf("without a memo: %v", err)
	}
	for address, want := range map[solana.PublicKey]string{
		mint: `"transferFeeBasisPoints":100`, b.Summary().MemoAccount: `"requireIncomingTransferMemos":true`,
	} {
		got := b.ask("getAccountInfo", address, object{"encoding": "jsonParsed"})
		if !strings.Contains(string(got.Result), want) || !strings.Contains(string(got.Result), "spl-token-2022") {
			t.Errorf("%s: %s", address, got.Result)
		}
	}
}

func TestMintsAreMade(t *testing.T) {
	b := tokenBench(t)
	bob := newActor("bob").PublicKey()
	for name, spec := range map[string]NewMint{
		"classic": {Decimals: 9}, "token-2022": {Decimals: 2, Token2022: true}, "with a fee": {Decimals: 6, Token2022: true, FeeBasisPoints: 5_000},
	} {
		mint, signature, err := b.CreateMint(spec)
		b.own(signature, err)
		b.own(b.FundToken(mint, bob, 1_000))
		want := "1000"
		if spec.FeeBasisPoints > 0 {
			want = "500"
		}
		if got := b.held(bob, mint); got != want {
			t.Errorf("%s: bob has %s", name, got)
		}
		supply, err := b.client.GetTokenSupply(context.Background(), mint, rpc.CommitmentProcessed)
		if err != nil || supply.Value.Decimals != spec.Decimals {
			t.Errorf("%s: supply %+v, %v", name, supply, err)
		}
	}
	for _, step := range []struct {
		route string
		body  object
	}{
		{"/fund", object{"address": bob, "token": "USDT", "amount": "5", "mine": true}},
		{"/freeze", object{"address": bob, "token": "USDT", "frozen": true, "mine": true}},
		{"/mint", object{"decimals": 6, "mine": true}},
	} {
		if status, out := b.controls(step.route, step.body); status != 200 {
			t.Errorf("%s: %v", step.route, out)
		}
	}
}

// Tokens survive a restart that executes nothing.
func TestTokensSurviveARestart(t *testing.T) {
	set := programstest.Set(t)
	dir := t.TempDir()
	b := startBench(t, Config{DataDir: dir, Programs: set})
	bob, usdt := newActor("bob").PublicKey(), mustKey(USDTAddress)
	b.own(b.FundToken(usdt, bob, 42))
	before := b.everything(associated(bob, usdt, solana.TokenProgramID))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = startBench(t, Config{DataDir: dir}) // without the programs: nothing is executed
	for i, was := range before {
		if is := b.everything(associated(bob, usdt, solana.TokenProgramID))[i]; string(is) != string(was) {
			t.Errorf("answer %d was %s\nand is %s", i, was, is)
		}
	}
	if _, err := b.FundToken(usdt, bob, 1); err == nil || !strings.Contains(err.Error(), "without the token programs") {
		t.Errorf("without programs: %v", err)
	}
}
