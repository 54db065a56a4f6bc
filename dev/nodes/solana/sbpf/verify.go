package sbpf

import (
	"errors"
	"fmt"
)

// Classes of instructions: the lower three bits of the code.
const (
	classLoad     = 0x00
	classLoadX    = 0x01
	classStore    = 0x02
	classStoreX   = 0x03
	classALU32    = 0x04
	classJump     = 0x05
	classALU64    = 0x07
	classMask     = 0x07
	fromRegister  = 0x08 // the operand is a register, not the immediate
	operationMask = 0xf0
)

// Codes that are not an operation of a class.
const (
	opLoad64   = 0x18
	opJump     = 0x05
	opCall     = 0x85
	opCallReg  = 0x8d
	opExit     = 0x95
	framePoint = 10 // the register that points to the stack frame; read only
)

// Arithmetic operations: the upper four bits of the code.
const (
	add = 0x00
	sub = 0x10
	mul = 0x20
	div = 0x30
	or  = 0x40
	and = 0x50
	lsh = 0x60
	rsh = 0x70
	neg = 0x80
	mod = 0x90
	xor = 0xa0
	mov = 0xb0
	ash = 0xc0 // arithmetic shift to the right
	end = 0xd0 // byte order
)

// verify refuses text that the interpreter could not run to a defined end, by the
// rules of Agave's verifier.
func verify(text []slot) error {
	for i := 0; i < len(text); i++ {
		s := text[i]
		if err := verifySlot(text, i); err != nil {
			return fmt.Errorf("instruction %d (%#02x): %w", i, s.code, err)
		}
		if s.code == opLoad64 {
			i++
		}
	}
	return nil
}

func verifySlot(text []slot, i int) error {
	s := text[i]
	writesMemory := false
	var err error
	switch s.code & classMask {
	case classLoad:
		if s.code != opLoad64 {
			return errUnknown
		}
		if i+1 >= len(text) || text[i+1].code != 0 {
			return errors.New("a load of 64 bits without its second half")
		}
	case classLoadX:
		err = verifyWidth(s.code, 0x61)
	case classStore:
		writesMemory = true
		err = verifyWidth(s.code, 0x62)
	case classStoreX:
		writesMemory = true
		err = verifyWidth(s.code, 0x63)
	case classALU32, classALU64:
		err = verifyArithmetic(s)
	case classJump:
		err = verifyJump(text, i)
	default:
		err = errUnknown
	}
	if err != nil {
		return err
	}
	if s.src > framePoint || s.dst > framePoint || s.dst == framePoint && !writesMemory {
		return fmt.Errorf("register %d or %d may not be used here", s.dst, s.src)
	}
	return nil
}

var errUnknown = errors.New("unknown instruction")

// verifyWidth accepts the four widths of an access; word is the code of the one
// with 32 bits, and the others differ in bits 3 and 4.
func verifyWidth(code, word byte) error {
	if code&^0x18 != word {
		return errUnknown
	}
	return nil
}

func verifyArithmetic(s slot) error {
	operation, register := s.code&operationMask, s.code&fromRegister != 0
	wide := s.code&classMask == classALU64
	switch operation {
	case div, mod:
		if !register && s.imm == 0 {
			return errors.New("division by a constant zero")
		}
	case lsh, rsh, ash:
		limit := int32(32)
		if wide {
			limit = 64
		}
		if !register && (s.imm < 0 || s.imm >= limit) {
			return fmt.Errorf("shift by %d", s.imm)
		}
	case neg:
		if register {
			return errUnknown
		}
	case end:
		if wide {
			return errUnknown
		}
		if s.imm != 16 && s.imm != 32 && s.imm != 64 {
			return fmt.Errorf("byte order of %d bits", s.imm)
		}
	case 0xe0, 0xf0:
		return errUnknown
	}
	return nil
}

func verifyJump(text []slot, i int) error {
	s := text[i]
	switch s.code {
	case opCall, opExit:
		return nil
	case opCallReg:
		if s.imm < 0 || s.imm > framePoint {
			return fmt.Errorf("call through register %d", s.imm)
		}
		return nil
	}
	operation := s.code & operationMask
	if operation == 0x80 || operation == 0x90 || operation >= 0xe0 || operation == 0 && s.code != opJump {
		return errUnknown
	}
	target := i + 1 + int(s.offset)
	if target < 0 || target >= len(text) {
		return errors.New("jump out of the text")
	}
	if text[target].code == 0 {
		return errors.New("jump into the middle of a load of 64 bits")
	}
	return nil
}
