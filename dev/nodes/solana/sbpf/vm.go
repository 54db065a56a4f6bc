package sbpf

import (
	"errors"
)

// Faults of a program, in Agave's words.
var (
	errDivideByZero = errors.New("divide by zero at BPF instruction")
	errExceeded     = errors.New("exceeded CUs meter at BPF instruction")
	errCallDepth    = errors.New("exceeded max BPF to BPF call depth")
	errUnsupported  = errors.New("unsupported BPF instruction")
	errOverrun      = errors.New("attempted to execute past the end of the text segment at BPF instruction")
	errCallOutside  = errors.New("callx attempted to call outside of the text segment")
)

// SyscallError is what a system function returned. Any other error of a run is a
// fault of the program itself.
type SyscallError struct{ Err error }

func (e *SyscallError) Error() string { return e.Err.Error() }

func (e *SyscallError) Unwrap() error { return e.Err }

// ErrBudget says that a system function needed more compute units than were left.
var ErrBudget = errors.New("computational budget exceeded in a system function")

const (
	frameSize = 4096
	maxFrames = 64
)

// Syscall is a system function. args are the registers r1 to r5, the result goes
// to r0. An error ends the program.
type Syscall func(vm *VM, args [5]uint64) (uint64, error)

// frame is what a call keeps for its return.
type frame struct {
	back      int
	registers [4]uint64 // r6 to r9
	pointer   uint64
}

// VM is one run of a program.
type VM struct {
	program  *Program
	syscalls map[uint32]Syscall
	units    *uint64 // left; several runs share it

	// Host is for whom the system functions work; the machine does not look at it.
	Host any

	stack  []byte
	heap   []byte
	input  []byte
	frames []frame
	r      [11]uint64
	pc     int
}

// New prepares a run of a program with its input, a heap of a size in bytes and
// the compute units that it may use. instruction is where in the input the
// instruction's data are, which programs find in r2 (SIMD-0321).
func New(p *Program, syscalls map[uint32]Syscall, input []byte, instruction, heap int, units *uint64) *VM {
	vm := &VM{
		program: p, syscalls: syscalls, units: units, pc: p.entry,
		stack: make([]byte, frameSize*maxFrames), heap: make([]byte, heap), input: input,
	}
	vm.r[1] = InputStart
	vm.r[2] = InputStart + uint64(instruction)
	vm.r[framePoint] = StackStart + frameSize
	return vm
}

// Units is how many compute units are left.
func (vm *VM) Units() uint64 { return *vm.units }

// Consume uses up compute units in the name of a system function, or fails with
// ErrBudget and leaves none.
func (vm *VM) Consume(units uint64) error {
	if *vm.units < units {
		*vm.units = 0
		return ErrBudget
	}
	*vm.units -= units
	return nil
}

// Run interprets the program to its end and returns r0. An error is a fault of the
// program, or a *SyscallError.
func (vm *VM) Run() (uint64, error) {
	text := vm.program.text
	for {
		if vm.pc < 0 || vm.pc >= len(text) {
			return 0, errOverrun
		}
		if *vm.units == 0 {
			return 0, errExceeded
		}
		*vm.units--
		s := text[vm.pc]
		vm.pc++
		var err error
		switch s.code & classMask {
		case classLoad:
			err = vm.load64(s)
		case classLoadX:
			err = vm.loadMemory(s)
		case classStore:
			err = vm.storeMemory(s, uint64(int64(s.imm)))
		case classStoreX:
			err = vm.storeMemory(s, vm.r[s.src])
		case classALU32:
			err = vm.narrow(s)
		case classALU64:
			vm.r[s.dst], err = alu64(s.code&operationMask, vm.r[s.dst], vm.operand(s))
		case classJump:
			if s.code == opExit && len(vm.frames) == 0 {
				return vm.r[0], nil
			}
			err = vm.jump(s)
		default:
			err = errUnsupported
		}
		if err != nil {
			return 0, err
		}
	}
}

// operand is the second operand: a register or the sign-extended immediate.
func (vm *VM) operand(s slot) uint64 {
	if s.code&fromRegister != 0 {
		return vm.r[s.src]
	}
	return uint64(int64(s.imm))
}

func (vm *VM) load64(s slot) error {
	text := vm.program.text
	if s.code != opLoad64 || vm.pc >= len(text) {
		return errUnsupported
	}
	vm.r[s.dst] = uint64(uint32(s.imm)) | uint64(uint32(text[vm.pc].imm))<<32
	vm.pc++
	return nil
}

func (vm *VM) narrow(s slot) error {
	var err error
	if s.code&operationMask == end {
		vm.r[s.dst], err = byteOrder(s.code&fromRegister != 0, s.imm, vm.r[s.dst])
	} else {
		vm.r[s.dst], err = alu32(s.code&operationMask, uint32(vm.r[s.dst]), uint32(vm.operand(s)))
	}
	return err
}

func (vm *VM) jump(s slot) error {
	switch s.code {
	case opCall:
		return vm.call(uint32(s.imm))
	case opCallReg:
		return vm.callRegister(vm.r[s.imm])
	case opExit:
		last := vm.frames[len(vm.frames)-1]
		vm.frames = vm.frames[:len(vm.frames)-1]
		copy(vm.r[6:], last.registers[:])
		vm.r[framePoint] = last.pointer
		vm.pc = last.back
		return nil
	}
	taken, err := jumps(s.code&operationMask, vm.r[s.dst], vm.operand(s))
	if taken {
		vm.pc += int(s.offset)
	}
	return err
}

// call calls a system function or one of the program's own by its number.
func (vm *VM) call(number uint32) error {
	if system, ok := vm.syscalls[number]; ok {
		result, err := system(vm, [5]uint64(vm.r[1:6]))
		vm.r[0] = result
		if err != nil {
			return &SyscallError{Err: err}
		}
		return nil
	}
	target, ok := vm.program.functions[number]
	if !ok {
		return errUnsupported
	}
	if err := vm.push(); err != nil {
		return err
	}
	vm.pc = target
	return nil
}

func (vm *VM) callRegister(address uint64) error {
	if err := vm.push(); err != nil {
		return err
	}
	place := (address - vm.program.textStart) / slotSize
	if address < vm.program.textStart || place >= uint64(len(vm.program.text)) {
		return errCallOutside
	}
	vm.pc = int(place)
	return nil
}

// push keeps what a return needs. Stack frames have gaps of their own size between
// them, in which an overflow faults.
func (vm *VM) push() error {
	if len(vm.frames)+1 >= maxFrames {
		return errCallDepth
	}
	vm.frames = append(vm.frames, frame{back: vm.pc, registers: [4]uint64(vm.r[6:10]), pointer: vm.r[framePoint]})
	vm.r[framePoint] += 2 * frameSize
	return nil
}
