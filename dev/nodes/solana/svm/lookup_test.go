package svm

import (
	"fmt"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"
)

// Instructions of the program of address lookup tables.
const (
	tableCreate     = 0
	tableFreeze     = 1
	tableExtend     = 2
	tableDeactivate = 3
	tableClose      = 4
)

func onTable(data []byte, accounts ...*solana.AccountMeta) solana.Instruction {
	return instruction(solana.AddressLookupTableProgramID, data, accounts...)
}

// createTable makes a table, whose address follows from a recent slot.
func createTable(t testing.TB, payer, authority solana.PublicKey, slot uint64) (solana.PublicKey, solana.Instruction) {
	t.Helper()
	table, bump, err := solana.FindProgramAddress([][]byte{authority[:], pack(slot)}, solana.AddressLookupTableProgramID)
	require.NoError(t, err)
	return table, onTable(pack(tableCreate, slot, bump), writes(table), signs(authority), signsWrite(payer), read(solana.SystemProgramID))
}

func extendTable(payer, table, authority solana.PublicKey, added ...solana.PublicKey) solana.Instruction {
	data := pack(tableExtend, uint64(len(added)))
	for _, key := range added {
		data = append(data, key[:]...)
	}
	return onTable(data, writes(table), signs(authority), signsWrite(payer), read(solana.SystemProgramID))
}

type tables = map[solana.PublicKey]solana.PublicKeySlice

// signLoading signs a transaction that loads what it can from tables.
func (c *chain) signLoading(payer solana.PublicKey, from tables, list ...solana.Instruction) []byte {
	c.t.Helper()
	return c.signed(list, c.block.LastBlockhash, solana.TransactionPayer(payer), solana.TransactionAddressTables(from))
}

// TestLookupTables pays accounts that the transaction loads from a table.
func TestLookupTables(t *testing.T) {
	c := newChain(t, cachedPrograms(t))
	payer, authority, alice, bob := c.payer("payer"), c.key("authority"), c.key("alice"), c.payer("bob")
	table, create := createTable(t, payer, authority, c.block.Slot-1)
	require.Equal(t, Succeeded, c.send(payer, create, extendTable(payer, table, authority, c.key("other"), bob, alice)).Outcome)
	from := tables{table: {c.key("other"), bob, alice}}
	list := []solana.Instruction{pay(payer, alice, 5_000_000), instruction(solana.MemoProgramID, []byte("for bob")), pay(payer, bob, 7)}

	r := c.execute(c.signLoading(payer, from, list...))
	require.JSONEq(t, `"InvalidAddressLookupTableIndex"`, marshal(t, r.Err), "what a slot adds can be used in later ones")
	require.Equal(t, Rejected, r.Outcome)
	c.skip(1)
	wire := c.signLoading(payer, from, list...)
	tx, err := Decode(wire)
	require.NoError(t, err)
	require.Len(t, tx.Message.AccountKeys, 3)
	r = c.execute(wire)
	require.Equal(t, Succeeded, r.Outcome, r.Err)
	require.Equal(t, LoadedAddresses{Writable: []solana.PublicKey{alice, bob}}, r.Loaded)
	resolved := tx.WithLoaded(r.Loaded)
	require.Len(t, r.PostBalances, 5)
	for i, key := range resolved.Keys() {
		require.Equal(t, c.accounts[key].Lamports, r.PostBalances[i], key)
		require.Equal(t, key == payer || key == alice || key == bob, resolved.IsWritable(i), key)
		require.Equal(t, i >= 3, resolved.IsLoaded(i))
	}
	require.EqualValues(t, 5_000_000, c.accounts[alice].Lamports)
	require.EqualValues(t, lamportsOfPlenty+7, c.accounts[bob].Lamports)

	c.skip(1)
	require.Equal(t, Succeeded, c.send(payer, onTable(pack(tableDeactivate), writes(table), signs(authority))).Outcome)
	for range maxSlotHashes { // in its own slot and while the slot is among the last 512
		require.Equal(t, Succeeded, c.execute(c.signLoading(payer, from, pay(payer, bob, 1))).Outcome)
		c.skip(1)
	}
	require.Equal(t, Succeeded, c.execute(c.signLoading(payer, from, pay(payer, bob, 1))).Outcome)
	c.skip(1)
	r = c.execute(c.signLoading(payer, from, pay(payer, bob, 1)))
	require.JSONEq(t, `"AddressLookupTableNotFound"`, marshal(t, r.Err))
	require.Equal(t, "Transaction loads an address table account that doesn't exist", r.Err.Error())
	require.Equal(t, Succeeded, c.send(payer, onTable(pack(tableClose), writes(table), signs(authority), writes(payer))).Outcome)
	require.NotContains(t, c.accounts, table)
}

// TestConformanceLookupTables does all that can be done with tables, and much that can't, here and on litesvm.
func TestConformanceLookupTables(t *testing.T) {
	p := newPair(t)
	payer, authority, other := p.payer("payer"), p.key("authority"), p.payer("other")
	table, create := createTable(t, payer, authority, p.block.Slot)
	step := func(name, want string, from tables, list ...solana.Instruction) {
		t.Helper()
		p.sameSlots()
		wire := p.sign(payer, p.block.LastBlockhash, false, list...)
		if from != nil {
			wire = p.signLoading(payer, from, list...)
		}
		r := p.both(name, wire)
		if got := marshal(t, r.Err); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	next := func(name, want string, from tables, list ...solana.Instruction) {
		t.Helper()
		p.advance()
		step(name, want, from, list...)
	}
	failed := func(kind string) string { return fmt.Sprintf(`{"InstructionError":[0,%q]}`, kind) }
	var keys solana.PublicKeySlice
	for i := range 80 {
		keys = append(keys, p.payer(fmt.Sprint("loaded ", i)))
	}
	from := func(n int) tables { return tables{table: keys[:n]} }
	toLast := func(n int) solana.Instruction { return pay(payer, keys[n-1], 5) }
	extend := func(first, last int) solana.Instruction {
		return extendTable(payer, table, authority, keys[first:last]...)
	}

	next("no such table", `"AddressLookupTableNotFound"`, from(3), toLast(3))
	next("create", "null", nil, create)
	next("create again", "null", nil, create)
	_, old := createTable(t, payer, authority, 17)
	next("of an old slot", failed("InvalidInstructionData"), nil, old)
	_, foreign := createTable(t, payer, other, p.block.Slot)
	next("an authority that needs no signature", "null", nil, foreign)
	next("of nothing", `"InvalidAddressLookupTableIndex"`, from(3), toLast(3))
	next("extend by nothing", failed("InvalidInstructionData"), nil, extend(0, 0))
	next("extend as another", failed("IncorrectAuthority"), nil, extendTable(payer, table, other, other))
	next("extend", "null", nil, extend(0, 3))
	step("in its slot", `"InvalidAddressLookupTableIndex"`, from(3), toLast(3))
	next("pay a loaded account", "null", from(3), toLast(3))
	next("beyond the end", `"InvalidAddressLookupTableIndex"`, from(4), toLast(4))
	next("extend more", "null", nil, extend(3, 20))
	step("an old one in the slot of an extension", "null", from(3), toLast(2))
	step("a new one in the slot of an extension", `"InvalidAddressLookupTableIndex"`, from(20), toLast(20))
	next("extend to many", "null", nil, extend(20, 45))
	next("extend to more", "null", nil, extend(45, 70))

	accounts := func(n int) solana.Instruction { // pays the last of n loaded accounts, and names the others
		metas := []*solana.AccountMeta{signsWrite(payer), writes(keys[n-1])}
		for _, key := range keys[:n-1] {
			metas = append(metas, read(key))
		}
		return system(pack(transfer, uint64(3)), metas...)
	}
	next("as many accounts as there may be", "null", from(70), accounts(62))
	next("one more", `"TooManyAccountLocks"`, from(70), accounts(63))
	next("a loaded account does not sign", `{"InstructionError":[0,"MissingRequiredSignature"]}`, from(20),
		system(pack(transfer, uint64(3)), read(keys[4]), writes(keys[5])))
	next("a loaded account is read only", `{"InstructionError":[0,"ReadonlyLamportChange"]}`, from(20),
		system(pack(transfer, uint64(3)), signsWrite(payer), read(keys[5])))
	limit := func(bytes int) solana.Instruction { return instruction(computeBudgetProgram, pack(byte(4), bytes)) }
	next("too little is allowed to be loaded", `"MaxLoadedAccountsDataSizeExceeded"`, from(20), limit(lookupTableBytes), toLast(9))
	const others = 64*4 + 22 // payer, recipient and the two programs; litesvm gives System seven more bytes than clusters do
	for _, more := range []int{others + 14 - 1, others + 14 + 7} {
		p.advance()
		p.sameSlots()
		p.both("at the limit", p.signLoading(payer, from(20), limit(lookupTableBytes+more), toLast(9)))
	}

	nonce := p.key("nonce")
	next("nonce", "null", nil, nonceOpen(payer, nonce, payer)...)
	next("nonce in the table", "null", nil, extendTable(payer, table, authority, nonce, payer))
	p.advance()
	p.sameSlots()
	value := nonceValue(p.accounts[nonce].Data)
	with := tables{table: append(append(solana.PublicKeySlice{}, keys[:70]...), nonce, payer)}
	r := p.both("a loaded nonce account", p.signed([]solana.Instruction{nonceAdvance(nonce, payer), toLast(3)}, value, solana.TransactionPayer(payer), solana.TransactionAddressTables(with)))
	require.JSONEq(t, `"BlockhashNotFound"`, marshal(t, r.Err))
	twice := tables{table: append(append(solana.PublicKeySlice{}, keys[:71]...), keys[0])}
	wire := p.signLoading(payer, twice, system(pack(transfer, uint64(3)), signsWrite(payer), writes(keys[0]), writes(keys[1])))
	require.Equal(t, "null", marshal(t, p.both("the payer is in the table too, and not taken from there", wire).Err))
	tx, err := Decode(wire)
	require.NoError(t, err)
	tx.Message.AddressTableLookups[0].WritableIndexes[0] = 71 // the payer
	r = p.both("the payer is loaded", p.resign(tx))
	require.JSONEq(t, `"AccountLoadedTwice"`, marshal(t, r.Err))

	p.accounts[keys[70]] = Account{Lamports: lamportsOfPlenty, Data: p.accounts[table].Data}
	p.peer.set(keys[70], p.accounts[keys[70]])
	next("a table of another program", `"InvalidAddressLookupTableOwner"`, tables{keys[70]: keys[:3]}, toLast(3))
	for name, data := range map[string][]byte{
		"empty": {}, "no kind": make([]byte, 56), "a byte too many": append(append([]byte{}, p.accounts[table].Data...), 0),
		"short": p.accounts[table].Data[:55], "another kind": append([]byte{2}, p.accounts[table].Data[1:]...),
		"another flag": append(append(append([]byte{}, p.accounts[table].Data[:21]...), 2), p.accounts[table].Data[22:]...),
	} {
		broken := p.key("table " + name)
		p.accounts[broken] = Account{Lamports: lamportsOfPlenty, Owner: solana.AddressLookupTableProgramID, Data: data}
		p.peer.set(broken, p.accounts[broken])
		next("a table with "+name, `"InvalidAddressLookupTableData"`, tables{broken: keys[:3]}, toLast(3))
	}

	next("close while it is active", failed("InvalidArgument"), nil, onTable(pack(tableClose), writes(table), signs(authority), writes(payer)))
	next("deactivate", "null", nil, onTable(pack(tableDeactivate), writes(table), signs(authority)))
	step("in the slot of its deactivation", "null", from(3), toLast(3))
	next("deactivate again", failed("InvalidArgument"), nil, onTable(pack(tableDeactivate), writes(table), signs(authority)))
	for range 510 {
		p.advance()
	}
	next("after 512 slots", "null", from(3), toLast(3))
	step("close too early", failed("InvalidArgument"), nil, onTable(pack(tableClose), writes(table), signs(authority), writes(payer)))
	next("after 513 slots", `"AddressLookupTableNotFound"`, from(3), toLast(3))
	step("close into itself", failed("InvalidArgument"), nil, onTable(pack(tableClose), writes(table), signs(authority), writes(table)))
	step("close", "null", nil, onTable(pack(tableClose), writes(table), signs(authority), writes(other)))

	frozen, create := createTable(t, payer, authority, p.block.Slot-1)
	next("another", "null", nil, create)
	next("freeze what is empty", failed("InvalidInstructionData"), nil, onTable(pack(tableFreeze), writes(frozen), signs(authority)))
	next("fill", "null", nil, extendTable(payer, frozen, authority, keys[:2]...))
	next("freeze", "null", nil, onTable(pack(tableFreeze), writes(frozen), signs(authority)))
	next("extend what is frozen", failed("Immutable"), nil, extendTable(payer, frozen, authority, keys[2]))
	next("deactivate what is frozen", failed("Immutable"), nil, onTable(pack(tableDeactivate), writes(frozen), signs(authority)))
	next("use what is frozen", "null", tables{frozen: keys[:2]}, toLast(2))
	require.Zero(t, p.differences)
}

// sameSlots gives litesvm the SlotHashes sysvar.
func (p *pair) sameSlots() {
	var list []map[string]any
	for _, s := range p.slots {
		list = append(list, map[string]any{"slot": s.Slot, "hash": s.Hash.String()})
	}
	p.peer.ask("slots", map[string]any{"slots": list})
}

// resign signs a message again that was changed.
func (p *pair) resign(tx *Transaction) []byte {
	p.t.Helper()
	changed := solana.Transaction{Message: tx.Message}
	_, err := changed.Sign(func(k solana.PublicKey) *solana.PrivateKey {
		private := p.keys[k]
		return &private
	})
	require.NoError(p.t, err)
	wire, err := changed.MarshalBinary()
	require.NoError(p.t, err)
	return wire
}
