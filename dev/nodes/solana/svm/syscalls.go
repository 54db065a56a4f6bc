package svm

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/gagliardetto/solana-go"
	"golang.org/x/crypto/sha3"

	"kivuko/dev/nodes/solana/sbpf"
)

// What system functions cost in compute units.
const (
	syscallUnits        = 100
	derivationUnits     = 1500 // for each address tried
	memoryUnits         = 10
	bytesPerUnit        = 250
	invokeUnits         = 946 // SIMD-0339
	accountInfoBytes    = 80  // counted for each account that a program passes, SIMD-0339
	maxReturnData       = 1024
	maxInstructionData  = 10 << 10
	maxPassedAccounts   = 255
	maxPassedInfos      = 255
	maxSigners          = 16
	maxSeeds            = 16
	passedAccountLength = 34 // of a key and two flags
)

// What hashing costs, and how many pieces can be hashed in one call.
const (
	hashUnits     = 85
	maxHashPieces = 20_000
)

// syscall is a system function with the program that calls it at hand.
type syscall func(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error)

// syscalls are the system functions by the numbers of their calls.
func syscalls() map[uint32]sbpf.Syscall {
	table := map[uint32]sbpf.Syscall{}
	for name, call := range map[string]syscall{
		"abort":                                 sysAbort,
		"sol_panic_":                            sysPanic,
		"sol_log_":                              sysLog,
		"sol_log_64_":                           sysLogNumbers,
		"sol_log_pubkey":                        sysLogKey,
		"sol_log_compute_units_":                sysLogUnits,
		"sol_memcpy_":                           sysMemcpy,
		"sol_memmove_":                          sysMemmove,
		"sol_memset_":                           sysMemset,
		"sol_memcmp_":                           sysMemcmp,
		"sol_get_rent_sysvar":                   sysRent,
		"sol_get_clock_sysvar":                  sysClock,
		"sol_get_sysvar":                        sysGetSysvar,
		"sol_get_stack_height":                  sysStackHeight,
		"sol_get_processed_sibling_instruction": sysSibling,
		"sol_sha256":                            sysHash(sha256.New, "Sha256"),
		"sol_keccak256":                         sysHash(sha3.NewLegacyKeccak256, "Keccak256"),
		"sol_create_program_address":            sysCreateAddress,
		"sol_try_find_program_address":          sysFindAddress,
		"sol_set_return_data":                   sysSetReturnData,
		"sol_get_return_data":                   sysGetReturnData,
		"sol_invoke_signed_rust":                sysInvokeRust,
		"sol_invoke_signed_c":                   sysInvokeC,
	} {
		table[sbpf.CallNumber(name)] = func(vm *sbpf.VM, r [5]uint64) (uint64, error) {
			p, ok := vm.Host.(*program)
			if !ok {
				return 0, errors.New("a system function was called outside of a transaction")
			}
			return call(p, vm, r)
		}
	}
	return table
}

func sysAbort(*program, *sbpf.VM, [5]uint64) (uint64, error) {
	return 0, errors.New("SBF program panicked")
}

func sysPanic(_ *program, vm *sbpf.VM, r [5]uint64) (uint64, error) { // file, its length, line, column
	if err := vm.Consume(r[1]); err != nil {
		return 0, err
	}
	file, err := text(vm, r[0], r[1])
	if err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("SBF program Panicked in %s at %d:%d", file, r[2], r[3])
}

func sysLog(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) {
	if err := vm.Consume(max(syscallUnits, r[1])); err != nil {
		return 0, err
	}
	line, err := text(vm, r[0], r[1])
	if err != nil {
		return 0, err
	}
	p.run.log.add("Program log: %s", line)
	return 0, nil
}

func sysLogNumbers(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) {
	if err := vm.Consume(syscallUnits); err != nil {
		return 0, err
	}
	p.run.log.add("Program log: %#x, %#x, %#x, %#x, %#x", r[0], r[1], r[2], r[3], r[4])
	return 0, nil
}

func sysLogKey(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) {
	if err := vm.Consume(syscallUnits); err != nil {
		return 0, err
	}
	key, err := keyAt(vm, r[0])
	if err != nil {
		return 0, err
	}
	p.run.log.add("Program log: %s", key)
	return 0, nil
}

func sysLogUnits(p *program, vm *sbpf.VM, _ [5]uint64) (uint64, error) {
	if err := vm.Consume(syscallUnits); err != nil {
		return 0, err
	}
	p.run.log.add("Program consumption: %d units remaining", vm.Units())
	return 0, nil
}

// text reads UTF-8 from a program's memory.
func text(vm *sbpf.VM, address, size uint64) (string, error) {
	b, err := vm.Memory(address, size, false)
	if err != nil {
		return "", err
	}
	if err := checkUTF8(b); err != nil {
		return "", err
	}
	return string(b), nil
}

func keyAt(vm *sbpf.VM, address uint64) (k solana.PublicKey, err error) {
	b, err := vm.Memory(address, solana.PublicKeyLength, false)
	copy(k[:], b)
	return k, err
}

// write copies bytes into a program's memory.
func write(vm *sbpf.VM, address uint64, data []byte) error {
	b, err := vm.Memory(address, uint64(len(data)), true)
	copy(b, data)
	return err
}

func sysRent(_ *program, vm *sbpf.VM, r [5]uint64) (uint64, error) {
	const size = 24 // of the structure in a program's memory
	if err := vm.Consume(syscallUnits + size); err != nil {
		return 0, err
	}
	data := make([]byte, size)
	copy(data, rentData())
	return 0, write(vm, r[0], data)
}

func sysClock(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) {
	data := clockData(p.run.block)
	if err := vm.Consume(syscallUnits + uint64(len(data))); err != nil {
		return 0, err
	}
	return 0, write(vm, r[0], data)
}

func sysGetSysvar(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) { // address, to, offset, length
	const beyondEnd, notFound = 1, 2
	if err := vm.Consume(syscallUnits + solana.PublicKeyLength/bytesPerUnit + max(memoryUnits, r[3]/bytesPerUnit)); err != nil {
		return 0, err
	}
	key, err := keyAt(vm, r[0])
	if err != nil {
		return 0, err
	}
	to, err := vm.Memory(r[1], r[3], true)
	if err != nil {
		return 0, err
	}
	sysvar, ok := p.run.machine.Sysvar(key, p.run.block)
	if !ok || key == solana.SysVarRecentBlockHashesPubkey {
		return notFound, nil
	}
	if size := uint64(len(sysvar.Data)); r[3] > size || r[2] > size-r[3] {
		return beyondEnd, nil
	}
	copy(to, sysvar.Data[r[2]:])
	return 0, nil
}

// sysHash hashes pieces of a program's memory as if they were one.
func sysHash(start func() hash.Hash, name string) syscall {
	return func(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) { // pieces, their number, to
		if r[1] > maxHashPieces {
			p.run.log.add("%s Hashing %d sequences in one syscall is over the limit %d", name, r[1], maxHashPieces)
			return 0, errors.New("Hashing too many sequences") //nolint:staticcheck // the text is Agave's and goes into logs
		}
		if err := vm.Consume(hashUnits); err != nil {
			return 0, err
		}
		sum := start()
		to, err := vm.Memory(r[2], uint64(sum.Size()), true)
		if err != nil {
			return 0, err
		}
		table, err := vm.Memory(r[0], r[1]*16, false)
		if err != nil {
			return 0, err
		}
		for ; len(table) > 0; table = table[16:] {
			size := le.Uint64(table[8:])
			piece, err := vm.Memory(le.Uint64(table), size, false)
			if err != nil {
				return 0, err
			}
			if err := vm.Consume(max(memoryUnits, size/2)); err != nil {
				return 0, err
			}
			sum.Write(piece)
		}
		copy(to, sum.Sum(nil))
		return 0, nil
	}
}

func sysStackHeight(p *program, vm *sbpf.VM, _ [5]uint64) (uint64, error) {
	return uint64(len(p.run.stack)), vm.Consume(syscallUnits)
}

// sysSibling gives an instruction that the caller of this one ran before it.
func sysSibling(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) { // how many back, sizes, program, data, accounts
	if err := vm.Consume(syscallUnits); err != nil {
		return 0, err
	}
	hit := p.run.sibling(r[0])
	if hit == nil {
		return 0, nil
	}
	sizes, err := vm.Memory(r[1], 16, true)
	if err != nil {
		return 0, err
	}
	if le.Uint64(sizes) == uint64(len(hit.data)) && le.Uint64(sizes[8:]) == uint64(len(hit.accounts)) {
		accounts := make([]byte, 0, len(hit.accounts)*passedAccountLength)
		for _, a := range hit.accounts {
			accounts = append(accounts, p.run.accounts[a.place].key[:]...)
			accounts = append(accounts, flag(a.signer), flag(a.writable))
		}
		id := p.run.accounts[hit.program].key
		for _, err := range []error{write(vm, r[2], id[:]), write(vm, r[3], hit.data), write(vm, r[4], accounts)} {
			if err != nil {
				return 0, err
			}
		}
	}
	le.PutUint64(sizes, uint64(len(hit.data)))
	le.PutUint64(sizes[8:], uint64(len(hit.accounts)))
	return 1, nil
}

// sibling finds the instruction that ran back steps before the one before the
// running one, at the same height and below the same caller.
func (x *execution) sibling(back uint64) *invocation {
	height := len(x.stack)
	passedOver := false // the running one itself
	for i := len(x.trace) - 1; i >= 0 && x.trace[i].height >= height; i-- {
		switch {
		case x.trace[i].height != height:
		case !passedOver:
			passedOver = true
		case back == 0:
			return x.trace[i]
		default:
			back--
		}
	}
	return nil
}

func sysSetReturnData(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) {
	if err := vm.Consume(r[1]/bytesPerUnit + syscallUnits); err != nil {
		return 0, err
	}
	if r[1] > maxReturnData {
		return 0, fmt.Errorf("Return data too large (%d > %d)", r[1], maxReturnData) //nolint:staticcheck // the text is Agave's and goes into logs
	}
	data, err := vm.Memory(r[0], r[1], false)
	if err != nil {
		return 0, err
	}
	p.run.returned = ReturnData{Program: p.id, Data: append([]byte{}, data...)}
	return 0, nil
}

func sysGetReturnData(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) { // to, length, program
	if err := vm.Consume(syscallUnits); err != nil {
		return 0, err
	}
	last := p.run.returned
	size := min(r[1], uint64(len(last.Data)))
	if size == 0 {
		return uint64(len(last.Data)), nil
	}
	if err := vm.Consume((size + solana.PublicKeyLength) / bytesPerUnit); err != nil {
		return 0, err
	}
	if err := write(vm, r[0], last.Data[:size]); err != nil {
		return 0, err
	}
	return uint64(len(last.Data)), write(vm, r[2], last.Program[:])
}
