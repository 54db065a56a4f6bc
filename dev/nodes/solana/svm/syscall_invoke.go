package svm

import (
	"bytes"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/sbpf"
)

// layout is how a language lays out what it passes to an invocation.
type layout struct {
	instruction uint64                                              // bytes of an instruction
	meta, info  uint64                                              // of an account in it, and of an account's content
	read        func(vm *sbpf.VM, at []byte) (call, error)          // an instruction
	account     func(vm *sbpf.VM, at []byte) (meta, error)          // an account in it
	length      func(info []byte, address uint64) (lengthAt uint64) // where an account's length is
}

// call is the instruction that a program passes, still in its memory.
type call struct {
	program                     solana.PublicKey
	metas, metaCount, data, len uint64
}

func sysInvokeRust(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) {
	return p.invoke(vm, r, layout{
		instruction: 80, meta: passedAccountLength, info: 48,
		read: func(_ *sbpf.VM, b []byte) (call, error) {
			return call{
				metas: le.Uint64(b), metaCount: le.Uint64(b[16:]), data: le.Uint64(b[24:]), len: le.Uint64(b[40:]),
				program: solana.PublicKey(b[48:80]),
			}, nil
		},
		account: func(_ *sbpf.VM, b []byte) (meta, error) {
			return meta{key: solana.PublicKey(b[:32]), signer: b[32] != 0, writable: b[33] != 0}, nil
		},
		// The content is behind a counted, borrowed reference: two counters, the
		// borrow's state, the data's address and their length.
		length: func(info []byte, _ uint64) uint64 { return le.Uint64(info[16:]) + 32 },
	})
}

func sysInvokeC(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) {
	return p.invoke(vm, r, layout{
		instruction: 40, meta: 16, info: 56,
		read: func(vm *sbpf.VM, b []byte) (call, error) {
			id, err := keyAt(vm, le.Uint64(b))
			return call{
				metas: le.Uint64(b[8:]), metaCount: le.Uint64(b[16:]), data: le.Uint64(b[24:]), len: le.Uint64(b[32:]),
				program: id,
			}, err
		},
		account: func(vm *sbpf.VM, b []byte) (meta, error) {
			key, err := keyAt(vm, le.Uint64(b))
			return meta{key: key, writable: b[8] != 0, signer: b[9] != 0}, err
		},
		length: func(_ []byte, address uint64) uint64 { return address + 16 },
	})
}

// lent is an account that the caller passes with its content, to be shown to it
// again afterwards.
type lent struct {
	mapped   mapped
	lengthAt uint64 // where the caller keeps the length of its data
	known    int    // that length
}

// invoke is a cross-program invocation: r has the instruction, the accounts'
// contents and their number, the signers' seeds and their number.
func (p *program) invoke(vm *sbpf.VM, r [5]uint64, l layout) (uint64, error) {
	if err := vm.Consume(invokeUnits); err != nil {
		return 0, err
	}
	wanted, metas, data, err := readCall(vm, r[0], l)
	if err != nil {
		return 0, err
	}
	signers, err := p.signersAt(vm, r[3], r[4])
	if err != nil {
		return 0, err
	}
	if notInvocable(wanted) {
		return 0, fmt.Errorf("Program %s not supported by inner instructions", wanted) //nolint:staticcheck // the text is Agave's and goes into logs
	}
	v, err := p.run.prepare(wanted, metas, data, signers)
	if err != nil {
		return 0, err
	}
	accounts, err := p.lend(vm, r[1], r[2], v, l)
	if err != nil {
		return 0, err
	}
	p.run.record(v)
	if err := p.run.invoke(v); err != nil {
		return 0, err
	}
	for _, a := range accounts {
		if err := p.show(a.mapped, a.known); err != nil {
			return 0, err
		}
		length := le.AppendUint64(nil, uint64(len(p.run.account(a.mapped.index).Data)))
		if err := write(vm, a.lengthAt, length); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// notInvocable reports whether programs may not call this one: the loaders, of which
// only the upgradeable one has instructions for programs, and the precompiles.
func notInvocable(id solana.PublicKey) bool {
	switch id {
	case nativeLoader, solana.BPFLoaderProgramID, solana.BPFLoaderDeprecatedProgramID, solana.BPFLoaderUpgradeableProgramID:
		return true
	}
	return false
}

// readCall reads the instruction that a program wants to run.
func readCall(vm *sbpf.VM, address uint64, l layout) (id solana.PublicKey, metas []meta, data []byte, err error) {
	b, err := vm.Memory(address, l.instruction, false)
	if err != nil {
		return id, nil, nil, err
	}
	c, err := l.read(vm, b)
	if err != nil {
		return id, nil, nil, err
	}
	if c.len > maxInstructionData {
		return id, nil, nil, fmt.Errorf("Invoked an instruction with data that is too large (%d > %d)", c.len, maxInstructionData) //nolint:staticcheck // the text is Agave's and goes into logs
	}
	if c.metaCount > maxPassedAccounts {
		return id, nil, nil, fmt.Errorf("Invoked an instruction with too many accounts (%d > %d)", c.metaCount, maxPassedAccounts) //nolint:staticcheck // the text is Agave's and goes into logs
	}
	if err := vm.Consume(c.len/bytesPerUnit + c.metaCount*passedAccountLength/bytesPerUnit); err != nil {
		return id, nil, nil, err
	}
	list, err := vm.Memory(c.metas, c.metaCount*l.meta, false)
	if err != nil {
		return id, nil, nil, err
	}
	for ; len(list) > 0; list = list[l.meta:] {
		m, err := l.account(vm, list)
		if err != nil {
			return id, nil, nil, err
		}
		metas = append(metas, m)
	}
	data, err = vm.Memory(c.data, c.len, false)
	return c.program, metas, bytes.Clone(data), err
}

// signersAt derives the addresses that the program signs for.
func (p *program) signersAt(vm *sbpf.VM, address, count uint64) ([]solana.PublicKey, error) {
	if count > maxSigners {
		return nil, fmt.Errorf("Too many signers") //nolint:staticcheck // the text is Agave's and goes into logs
	}
	table, err := vm.Memory(address, count*16, false)
	if err != nil {
		return nil, err
	}
	var signers []solana.PublicKey
	for ; len(table) > 0; table = table[16:] {
		seeds, err := seedsAt(vm, le.Uint64(table), le.Uint64(table[8:]), fail("MaxSeedLengthExceeded"))
		if err != nil {
			return nil, err
		}
		signer, ok := programAddress(seeds, p.id)
		if !ok {
			return nil, errBadSeeds(seedsInvalid)
		}
		signers = append(signers, signer)
	}
	return signers, nil
}

// lend takes over what the caller did so far to the accounts that it passes, which
// is what the callee must see, and notes where to show it the callee's doings.
func (p *program) lend(vm *sbpf.VM, address, count uint64, v *invocation, l layout) ([]lent, error) {
	if count > maxPassedInfos {
		return nil, fmt.Errorf("Invoked an instruction with too many account info's (%d > %d)", count, maxPassedInfos) //nolint:staticcheck // the text is Agave's and goes into logs
	}
	if err := vm.Consume(count * accountInfoBytes / bytesPerUnit); err != nil {
		return nil, err
	}
	infos, err := vm.Memory(address, count*l.info, false)
	if err != nil {
		return nil, err
	}
	lengths := map[solana.PublicKey]uint64{} // where each account's length is
	for i := uint64(0); i < count; i++ {
		info := infos[i*l.info:]
		key, err := keyAt(vm, le.Uint64(info))
		if err != nil {
			return nil, err
		}
		if _, twice := lengths[key]; !twice {
			lengths[key] = l.length(info, address+i*l.info)
		}
	}
	var accounts []lent
	done := map[int]bool{}
	for _, passed := range v.accounts {
		if done[passed.place] {
			continue
		}
		done[passed.place] = true
		a, ok, err := p.lendOne(vm, passed, lengths)
		if err != nil {
			return nil, err
		}
		if ok {
			accounts = append(accounts, a)
		}
	}
	return accounts, nil
}

// lendOne does so for one account, and reports whether it has to be shown again: a
// program is not, nor what the callee may not change.
func (p *program) lendOne(vm *sbpf.VM, passed passed, lengths map[solana.PublicKey]uint64) (lent, bool, error) {
	a := p.run.accounts[passed.place]
	if a.Executable {
		return lent{}, false, vm.Consume(uint64(len(a.Data)) / bytesPerUnit)
	}
	lengthAt, ok := lengths[a.key]
	if !ok {
		p.run.log.add("Instruction references an unknown account %s", a.key)
		return lent{}, false, fail("MissingAccount")
	}
	b, err := vm.Memory(lengthAt, 8, false)
	if err != nil {
		return lent{}, false, err
	}
	length := le.Uint64(b)
	if err := vm.Consume(length / bytesPerUnit); err != nil {
		return lent{}, false, err
	}
	for _, m := range p.mapped {
		if p.run.account(m.index).place == passed.place {
			err := p.takeOver(m, length)
			return lent{mapped: m, lengthAt: lengthAt, known: int(length)}, passed.writable, err
		}
	}
	return lent{}, false, fail("MissingAccount")
}
