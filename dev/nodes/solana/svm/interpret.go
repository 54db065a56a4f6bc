package svm

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/sbpf"
)

// maxRealloc is by how many bytes a program may let an account grow in one call:
// so much is left free behind its data.
const maxRealloc = 10 << 10

// mapped is where an account lies in the memory of a program.
type mapped struct {
	index                         int // among the invocation's accounts
	owner, lamports, length, data int
	original                      int // bytes of data when the program started
}

// program is a program while it runs.
type program struct {
	run    *execution
	id     solana.PublicKey
	input  []byte
	mapped []mapped
}

// interpret runs a program's byte code on the running instruction.
func (x *execution) interpret(id solana.PublicKey, code *sbpf.Program, v *invocation) error {
	atStart := x.units
	p := &program{run: x, id: id}
	instruction := p.serialise(v)
	if err := x.consume(heapUnits(x.heap)); err != nil {
		return err
	}
	beforeRun := x.units
	vm := sbpf.New(code, x.machine.syscalls, p.input, instruction, x.heap, &x.units)
	vm.Host = p
	r0, err := vm.Run()
	x.log.add("Program %s consumed %d of %d compute units", id, beforeRun-x.units, atStart)
	if len(x.returned.Data) > 0 {
		x.log.add("Program return: %s %s", id, base64.StdEncoding.EncodeToString(x.returned.Data))
	}
	if errors.Is(err, sbpf.ErrBudget) {
		return fail("ComputationalBudgetExceeded")
	}
	if err != nil {
		if fault := new(sbpf.SyscallError); !errors.As(err, &fault) {
			x.units = 0 // a fault of the program takes all that is left
		}
		return err
	}
	if err := returned(r0); err != nil {
		return err
	}
	for _, m := range p.mapped {
		if err := p.takeOver(m, le.Uint64(p.input[m.length:])); err != nil {
			return err
		}
	}
	return nil
}

// serialise lays out the input of a program: its accounts, the instruction's data,
// and its own address. It returns where the instruction's data are.
func (p *program) serialise(v *invocation) int {
	var b bytes.Buffer
	number := func(n uint64) { b.Write(le.AppendUint64(nil, n)) }
	number(uint64(len(v.accounts)))
	first := map[int]int{}
	for i, passed := range v.accounts {
		if earlier, twice := first[passed.place]; twice {
			b.Write([]byte{byte(earlier), 0, 0, 0, 0, 0, 0, 0})
			continue
		}
		first[passed.place] = i
		a := p.run.accounts[passed.place]
		const notTwice, alignment = 0xff, 8
		b.Write([]byte{notTwice, flag(passed.signer), flag(passed.writable), flag(a.Executable), 0, 0, 0, 0})
		b.Write(a.key[:])
		m := mapped{index: i, original: len(a.Data), owner: b.Len()}
		b.Write(a.Owner[:])
		m.lamports = b.Len()
		number(a.Lamports)
		m.length = b.Len()
		number(uint64(len(a.Data)))
		m.data = b.Len()
		b.Write(a.Data)
		b.Write(make([]byte, maxRealloc+(alignment-len(a.Data)%alignment)%alignment))
		number(math.MaxUint64) // the epoch of the next rent, which there never is
		p.mapped = append(p.mapped, m)
	}
	number(uint64(len(v.data)))
	instruction := b.Len()
	b.Write(v.data)
	b.Write(p.id[:])
	p.input = b.Bytes()
	return instruction
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// takeOver makes what the program did to an account in its memory true, if it may.
// length is how many bytes of data the program says there are.
func (p *program) takeOver(m mapped, length uint64) error {
	a := p.run.account(m.index)
	if lamports := le.Uint64(p.input[m.lamports:]); lamports != a.Lamports {
		if err := a.setLamports(lamports); err != nil {
			return err
		}
	}
	if length > uint64(m.original+maxRealloc) {
		return fail("InvalidRealloc")
	}
	if err := a.syncData(p.input[m.data : m.data+int(length)]); err != nil {
		return err
	}
	if owner := solana.PublicKey(p.input[m.owner : m.owner+solana.PublicKeyLength]); owner != a.Owner {
		return a.setOwner(owner)
	}
	return nil
}

// show writes an account into the program's memory, after another program ran.
// known is how many bytes of data the program thinks there are.
func (p *program) show(m mapped, known int) error {
	a := p.run.account(m.index)
	if len(a.Data) > m.original+maxRealloc {
		return fail("InvalidRealloc")
	}
	le.PutUint64(p.input[m.lamports:], a.Lamports)
	copy(p.input[m.owner:], a.Owner[:])
	copy(p.input[m.data:], a.Data)
	if known == len(a.Data) {
		return nil
	}
	le.PutUint64(p.input[m.length:], uint64(len(a.Data)))
	if known > len(a.Data) {
		clear(p.input[m.data+len(a.Data) : m.data+known])
	}
	return nil
}
