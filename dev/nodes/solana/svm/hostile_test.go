package svm

import (
	"encoding/binary"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"

	"kivuko/dev/nodes/solana/programs"
	"kivuko/dev/nodes/solana/sbpf"
	"kivuko/dev/nodes/solana/sbpf/sbpftest"
)

// hostile is a program that does what its instruction's data say, whether it may or
// not: phases of writing words to memory, each ended by a return or by a
// cross-program invocation.
//
//	phase: number of writes, writes, end
//	write: address, number of words, words
//	end:   0, what to return    or    1, the five arguments of sol_invoke_signed_c
func hostile() []byte { return calling("sol_invoke_signed_c") }

// calling is hostile with another system function in place of the invocation.
func calling(function string) []byte {
	const mov, add, load, store, jump, jumpZero = 0xbf, 0x07, 0x79, 0x7b, 0x05, 0x15
	const jumpNotZero, call, exit = 0x55, 0x85, 0x95
	text := []sbpftest.Instruction{
		{Op: mov, Dst: 6, Src: 2},              // r2 points to the instruction's data
		{Op: load, Dst: 7, Src: 6},             // 1, phase: the number of writes
		{Op: add, Dst: 6, Imm: 8},              //
		{Op: jumpZero, Dst: 7, Offset: 12},     // 3, next write
		{Op: load, Dst: 1, Src: 6},             // address
		{Op: load, Dst: 3, Src: 6, Offset: 8},  // number of words
		{Op: add, Dst: 6, Imm: 16},             //
		{Op: jumpZero, Dst: 3, Offset: 6},      // 7, next word
		{Op: load, Dst: 4, Src: 6},             //
		{Op: store, Dst: 1, Src: 4},            //
		{Op: add, Dst: 6, Imm: 8},              //
		{Op: add, Dst: 1, Imm: 8},              //
		{Op: add, Dst: 3, Imm: -1},             //
		{Op: jump, Offset: -7},                 //
		{Op: add, Dst: 7, Imm: -1},             // 14
		{Op: jump, Offset: -13},                //
		{Op: load, Dst: 8, Src: 6},             // 16, end
		{Op: jumpNotZero, Dst: 8, Offset: 2},   //
		{Op: load, Dst: 0, Src: 6, Offset: 8},  //
		{Op: exit},                             //
		{Op: load, Dst: 1, Src: 6, Offset: 8},  // 20, invocation
		{Op: load, Dst: 2, Src: 6, Offset: 16}, //
		{Op: load, Dst: 3, Src: 6, Offset: 24}, //
		{Op: load, Dst: 4, Src: 6, Offset: 32}, //
		{Op: load, Dst: 5, Src: 6, Offset: 40}, //
		{Op: add, Dst: 6, Imm: 48},             //
		{Op: call, Imm: -1},                    // 26
		{Op: jump, Offset: -27},                //
	}
	return sbpftest.Object{
		Machine: 263, Text: text, Calls: function, ReadOnly: make([]byte, 8),
		Relocations: sbpftest.Relocation(sbpftest.TextStart+26*8, sbpftest.RelocateCall, 1),
	}.Bytes()
}

// poke is one write of a hostile program.
func poke(address uint64, words ...uint64) []byte {
	data := pack(address, uint64(len(words)))
	for _, w := range words {
		data = binary.LittleEndian.AppendUint64(data, w)
	}
	return data
}

// phase is writes and their end.
func phase(end []byte, writes ...[]byte) []byte {
	data := pack(uint64(len(writes)))
	for _, w := range writes {
		data = append(data, w...)
	}
	return append(data, end...)
}

func returns(code uint64) []byte { return pack(uint64(0), code) }

// input knows where accounts lie in a program's memory.
type input struct{ sizes []int }

// at is where an account begins: its flags, then key, owner, lamports, length, data.
func (in input) at(account int) uint64 {
	at := uint64(sbpf.InputStart + 8)
	for _, size := range in.sizes[:account] {
		at += 8 + 32 + 32 + 8 + 8 + uint64(size) + maxRealloc + 8
	}
	return at
}

func (in input) key(account int) uint64      { return in.at(account) + 8 }
func (in input) owner(account int) uint64    { return in.at(account) + 40 }
func (in input) lamports(account int) uint64 { return in.at(account) + 72 }
func (in input) length(account int) uint64   { return in.at(account) + 80 }
func (in input) data(account int) uint64     { return in.at(account) + 88 }

// words are bytes as a program stores them.
func words(b []byte) []uint64 {
	var list []uint64
	for b = append(b, make([]byte, (8-len(b)%8)%8)...); len(b) > 0; b = b[8:] {
		list = append(list, binary.LittleEndian.Uint64(b))
	}
	return list
}

// invokes writes an invocation of System's transfer from one account to another
// into the heap, and makes it. All accounts are passed; the callee is account 0.
func (in input) invokes(from, to int, lamports uint64, fromFlags, toFlags byte) []byte {
	return in.invokesAt(in.key(0), from, to, lamports, fromFlags, toFlags)
}

// invokesAt is invokes of the callee whose key stands at an address.
func (in input) invokesAt(callee uint64, from, to int, lamports uint64, fromFlags, toFlags byte) []byte {
	const instructionAt, metasAt, dataAt, infosAt = sbpf.HeapStart, sbpf.HeapStart + 0x40, sbpf.HeapStart + 0x80, sbpf.HeapStart + 0x100
	meta := func(account int, flags byte) []uint64 { // writable, signer
		return []uint64{in.key(account), uint64(flags&1) | uint64(flags>>1)<<8}
	}
	var infos []uint64
	for _, account := range []int{from, to} {
		infos = append(infos, in.key(account), in.lamports(account), uint64(in.sizes[account]), in.data(account), in.owner(account), ^uint64(0), 0x0101)
	}
	return phase(pack(uint64(1), uint64(instructionAt), uint64(infosAt), uint64(2), uint64(0), uint64(0)),
		poke(instructionAt, callee, metasAt, 2, dataAt, 12),
		poke(metasAt, append(meta(from, fromFlags), meta(to, toFlags)...)...),
		poke(dataAt, words(pack(transfer, lamports))...),
		poke(infosAt, infos...))
}

// hostileHarness is a chain with the hostile program, an account of its own with data,
// one without, and somebody else's.
type hostileHarness struct {
	program, vault, empty, victim solana.PublicKey
	in                            input
}

const vaultSize = 16

func newHostileHarness(c *chain) hostileHarness {
	c.t.Helper()
	w := hostileHarness{
		program: c.key("hostile program"), vault: c.key("vault"), empty: c.key("empty"), victim: c.key("victim"),
		// The system program's data are padded to a multiple of eight.
		in: input{sizes: []int{(len(c.accounts[solana.SystemProgramID].Data) + 7) / 8 * 8, vaultSize, 0, 0}},
	}
	c.accounts[w.vault] = Account{Lamports: 10_000_000, Data: make([]byte, vaultSize), Owner: w.program, RentEpoch: ^uint64(0)}
	c.accounts[w.empty] = Account{Lamports: 10_000_000, Owner: w.program, RentEpoch: ^uint64(0)}
	c.accounts[w.victim] = Account{Lamports: 10_000_000, RentEpoch: ^uint64(0)}
	return w
}

// do is an instruction of the hostile program on its four accounts.
func (w hostileHarness) do(victim *solana.AccountMeta, data ...[]byte) solana.Instruction {
	return instruction(w.program, pack2(data), read(solana.SystemProgramID), writes(w.vault), writes(w.empty), victim)
}

func pack2(parts [][]byte) []byte {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestRuntimeStopsHostilePrograms(t *testing.T) {
	set := programs.Set{{Name: "hostile", Address: (&chain{keys: map[solana.PublicKey]solana.PrivateKey{}}).key("hostile program"), ELF: hostile()}}
	c := newChain(t, set)
	payer := c.payer("payer")
	w := newHostileHarness(c)
	const vault, empty, victim = 1, 2, 3
	is := func(account int, lamports uint64) []byte { return poke(w.in.lamports(account), lamports) }
	key := words(payer[:])
	for name, test := range map[string]struct {
		data [][]byte
		err  string
	}{
		"nothing":                    {[][]byte{phase(returns(0))}, "null"},
		"moving its own lamports":    {[][]byte{phase(returns(0), is(vault, 9_000_000), is(empty, 11_000_000))}, "null"},
		"giving to others":           {[][]byte{phase(returns(0), is(vault, 9_000_000), is(victim, 11_000_000))}, "null"},
		"taking from others":         {[][]byte{phase(returns(0), is(victim, 9_000_000), is(vault, 11_000_000))}, `"ExternalAccountLamportSpend"`},
		"making lamports":            {[][]byte{phase(returns(0), is(vault, 10_000_001))}, `"UnbalancedInstruction"`},
		"burning lamports":           {[][]byte{phase(returns(0), is(vault, 9_999_999))}, `"UnbalancedInstruction"`},
		"writing its own data":       {[][]byte{phase(returns(0), poke(w.in.data(vault), 7))}, "null"},
		"growing its own data":       {[][]byte{phase(returns(0), poke(w.in.length(empty), 100))}, "null"},
		"growing too much":           {[][]byte{phase(returns(0), poke(w.in.length(vault), vaultSize+maxRealloc+1))}, `"InvalidRealloc"`},
		"a length beyond all memory": {[][]byte{phase(returns(0), poke(w.in.length(vault), ^uint64(0)))}, `"InvalidRealloc"`},
		"growing data of others":     {[][]byte{phase(returns(0), poke(w.in.length(victim), 8))}, `"ExternalAccountDataModified"`},
		"giving its account away":    {[][]byte{phase(returns(0), poke(w.in.owner(vault), key...))}, "null"},
		"and data that are not zero": {[][]byte{phase(returns(0), poke(w.in.data(vault), 7), poke(w.in.owner(vault), key...))}, `"ModifiedProgramId"`},
		"taking somebody's account":  {[][]byte{phase(returns(0), poke(w.in.owner(victim), words(w.program[:])...))}, `"ModifiedProgramId"`},
		"its own error":              {[][]byte{phase(returns(77))}, `{"Custom":77}`},
		"a shared error":             {[][]byte{phase(returns(6 << 32))}, `"InsufficientFunds"`},
		"an error of its own, zero":  {[][]byte{phase(returns(1 << 32))}, `{"Custom":0}`},
		"no known error":             {[][]byte{phase(returns(99 << 32))}, `"InvalidError"`},
		"signing for others":         {[][]byte{w.in.invokes(victim, vault, 5, 3, 1), phase(returns(0))}, `"PrivilegeEscalation"`},
		"calling without a signer":   {[][]byte{w.in.invokes(victim, vault, 5, 1, 1), phase(returns(0))}, `"MissingRequiredSignature"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.t = t
			tx, err := Decode(c.sign(payer, c.block.LastBlockhash, false, w.do(writes(w.victim), test.data...)))
			require.NoError(t, err)
			r := c.machine.Execute(tx, c.block, c)
			want := test.err
			if want != "null" {
				want = `{"InstructionError":[0,` + want + `]}`
			}
			require.JSONEq(t, want, marshal(t, r.Err), "%v", r.Logs)
			checkSums(t, tx, r)
		})
	}
}

// A program calls only what it was given, wherever else in the transaction the callee stands.
func TestCalleeIsAmongTheCallersAccounts(t *testing.T) {
	set := programs.Set{{Name: "hostile", Address: (&chain{keys: map[solana.PublicKey]solana.PrivateKey{}}).key("hostile program"), ELF: hostile()}}
	c := newChain(t, set)
	payer := c.payer("payer")
	w := newHostileHarness(c)
	const keyAt = sbpf.HeapStart + 0x200
	elsewhere := instruction(solana.SystemProgramID, pack(transfer, uint64(1)), signsWrite(payer), writes(w.empty))
	execute := func(first solana.PublicKey) string {
		in := input{sizes: []int{(len(c.accounts[first].Data) + 7) / 8 * 8, vaultSize, 0, 0}}
		data := in.invokesAt(keyAt, 3, 1, 5, 3, 1)
		binary.LittleEndian.PutUint64(data, binary.LittleEndian.Uint64(data)+1) // one more write: the callee's key
		data = pack2([][]byte{data[:8], poke(keyAt, words(solana.SystemProgramID[:])...), data[8:], phase(returns(0))})
		call := instruction(w.program, data, read(first), writes(w.vault), writes(w.empty), signsWrite(w.victim))
		tx, err := Decode(c.sign(payer, c.block.LastBlockhash, false, call, elsewhere))
		require.NoError(t, err)
		return marshal(t, c.machine.Execute(tx, c.block, c).Err)
	}
	require.JSONEq(t, "null", execute(solana.SystemProgramID))
	require.JSONEq(t, `{"InstructionError":[0,"MissingAccount"]}`, execute(c.key("no program")))
}

// FuzzHostile lets the hostile program do whatever it is told: the runtime may
// refuse, but neither panic nor let lamports come to be or vanish.
func FuzzHostile(f *testing.F) {
	set := programs.Set{{Name: "hostile", Address: (&chain{keys: map[solana.PublicKey]solana.PrivateKey{}}).key("hostile program"), ELF: hostile()}}
	c := newChain(f, set)
	payer := c.payer("payer")
	w := newHostileHarness(c)
	f.Add(phase(returns(0), poke(w.in.lamports(1), 1)))
	f.Add(append(w.in.invokes(3, 1, 5, 3, 1), phase(returns(0))...))
	f.Add(append(w.in.invokes(3, 1, 5, 1, 1), phase(returns(0), poke(w.in.length(1), 99))...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 800 { // a packet has no room for more
			return
		}
		c.t = t
		tx, err := Decode(c.sign(payer, c.block.LastBlockhash, false, w.do(signsWrite(w.victim), data)))
		require.NoError(t, err)
		r := c.machine.Simulate(tx, c.block, c, Simulation{})
		require.NotEqual(t, Rejected, r.Outcome)
		checkSums(t, tx, r)
	})
}
