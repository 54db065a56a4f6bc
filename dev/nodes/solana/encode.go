package solana

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/base58"

	"kivuko/dev/nodes/solana/svm"
)

// le is the byte order of everything on Solana.
var le = binary.LittleEndian

// showTransaction writes a transaction with what it did.
func showTransaction(e *entry, o historical) object {
	r := e.result
	meta := balances(r)
	meta["logMessages"], meta["rewards"] = orEmpty(r.Logs), []any{}
	meta["computeUnitsConsumed"] = r.Units
	meta["innerInstructions"] = innerInstructions(e.tx, r, o.Encoding)
	if o.Encoding != encodingJSONParsed {
		meta["loadedAddresses"] = loadedAddresses(e.tx)
	}
	if data := returned(r); data != nil {
		meta["returnData"] = data
	}
	out := object{"meta": meta, "transaction": showMessage(e.tx, o.Encoding)}
	o.addVersion(out, e.tx)
	return out
}

func loadedAddresses(tx *svm.Transaction) svm.LoadedAddresses {
	loaded := tx.Loaded()
	return svm.LoadedAddresses{Writable: orEmpty(loaded.Writable), Readonly: orEmpty(loaded.Readonly)}
}

// addVersion tells the version to those who know that there are several.
func (o historical) addVersion(out object, tx *svm.Transaction) {
	if o.MaxVersion == nil {
		return
	}
	out["version"] = "legacy"
	if tx.Message.IsVersioned() {
		out["version"] = 0
	}
}

func balances(r svm.Result) object {
	return object{
		"err": errorOrNull(r.Err), "status": okOrErr(r.Err), "fee": r.Fee,
		"preBalances": orEmpty(r.PreBalances), "postBalances": orEmpty(r.PostBalances),
		"preTokenBalances": tokenBalances(r.PreTokens), "postTokenBalances": tokenBalances(r.PostTokens),
	}
}

// showAccounts is a transaction of a block of which the accounts alone were asked.
func showAccounts(e *entry, o historical) object {
	out := object{
		"meta":        balances(e.result),
		"transaction": object{"signatures": e.tx.Signatures, "accountKeys": describeKeys(e.tx)},
	}
	o.addVersion(out, e.tx)
	return out
}

func describeKeys(tx *svm.Transaction) []object {
	out := []object{}
	for i, key := range tx.Keys() {
		source := "transaction"
		if tx.IsLoaded(i) {
			source = "lookupTable"
		}
		out = append(out, object{"pubkey": key, "signer": tx.IsSigner(i), "writable": tx.IsWritable(i), "source": source})
	}
	return out
}

func showMessage(tx *svm.Transaction, encoding string) any {
	switch encoding {
	case encodingBase64:
		return []string{base64.StdEncoding.EncodeToString(tx.Wire()), encodingBase64}
	case encodingBase58:
		return []string{base58.Encode(tx.Wire()), encodingBase58}
	default:
	}
	m := &tx.Message
	steps := []any{}
	for _, step := range m.Instructions {
		steps = append(steps, showInstruction(tx, compiled{int(step.ProgramIDIndex), places(step.Accounts), step.Data, 1}, encoding))
	}
	message := object{"recentBlockhash": m.RecentBlockhash, "instructions": steps}
	if encoding == encodingJSONParsed {
		message["accountKeys"] = describeKeys(tx)
	} else {
		message["accountKeys"] = m.AccountKeys
		message["header"] = object{
			"numRequiredSignatures": m.Header.NumRequiredSignatures, "numReadonlySignedAccounts": m.Header.NumReadonlySignedAccounts,
			"numReadonlyUnsignedAccounts": m.Header.NumReadonlyUnsignedAccounts,
		}
	}
	if m.IsVersioned() {
		message["addressTableLookups"] = lookups(tx)
	}
	return object{"signatures": tx.Signatures, "message": message}
}

// lookups are the places in lookup tables that a message names. They are lists of numbers, not encoded bytes.
func lookups(tx *svm.Transaction) []object {
	numbers := func(indexes []byte) []int {
		out := []int{}
		for _, i := range indexes {
			out = append(out, int(i))
		}
		return out
	}
	out := []object{}
	for _, l := range tx.Message.AddressTableLookups {
		out = append(out, object{
			"accountKey": l.AccountKey, "writableIndexes": numbers(l.WritableIndexes), "readonlyIndexes": numbers(l.ReadonlyIndexes),
		})
	}
	return out
}

// compiled is an instruction with places in the message's keys. Height is 1 for
// the message's own.
type compiled struct {
	program  int
	accounts []int
	data     []byte
	height   int
}

func places(accounts []uint16) []int {
	out := []int{}
	for _, a := range accounts {
		out = append(out, int(a))
	}
	return out
}

func innerInstructions(tx *svm.Transaction, r svm.Result, encoding string) []any {
	out := []any{}
	for _, inner := range r.Inner {
		steps := []any{}
		for _, i := range inner.Instructions {
			steps = append(steps, showInstruction(tx, compiled{i.Program, orEmpty(i.Accounts), i.Data, i.StackHeight}, encoding))
		}
		out = append(out, object{"index": inner.Index, "instructions": steps})
	}
	return out
}

func showInstruction(tx *svm.Transaction, c compiled, encoding string) object {
	if encoding == encodingJSONParsed {
		return parseInstruction(tx.Keys(), c)
	}
	return object{
		"programIdIndex": c.program, "accounts": c.accounts, "data": base58.Encode(c.data), "stackHeight": c.height,
	}
}

func isMemoProgram(program solana.PublicKey) bool { return program == solana.MemoProgramID }
