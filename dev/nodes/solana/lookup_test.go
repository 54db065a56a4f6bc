package solana

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	lookup "github.com/gagliardetto/solana-go/programs/address-lookup-table"
	"github.com/gagliardetto/solana-go/programs/system"

	"kivuko/dev/nodes/solana/programs/programstest"
)

// newTable makes a lookup table of an actor with the given addresses, which can be used in the next block.
func (b *bench) newTable(owner solana.PrivateKey, addresses ...solana.PublicKey) solana.PublicKey {
	b.t.Helper()
	key, slot := owner.PublicKey(), b.Head().Slot
	create, table, err := lookup.NewCreateLookupTableInstruction(key, key, slot)
	if err != nil {
		b.t.Fatal(err)
	}
	b.block() // in whose slot the one before is a recent slot
	b.send(b.signed(b.latest(), []solana.Instruction{
		create.Build(), lookup.NewExtendLookupTableInstruction(table, key, key, addresses).Build(),
	}, owner))
	b.block()
	b.block() // in whose slot the addresses can be used
	return table
}

// loading makes a transaction that loads what it can from a table.
func (b *bench) loading(table solana.PublicKey, has []solana.PublicKey, payer solana.PrivateKey, steps ...solana.Instruction) *solana.Transaction {
	b.t.Helper()
	tx, err := solana.NewTransaction(steps, b.latest(), solana.TransactionPayer(payer.PublicKey()),
		solana.TransactionAddressTables(map[solana.PublicKey]solana.PublicKeySlice{table: has}))
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &payer }); err != nil {
		b.t.Fatal(err)
	}
	return tx
}

// same compares a part of an answer, whose names and places are set apart by dots, with JSON.
func (b *bench) same(raw json.RawMessage, path, want string) {
	b.t.Helper()
	var v, wanted any
	if err := json.Unmarshal(raw, &v); err != nil {
		b.t.Fatalf("%s: %v", raw, err)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		b.t.Fatal(err)
	}
	for _, name := range strings.Split(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(in) {
				b.t.Fatalf("%s: no %q in %s", path, name, raw)
			}
			v = in[i]
		}
	}
	if !reflect.DeepEqual(v, wanted) {
		b.t.Errorf("%s: %v, want %s", path, v, want)
	}
}

func jsonOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// TestLoadedAccounts pays an account that the transaction loads from a lookup table, and reads the payment in every way.
func TestLoadedAccounts(t *testing.T) {
	dir, set := t.TempDir(), programstest.Set(t)
	b := startBench(t, Config{Programs: set, DataDir: dir})
	confirmAtOnce := func() {
		t.Helper()
		if err := b.SetFinality(0, 40); err != nil {
			t.Fatal(err)
		}
	}
	confirmAtOnce()
	alice, bob, carol := b.alice(), newActor("bob").PublicKey(), newActor("carol").PublicKey()
	if _, err := b.FundSOL(carol, sol); err != nil {
		t.Fatal(err)
	}
	has := []solana.PublicKey{carol, newActor("dave").PublicKey(), bob}
	table := b.newTable(alice, has...)
	transfer := system.NewTransferInstruction(2*sol, alice.PublicKey(), bob)
	transfer.Append(solana.Meta(carol))
	tx := b.loading(table, has, alice, transfer.Build(), solana.NewInstruction(solana.MemoProgramID, nil, []byte("rent")))
	wire, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(wire)

	// The table is not final yet, which an omitted preflight does not help against.
	for _, skip := range []bool{false, true} {
		refusal := b.ask("sendTransaction", encoded, object{"encoding": "base64", "skipPreflight": skip}).Error
		if refusal == nil || refusal.Code != codeInvalidParams || refusal.Message != "invalid transaction: Transaction loads an address table account that doesn't exist" {
			t.Errorf("a table that is not final: %+v", refusal)
		}
	}
	processed := object{"encoding": "base64", "commitment": "processed", "accounts": object{"encoding": "base64", "addresses": []any{bob}}}
	b.same(b.ask("getFeeForMessage", base64.StdEncoding.EncodeToString(wire[1+64:]), processed).Result, "value", "5000")
	simulated := b.ask("simulateTransaction", encoded, processed).Result
	b.same(simulated, "value.accounts.0.lamports", "2000000000")
	signature := b.send(tx)
	slot := b.block().Slot

	before := b.everything(bob)
	b.check(signature, slot, table, tx, bob, carol)
	b = b.reopen(dir) // without the programs: nothing is executed again
	if after := b.everything(bob); len(before) < 7 || !reflect.DeepEqual(before, after) {
		t.Errorf("before the restart\n%s\nafter it\n%s", before, after)
	}
	b.check(signature, slot, table, tx, bob, carol)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = startBench(t, Config{Programs: set, DataDir: dir})
	confirmAtOnce()
	if err := b.Reorganise(1, false); err != nil {
		t.Fatal(err)
	}
	b.same(b.ask("getBalance", bob, object{"commitment": "processed"}).Result, "value", "0")
	b.check(signature, b.block().Slot, table, tx, bob, carol)
}

// check reads a payment of 2 SOL whose recipient and another account are loaded from a table.
func (b *bench) check(signature solana.Signature, slot uint64, table solana.PublicKey, tx *solana.Transaction, bob, carol solana.PublicKey) {
	b.t.Helper()
	options := object{"commitment": "confirmed", "maxSupportedTransactionVersion": 0}
	shown := b.ask("getTransaction", signature, options).Result
	b.same(shown, "version", "0")
	b.same(shown, "meta.loadedAddresses", jsonOf(object{"writable": []any{bob}, "readonly": []any{carol}}))
	b.same(shown, "transaction.message.accountKeys", jsonOf(tx.Message.AccountKeys))
	b.same(shown, "transaction.message.addressTableLookups",
		jsonOf([]any{object{"accountKey": table, "writableIndexes": []int{2}, "readonlyIndexes": []int{0}}}))
	b.same(shown, "transaction.message.instructions.0.accounts", "[0,3,4]")
	b.same(shown, "meta.preBalances.3", "0")
	b.same(shown, "meta.postBalances.3", "2000000000")
	b.same(shown, "meta.postBalances.4", "1000000000")

	options["encoding"] = "jsonParsed"
	shown = b.ask("getTransaction", signature, options).Result
	b.same(shown, "transaction.message.accountKeys.3", jsonOf(object{"pubkey": bob, "signer": false, "writable": true, "source": "lookupTable"}))
	b.same(shown, "transaction.message.accountKeys.4", jsonOf(object{"pubkey": carol, "signer": false, "writable": false, "source": "lookupTable"}))
	b.same(shown, "transaction.message.instructions.0.parsed.info.destination", jsonOf(bob))
	b.same(shown, "meta.loadedAddresses", "null")

	block := b.ask("getBlock", slot, object{"commitment": "confirmed", "maxSupportedTransactionVersion": 0, "transactionDetails": "accounts"}).Result
	b.same(block, "transactions.0.transaction.accountKeys.3.source", `"lookupTable"`)
	b.same(b.ask("getSignaturesForAddress", carol, options).Result, "0.signature", jsonOf(signature))
	if refusal := b.ask("getBlock", slot, object{"commitment": "confirmed"}).Error; refusal == nil || refusal.Code != codeVersion {
		b.t.Errorf("a reader that knows no versions: %+v", refusal)
	}
}

// TestLookupTablesAreParsed reads a table and the instructions that made it.
func TestLookupTablesAreParsed(t *testing.T) {
	b := startBench(t, Config{Programs: programstest.Set(t)})
	if err := b.SetFinality(0, 40); err != nil {
		t.Fatal(err)
	}
	alice, bob := b.alice(), newActor("bob").PublicKey()
	table := b.newTable(alice, bob)
	parsed := object{"commitment": "processed", "encoding": "jsonParsed"}
	account := b.ask("getAccountInfo", table, parsed).Result
	b.same(account, "value.data.program", `"address-lookup-table"`)
	b.same(account, "value.data.parsed", jsonOf(object{"type": "lookupTable", "info": object{
		"deactivationSlot": "18446744073709551615", "lastExtendedSlot": strconv.FormatUint(b.Head().Slot-1, 10),
		"lastExtendedSlotStartIndex": 0, "authority": alice.PublicKey(), "addresses": []any{bob},
	}}))
	slot := b.Head().Slot - 1
	parsed["commitment"] = "confirmed"
	block := b.ask("getBlock", slot, parsed).Result
	const steps = "transactions.0.transaction.message.instructions."
	b.same(block, steps+"0.parsed.type", `"createLookupTable"`)
	b.same(block, steps+"0.parsed.info.recentSlot", strconv.FormatUint(slot-2, 10))
	b.same(block, steps+"1.parsed", jsonOf(object{"type": "extendLookupTable", "info": object{
		"lookupTableAccount": table, "lookupTableAuthority": alice.PublicKey(), "payerAccount": alice.PublicKey(),
		"systemProgram": solana.SystemProgramID, "newAddresses": []any{bob},
	}}))
}
