package solana

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	computebudget "github.com/gagliardetto/solana-go/programs/compute-budget"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/rpc"

	"kivuko/dev/nodes/solana/svm"
)

// TestReadsThroughTheClient calls everything that has no test of its own, so that
// each shape goes through solana-go's decoders.
func TestReadsThroughTheClient(t *testing.T) {
	b := newBench(t)
	alice := b.alice()
	b.finalise()
	ctx := context.Background()
	is := func(name string, err error, good func() bool) {
		t.Helper()
		if err != nil || !good() {
			t.Errorf("%s is not what it should be, or failed: %v", name, err)
		}
	}
	health, err := b.client.GetHealth(ctx)
	is("health", err, func() bool { return health == healthOK })
	version, err := b.client.GetVersion(ctx)
	is("version", err, func() bool { return version.SolanaCore == apiVersion })
	genesis, err := b.client.GetGenesisHash(ctx)
	is("genesis", err, func() bool { return genesis == GenesisHash() })
	slot, err := b.client.GetSlot(ctx, rpc.CommitmentFinalized)
	is("slot", err, func() bool { return slot == b.Final().Slot })
	height, err := b.client.GetBlockHeight(ctx, rpc.CommitmentProcessed)
	is("height", err, func() bool { return height == b.Head().Height })
	epoch, err := b.client.GetEpochInfo(ctx, rpc.CommitmentProcessed)
	is("epoch", err, func() bool {
		return epoch.AbsoluteSlot == b.Head().Slot && *epoch.TransactionCount == 1 && epoch.SlotsInEpoch == slotsPerEpoch
	})
	rent, err := b.client.GetMinimumBalanceForRentExemption(ctx, 165, "")
	is("rent", err, func() bool { return rent == 2_039_280 })
	when, err := b.client.GetBlockTime(ctx, slot)
	is("block time", err, func() bool { return int64(*when) == b.Final().Time.Unix() })
	info, err := b.client.GetAccountInfoWithOpts(ctx, alice.PublicKey(), &rpc.GetAccountInfoOpts{Encoding: solana.EncodingBase64})
	is("account", err, func() bool { return info.Value.Lamports == 100*sol && info.Value.Owner == solana.SystemProgramID })
	_, err = b.client.GetAccountInfo(ctx, newActor("nobody").PublicKey())
	is("no account", nil, func() bool { return errors.Is(err, rpc.ErrNotFound) })
	clock, err := b.client.GetAccountInfo(ctx, solana.SysVarClockPubkey)
	is("clock", err, func() bool { return le.Uint64(clock.Bytes()) == slot })
	several, err := b.client.GetMultipleAccounts(ctx, alice.PublicKey(), newActor("nobody").PublicKey())
	is("accounts", err, func() bool { return several.Value[0] != nil && several.Value[1] == nil })
	usdt := mustKey(USDTAddress)
	supply, err := b.client.GetTokenSupply(ctx, usdt, rpc.CommitmentFinalized)
	is("supply", err, func() bool { return supply.Value.UiAmountString == "1000000000000" })
	holder := associated(mustKey(GenesisAddress), usdt, solana.TokenProgramID)
	balance, err := b.client.GetTokenAccountBalance(ctx, holder, rpc.CommitmentFinalized)
	is("token balance", err, func() bool { return balance.Value.Amount == "1000000000000000000" && *balance.Value.UiAmount == 1e12 })
	held, err := b.client.GetTokenAccountsByOwner(ctx, mustKey(GenesisAddress), &rpc.GetTokenAccountsConfig{ProgramId: &solana.TokenProgramID}, &rpc.GetTokenAccountsOpts{Encoding: solana.EncodingJSONParsed})
	is("token accounts", err, func() bool { return len(held.Value) == 2 })
	found, err := b.client.GetProgramAccountsWithOpts(ctx, solana.TokenProgramID, &rpc.GetProgramAccountsOpts{
		Filters: []rpc.RPCFilter{{DataSize: accountBytes}, {Memcmp: &rpc.RPCFilterMemcmp{Offset: 0, Bytes: solana.Base58(usdt[:])}}},
	})
	is("program accounts", err, func() bool { return len(found) == 1 && found[0].Pubkey == holder })
	limited, err := b.client.GetBlocksWithLimit(ctx, 1, 3, rpc.CommitmentConfirmed)
	is("blocks", err, func() bool { return len(*limited) == 3 && (*limited)[0] == 1 })
}

func TestFees(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	const limit, price = 100_000, 25_000
	tx := b.signed(b.latest(), []solana.Instruction{
		computebudget.NewSetComputeUnitLimitInstruction(limit).Build(), computebudget.NewSetComputeUnitPriceInstruction(price).Build(),
		system.NewTransferInstruction(sol, alice.PublicKey(), bob.PublicKey()).Build(),
	}, alice)
	const want = 5_000 + limit*price/1_000_000
	message, err := tx.Message.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	fee, err := b.client.GetFeeForMessage(context.Background(), base64.StdEncoding.EncodeToString(message), rpc.CommitmentProcessed)
	if err != nil || fee.Value == nil || *fee.Value != want {
		t.Fatalf("fee %+v, %v", fee, err)
	}
	b.send(tx)
	b.block()
	if got := b.lamports(alice, rpc.CommitmentProcessed); got != 99*sol-want {
		t.Errorf("alice has %d lamports", got)
	}
	prices, err := b.client.GetRecentPrioritizationFees(context.Background(), []solana.PublicKey{bob.PublicKey()})
	if err != nil || prices[len(prices)-1].PrioritizationFee != price || prices[0].PrioritizationFee != 0 {
		t.Errorf("prices %+v, %v", prices, err)
	}
	b.blocks(svm.MaxAge + 1)
	if raw := b.ask("getFeeForMessage", base64.StdEncoding.EncodeToString(message), object{"commitment": "processed"}); !strings.HasSuffix(string(raw.Result), `"value":null}`) {
		t.Errorf("with an expired hash: %s", raw.Result)
	}
}

// TestTransactionIsShown reads one transaction in every encoding.
func TestTransactionIsShown(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	tx := b.pay(alice, bob, sol)
	signature := b.send(tx)
	slot := b.block().Slot
	b.finalise()
	wire, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, encoding := range []solana.EncodingType{solana.EncodingBase58, solana.EncodingBase64, solana.EncodingJSON} {
		got, err := b.client.GetTransaction(context.Background(), signature, &rpc.GetTransactionOpts{Encoding: encoding})
		if err != nil {
			t.Fatalf("%s: %v", encoding, err)
		}
		if got.Slot != slot || got.Meta.Err != nil || got.Meta.Fee != 5_000 || got.Meta.PostBalances[1] != sol || *got.Meta.ComputeUnitsConsumed != 150 {
			t.Errorf("%s: %+v", encoding, got.Meta)
		}
		shown, err := got.Transaction.GetTransaction()
		if err != nil {
			t.Fatalf("%s: %v", encoding, err)
		}
		if again, err := shown.MarshalBinary(); err != nil || string(again) != string(wire) {
			t.Errorf("%s: the transaction is another one: %v", encoding, err)
		}
	}
	parsed, err := b.client.GetParsedTransaction(context.Background(), signature, nil)
	if err != nil {
		t.Fatal(err)
	}
	step := parsed.Transaction.Message.Instructions[0]
	if raw, err := json.Marshal(step.Parsed); err != nil || !strings.Contains(string(raw), `"type":"transfer"`) || step.Program != "system" {
		t.Errorf("parsed: %s, %v", raw, err)
	}
	block, err := b.client.GetBlock(context.Background(), slot)
	if err != nil || len(block.Transactions) != 1 || *block.BlockHeight != 2 || block.ParentSlot != slot-1 {
		t.Errorf("block %+v, %v", block, err)
	}
	for details, want := range map[string]string{
		"none": `"parentSlot"`, "signatures": `"signatures":["` + signature.String(), "accounts": `"pubkey":"` + bob.PublicKey().String(),
	} {
		got := b.ask("getBlock", slot, object{"transactionDetails": details, "rewards": false})
		if got.Error != nil || !strings.Contains(string(got.Result), want) {
			t.Errorf("%s: %s %v", details, got.Result, got.Error)
		}
	}
}

// A failed transaction is in a block, and says why everywhere.
func TestFailureIsShown(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	tx := b.pay(alice, bob, 1000*sol)
	data := refused(t, second(b.offer(tx)), codePreflight).Data.(map[string]any)
	if logs := data["logs"].([]any); len(logs) == 0 {
		t.Errorf("no logs in %v", data)
	}
	if _, err := b.client.SendTransactionWithOpts(context.Background(), tx, rpc.TransactionOpts{SkipPreflight: true}); err != nil {
		t.Fatal(err)
	}
	b.block()
	b.finalise()
	const want = `{"InstructionError":[0,{"Custom":1}]}`
	signature := tx.Signatures[0]
	for method, params := range map[string][]any{
		"getSignatureStatuses":    {[]any{signature}, object{"searchTransactionHistory": true}},
		"getSignaturesForAddress": {bob.PublicKey()},
		"getTransaction":          {signature},
	} {
		if got := b.ask(method, params...); !strings.Contains(string(got.Result), `"err":`+want) {
			t.Errorf("%s: %s", method, got.Result)
		}
	}
	if got := b.lamports(alice, rpc.CommitmentFinalized); got != 100*sol-5_000 {
		t.Errorf("alice has %d lamports", got)
	}
}

func TestVersionedTransactionsNeedAReaderThatKnowsThem(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	tx := b.pay(alice, bob, sol)
	if _, err := tx.Message.SetVersion(solana.MessageVersionV0); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &alice }); err != nil {
		t.Fatal(err)
	}
	signature := b.send(tx)
	slot := b.block().Slot
	b.finalise()
	_, err := b.client.GetTransaction(context.Background(), signature, nil)
	refused(t, err, codeVersion)
	_, err = b.client.GetBlockWithOpts(context.Background(), slot, &rpc.GetBlockOpts{})
	refused(t, err, codeVersion)
	highest := uint64(0)
	got, err := b.client.GetTransaction(context.Background(), signature, &rpc.GetTransactionOpts{MaxSupportedTransactionVersion: &highest})
	if err != nil || got.Version != 0 {
		t.Fatalf("version %v, %v", got, err)
	}
}

func TestSignaturesForAddressArePaged(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	var sent []solana.Signature
	for i := range uint64(7) {
		sent = append([]solana.Signature{b.send(b.pay(alice, bob, sol+i))}, sent...)
		if i%2 == 0 {
			b.block()
		}
	}
	b.finalise()
	list := func(opts *rpc.GetSignaturesForAddressOpts) (out []solana.Signature) {
		t.Helper()
		got, err := b.client.GetSignaturesForAddressWithOpts(context.Background(), bob.PublicKey(), opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got {
			out = append(out, s.Signature)
		}
		return out
	}
	limit := 3
	first := list(&rpc.GetSignaturesForAddressOpts{Limit: &limit})
	rest := list(&rpc.GetSignaturesForAddressOpts{Before: first[2]})
	all := append(append([]solana.Signature{}, first...), rest...)
	for i := range sent {
		if all[i] != sent[i] {
			t.Fatalf("place %d: %s, want %s", i, all[i], sent[i])
		}
	}
	if got := list(&rpc.GetSignaturesForAddressOpts{Until: sent[2]}); len(got) != 2 || got[1] != sent[1] {
		t.Errorf("until: %v", got)
	}
	big := 1001
	_, err := b.client.GetSignaturesForAddressWithOpts(context.Background(), bob.PublicKey(), &rpc.GetSignaturesForAddressOpts{Limit: &big})
	refused(t, err, codeInvalidParams)
}

func TestSimulation(t *testing.T) {
	b := newBench(t)
	alice, bob := b.alice(), newActor("bob")
	tx := b.pay(alice, bob, sol)
	tx.Signatures[0] = solana.Signature{} // need not be valid
	tx.Message.RecentBlockhash = solana.Hash{}
	got, err := b.client.SimulateTransactionWithOpts(context.Background(), tx, &rpc.SimulateTransactionOpts{
		Commitment: rpc.CommitmentProcessed, ReplaceRecentBlockhash: true,
		Accounts: &rpc.SimulateTransactionAccountsOpts{Encoding: solana.EncodingBase64, Addresses: []solana.PublicKey{bob.PublicKey()}},
	})
	if err != nil || got.Value.Err != nil || *got.Value.UnitsConsumed != 150 || got.Value.Accounts[0].Lamports != sol {
		t.Fatalf("%+v, %v", got, err)
	}
	_, err = b.client.SimulateTransactionWithOpts(context.Background(), tx, &rpc.SimulateTransactionOpts{SigVerify: true})
	refused(t, err, codeSignature)
	if got := b.block(); len(got.Transactions) != 0 {
		t.Fatal("a simulation was executed")
	}
}

// TestRefusals gives bad input to every method that takes any.
func TestRefusals(t *testing.T) {
	b := newBench(t)
	good := mustKey(USDTAddress)
	nobody := newActor("nobody").PublicKey()
	many := make([]solana.PublicKey, maxMultipleAccounts+1)
	for name, c := range map[string]struct {
		method string
		params []any
		code   int
		text   string
	}{
		"no such method":       {"getWealth", nil, codeNoMethod, "Method not found"},
		"not base58":           {"getBalance", []any{"0OIl"}, codeInvalidParams, "Invalid param: Invalid"},
		"short address":        {"getAccountInfo", []any{"abc"}, codeInvalidParams, "Invalid param: WrongSize"},
		"missing address":      {"getBalance", nil, codeInvalidParams, "missing address"},
		"commitment":           {"getSlot", []any{object{"commitment": "sure"}}, codeInvalidParams, "unknown variant `sure`"},
		"future slot":          {"getSlot", []any{object{"minContextSlot": 99}}, codeMinContextSlot, textMinContextSlot},
		"processed history":    {"getTransaction", []any{solana.Signature{1}, object{"commitment": "processed"}}, codeInvalidParams, textBelowConfirmed},
		"encoding":             {"getAccountInfo", []any{good, object{"encoding": "hex"}}, codeInvalidParams, "unknown variant `hex`"},
		"long base58":          {"getAccountInfo", []any{associated(mustKey(GenesisAddress), good, solana.TokenProgramID), object{"encoding": "base58"}}, codeInvalidRequest, "128 bytes"},
		"too many accounts":    {"getMultipleAccounts", []any{many}, codeInvalidParams, "max 100"},
		"too many signatures":  {"getSignatureStatuses", []any{make([]solana.Signature, 257)}, codeInvalidParams, "max 256"},
		"future block":         {"getBlock", []any{1000}, codeBlockNotAvailable, "Block not available for slot 1000"},
		"not a token account":  {"getTokenAccountBalance", []any{good}, codeInvalidParams, "not a Token account"},
		"no token account":     {"getTokenAccountBalance", []any{nobody}, codeInvalidParams, "could not find account"},
		"not a mint":           {"getTokenSupply", []any{mustKey(GenesisAddress)}, codeInvalidParams, "not a Token mint"},
		"not a token program":  {"getTokenAccountsByOwner", []any{nobody, object{"programId": good}}, codeInvalidParams, "unrecognized Token program id"},
		"no mint":              {"getTokenAccountsByOwner", []any{nobody, object{"mint": nobody}}, codeInvalidParams, "could not find mint"},
		"transaction's base58": {"sendTransaction", []any{"0"}, codeInvalidParams, "invalid base58 encoding"},
		"transaction's bytes":  {"sendTransaction", []any{base64.StdEncoding.EncodeToString([]byte{1, 2}), object{"encoding": "base64"}}, codeInvalidParams, "failed to deserialize"},
		"large transaction":    {"sendTransaction", []any{base64.StdEncoding.EncodeToString(make([]byte, 1233)), object{"encoding": "base64"}}, codeInvalidParams, "too large: 1233 bytes (max: encoded/raw 1644/1232)"},
		"range of blocks":      {"getBlocksWithLimit", []any{0, 500_001}, codeInvalidParams, "max 500000"},
	} {
		got := b.ask(c.method, c.params...)
		if got.Error == nil || got.Error.Code != c.code || !strings.Contains(got.Error.Message, c.text) {
			t.Errorf("%s: %s %+v", name, got.Result, got.Error)
		}
	}
	alice, bob := b.alice(), newActor("bob")
	tx := b.pay(alice, bob, sol)
	tx.Signatures[0][7]++
	refused(t, second(b.offer(tx)), codeSignature)
}

func TestBatchesAndLimits(t *testing.T) {
	b := newBench(t)
	status, raw := b.post(`[{"jsonrpc":"2.0","id":"a","method":"getHealth"},{"jsonrpc":"2.0","id":2,"method":"nothing"},{"jsonrpc":"2.0","method":"getHealth"},7]`)
	var answers []answer
	if err := json.Unmarshal(raw, &answers); err != nil || status != http.StatusOK || len(answers) != 3 {
		t.Fatalf("%d %s %v", status, raw, err)
	}
	if string(answers[0].ID) != `"a"` || string(answers[0].Result) != `"ok"` || answers[1].Error.Code != codeNoMethod || answers[2].Error.Code != codeInvalidRequest {
		t.Errorf("%s", raw)
	}
	for body, code := range map[string]int{
		`{"jsonrpc":`:                   codeParse,
		`[]`:                            codeInvalidRequest,
		`{"id":1,"method":"getHealth"}`: codeInvalidRequest,
		`[` + strings.Repeat("1,", maxBatch) + `1]`:               codeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"getSlot","params":{}}`: codeInvalidParams,
	} {
		var got answer
		if _, raw := b.post(body); json.Unmarshal(raw, &got) != nil || got.Error == nil || got.Error.Code != code {
			t.Errorf("%.40s: %s", body, raw)
		}
	}
	if status, _ := b.post(`"` + strings.Repeat("x", maxBodyBytes) + `"`); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large has status %d", status)
	}
}
