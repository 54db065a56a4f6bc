package svm

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"

	"kivuko/dev/nodes/solana/sbpf"
)

// TestConformanceHostile has a program do random things to its accounts and invoke
// System with random rights, on both sides.
func TestConformanceHostile(t *testing.T) {
	p := newPair(t)
	seed := number(t, "KIVUKO_SVM_SEED", 1)
	rnd := rand.New(rand.NewPCG(seed, 2))
	payer := p.payer("payer")
	named := builtin("solana_system_program") // as litesvm has it, which moves all that follows in memory
	p.accounts[solana.SystemProgramID] = named
	w := newHostileHarness(p.chain)
	p.deploy(w.program, hostile())
	for range number(t, "KIVUKO_SVM_COUNT", 2000) / 2 {
		p.advance()
		newHostileHarness(p.chain)
		for _, k := range []solana.PublicKey{w.vault, w.empty, w.victim} {
			p.peer.set(k, p.accounts[k])
		}
		victim := []*solana.AccountMeta{writes(w.victim), signsWrite(w.victim), read(w.victim), signs(w.victim)}[rnd.IntN(4)]
		wire := p.sign(payer, p.block.LastBlockhash, false, w.do(victim, w.draw(rnd)))
		if len(wire) <= PacketSize {
			p.both("hostile", wire)
		}
	}
	t.Logf("seed %d: %d transactions (%d succeeded, %d failed), %d differences, %d distinct errors",
		seed, p.transactions, p.succeeded, p.failed, p.differences, len(p.errors))
	for text, n := range p.errors {
		t.Logf("%6d %s", n, text)
	}
}

// deploy gives both sides a program.
func (p *pair) deploy(program solana.PublicKey, code []byte) {
	p.t.Helper()
	loaded, err := sbpf.Load(code)
	require.NoError(p.t, err)
	p.machine.programs[program] = loaded
	p.accounts[program] = Account{Lamports: MinimumBalance(len(code)), Data: code, Owner: solana.BPFLoaderProgramID, Executable: true}
	p.peer.ask("program", map[string]any{
		"key": hex.EncodeToString(program[:]), "code": base64.StdEncoding.EncodeToString(code),
		"loader": hex.EncodeToString(solana.BPFLoaderProgramID[:]),
	})
}

// TestConformanceHashes has a program hash pieces of its memory into an account of its own. What it may not read or write is
// worded in another way by litesvm, which tells the kind of access.
func TestConformanceHashes(t *testing.T) {
	const table, text = sbpf.HeapStart, sbpf.HeapStart + 0x100
	for name, hash := range map[string]func([]byte) []byte{
		"sol_sha256":    func(b []byte) []byte { sum := sha256.Sum256(b); return sum[:] },
		"sol_keccak256": func(b []byte) []byte { return crypto.Keccak256(b) },
	} {
		p := newPair(t)
		payer, program, vault := p.payer("payer"), p.key(name), p.key("vault of "+name)
		p.deploy(program, calling(name))
		in := input{sizes: []int{32}}
		call := func(pieces, to uint64) (Result, []byte) {
			t.Helper()
			p.accounts[vault] = Account{Lamports: 10_000_000, Data: make([]byte, 32), Owner: program, RentEpoch: ^uint64(0)}
			p.peer.set(vault, p.accounts[vault])
			p.advance()
			do := phase(pack(uint64(1), uint64(table), pieces, to, uint64(0), uint64(0)),
				poke(text, words([]byte("kivuko"))...), poke(table, text, 3, text+3, 3))
			r := p.both(name, p.sign(payer, p.block.LastBlockhash, false, instruction(program, append(do, phase(returns(0))...), writes(vault))))
			return r, p.accounts[vault].Data
		}
		for pieces, of := range []string{"", "kiv", "kivuko", "kivuko"} { // the last piece is empty
			r, got := call(uint64(pieces), in.data(0))
			require.Nil(t, r.Err)
			require.Equal(t, hash([]byte(of)), got, "%s of %q", name, of)
		}
		r, _ := call(20_001, in.data(0))
		require.JSONEq(t, `{"InstructionError":[0,"ProgramFailedToComplete"]}`, marshal(t, r.Err))
		require.Zero(t, p.differences)
	}
}

// draw makes the data of one hostile instruction.
func (w hostileHarness) draw(rnd *rand.Rand) []byte {
	write := func() []byte {
		account := 1 + rnd.IntN(3)
		switch rnd.IntN(8) {
		case 0:
			return poke(w.in.length(account), []uint64{0, 8, 16, 100, vaultSize + maxRealloc, vaultSize + maxRealloc + 1, ^uint64(0)}[rnd.IntN(7)])
		case 1:
			return poke(w.in.data(account), rnd.Uint64N(2))
		case 2:
			return poke(w.in.owner(account), words([][]byte{w.program[:], w.victim[:], make([]byte, 32)}[rnd.IntN(3)])...)
		case 3:
			return poke(w.in.at(account)+rnd.Uint64N(90)/8*8, rnd.Uint64())
		case 4:
			return poke(sbpf.StackStart+rnd.Uint64N(3*4096)/8*8, 1)
		default:
			return poke(w.in.lamports(account), 10_000_000+uint64(rnd.IntN(3)-1)*1_000_000)
		}
	}
	invocation := func() []byte {
		return w.in.invokes(1+rnd.IntN(3), 1+rnd.IntN(3), uint64(rnd.IntN(3))*1_000_000, byte(rnd.IntN(4)), byte(rnd.IntN(4)))
	}
	writes := func() [][]byte {
		var list [][]byte
		for range rnd.IntN(4) {
			list = append(list, write())
		}
		if rnd.IntN(2) == 0 { // a move between two accounts that balances
			from, to := 1+rnd.IntN(3), 1+rnd.IntN(3)
			list = append(list, poke(w.in.lamports(from), 9_000_000), poke(w.in.lamports(to), 11_000_000))
		}
		return list
	}
	var data []byte
	if rnd.IntN(2) == 0 {
		// An invocation is a phase of its own; writes before it join it.
		call := invocation()
		before := writes()
		count := uint64(len(before)) + le.Uint64(call)
		data = append(data, pack(count)...)
		data = append(data, pack2(before)...)
		data = append(data, call[8:]...)
	}
	end := returns([]uint64{0, 0, 0, 0, 0, 5, 6 << 32, 1 << 32, 77 << 32}[rnd.IntN(9)])
	return append(data, phase(end, writes()...)...)
}
