package svm

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"testing"

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
	code := hostile()
	loaded, err := sbpf.Load(code)
	require.NoError(t, err)
	p.machine.programs[w.program] = loaded
	p.accounts[w.program] = Account{Lamports: MinimumBalance(len(code)), Data: code, Owner: solana.BPFLoaderProgramID, Executable: true}
	p.peer.ask("program", map[string]any{
		"key": hex.EncodeToString(w.program[:]), "code": base64.StdEncoding.EncodeToString(code),
		"loader": hex.EncodeToString(solana.BPFLoaderProgramID[:]),
	})
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
