package solana

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/memo"
	"github.com/gagliardetto/solana-go/programs/system"

	"kivuko/dev/nodes/solana/programs"
)

// TestInstructionsAreParsed reads instructions as Agave's transaction-status does
// (parse_system.rs, parse_token.rs, parse_associated_token.rs).
func TestInstructionsAreParsed(t *testing.T) {
	le32, le64 := binary.LittleEndian.AppendUint32, binary.LittleEndian.AppendUint64
	keys := []solana.PublicKey{
		newActor("a").PublicKey(), newActor("b").PublicKey(), newActor("c").PublicKey(), newActor("d").PublicKey(), newActor("e").PublicKey(),
		solana.SystemProgramID, solana.TokenProgramID, solana.SPLAssociatedTokenAccountProgramID, solana.ComputeBudget, solana.Token2022ProgramID,
	}
	const sys, tok, ata, budget, tok22 = 5, 6, 7, 8, 9
	some := keys[4][:]
	for want, c := range map[string]compiled{
		`"type":"createAccount"`:      {sys, []int{0, 1}, append(le64(le64(le32(nil, 0), 7), 165), some...), 1},
		`"space":165`:                 {sys, []int{0, 1}, append(le64(le64(le32(nil, 0), 7), 165), some...), 1},
		`"type":"assign"`:             {sys, []int{0}, append(le32(nil, 1), some...), 1},
		`"lamports":7`:                {sys, []int{0, 1}, le64(le32(nil, 2), 7), 1},
		`"type":"advanceNonce"`:       {sys, []int{0, 1, 2}, le32(nil, 4), 1},
		`"type":"withdrawFromNonce"`:  {sys, []int{0, 1, 2, 3, 4}, le64(le32(nil, 5), 7), 1},
		`"type":"initializeNonce"`:    {sys, []int{0, 1, 2}, append(le32(nil, 6), some...), 1},
		`"newAuthorized":"`:           {sys, []int{0, 1}, append(le32(nil, 7), some...), 1},
		`"type":"allocate"`:           {sys, []int{0}, le64(le32(nil, 8), 7), 1},
		`"type":"create"`:             {ata, []int{0, 1, 2, 3}, nil, 1},
		`"type":"createIdempotent"`:   {ata, []int{0, 1, 2, 3}, []byte{1}, 1},
		`"amount":"7"`:                {tok, []int{0, 1, 2}, le64([]byte{3}, 7), 1},
		`"authority":"`:               {tok, []int{0, 1, 2}, le64([]byte{3}, 7), 1},
		`"multisigAuthority":"`:       {tok, []int{0, 1, 2, 3, 4}, le64([]byte{3}, 7), 1},
		`"signers":["`:                {tok, []int{0, 1, 2, 3, 4}, le64([]byte{3}, 7), 1},
		`"type":"approve"`:            {tok, []int{0, 1, 2}, le64([]byte{4}, 7), 1},
		`"type":"revoke"`:             {tok, []int{0, 1}, []byte{5}, 1},
		`"type":"mintTo"`:             {tok, []int{0, 1, 2}, le64([]byte{7}, 7), 1},
		`"type":"burn"`:               {tok, []int{0, 1, 2}, le64([]byte{8}, 7), 1},
		`"type":"closeAccount"`:       {tok, []int{0, 1, 2}, []byte{9}, 1},
		`"type":"freezeAccount"`:      {tok, []int{0, 1, 2}, []byte{10}, 1},
		`"type":"thawAccount"`:        {tok, []int{0, 1, 2}, []byte{11}, 1},
		`"uiAmountString":"0.07"`:     {tok, []int{0, 1, 2, 3}, append(le64([]byte{12}, 7), 2), 1},
		`"program":"spl-token-2022"`:  {tok22, []int{0, 1, 2, 3}, append(le64([]byte{12}, 7), 2), 1},
		`"type":"syncNative"`:         {tok, []int{0}, []byte{17}, 1},
		`"type":"initializeAccount3"`: {tok, []int{0, 1}, append([]byte{18}, some...), 1},
		`"type":"initializeMint2"`:    {tok, []int{0}, append([]byte{20, 6}, append(some, 0)...), 1},
		// Undecoded: unknown, too short, of a program that is not decoded.
		`"data":"2i"`:   {tok, []int{0}, []byte{99}, 2},
		`"accounts":[]`: {budget, nil, []byte{1}, 1},
		`"data":"4"`:    {tok, []int{0, 1, 2}, []byte{3}, 1},
		`"data":"t"`:    {tok, []int{0}, []byte{51}, 1},
	} {
		raw, err := json.Marshal(parseInstruction(keys, c))
		if err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("no %s in %s, %v", want, raw, err)
		}
	}
}

func TestMemosAreListed(t *testing.T) {
	b := tokenBench(t)
	alice := b.alice()
	step := func(text string) solana.Instruction {
		return memo.NewMemoInstruction([]byte(text), alice.PublicKey()).Build()
	}
	signature := b.send(b.signed(b.latest(), []solana.Instruction{step("one"), step("zwölf")}, alice))
	b.block()
	b.finalise()
	got, err := b.client.GetSignaturesForAddress(context.Background(), alice.PublicKey())
	if err != nil || got[0].Signature != signature || got[0].Memo == nil || *got[0].Memo != "[3] one; [6] zwölf" {
		t.Errorf("%+v, %v", got[0], err)
	}
}

func TestNonceAccountIsParsed(t *testing.T) {
	b := newBench(t)
	alice, nonce := b.alice(), newActor("nonce")
	b.send(b.signed(b.latest(), []solana.Instruction{
		system.NewCreateAccountInstruction(sol, 80, solana.SystemProgramID, alice.PublicKey(), nonce.PublicKey()).Build(),
		system.NewInitializeNonceAccountInstruction(alice.PublicKey(), nonce.PublicKey(), solana.SysVarRecentBlockHashesPubkey, solana.SysVarRentPubkey).Build(),
	}, alice, nonce))
	b.block()
	got := b.ask("getAccountInfo", nonce.PublicKey(), object{"encoding": "jsonParsed", "commitment": "processed"})
	if !strings.Contains(string(got.Result), `"authority":"`+alice.PublicKey().String()) || !strings.Contains(string(got.Result), `"lamportsPerSignature":"5000"`) {
		t.Errorf("%s", got.Result)
	}
	sliced := b.ask("getAccountInfo", nonce.PublicKey(), object{"encoding": "base58", "commitment": "processed", "dataSlice": object{"offset": 8, "length": 32}})
	if !strings.Contains(string(sliced.Result), `["`+alice.PublicKey().String()+`","base58"]`) {
		t.Errorf("%s", sliced.Result)
	}
}

// The command says in a sentence that there are no programs, and how.
func TestCommandWithoutPrograms(t *testing.T) {
	t.Setenv("PATH", "")
	err := Command(t.Context(), []string{"--programs", t.TempDir()})
	var unavailable *programs.UnavailableError
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "npm is not installed") {
		t.Errorf("got %v", err)
	}
	for _, args := range [][]string{{"more"}, {"--no-such-flag"}, {"--final", "x"}} {
		if err := Command(t.Context(), args); err == nil || errors.As(err, &unavailable) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestListsOfTheControlEndpoint(t *testing.T) {
	b := newBench(t)
	alice := b.alice().PublicKey()
	for route, want := range map[string]int{
		"/state": http.StatusOK, "/movements?address=" + alice.String(): http.StatusOK, "/transactions?address=" + alice.String(): http.StatusOK,
		"/movements": http.StatusBadRequest, "/transactions?address=x": http.StatusBadRequest,
	} {
		response, err := http.Get("http://" + b.ControlAddr() + route)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d", route, response.StatusCode)
		}
	}
}
