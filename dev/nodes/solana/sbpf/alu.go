package sbpf

import "math/bits"

// alu32 is a 32-bit operation on a register. In SBPF version 0, the sum, the
// difference and the product are sign-extended to 64 bits, all else zero-extended.
func alu32(operation byte, a, b uint32) (uint64, error) {
	switch operation {
	case add:
		return uint64(int64(int32(a + b))), nil
	case sub:
		return uint64(int64(int32(a - b))), nil
	case mul:
		return uint64(int64(int32(a * b))), nil
	case div, mod:
		if b == 0 {
			return 0, errDivideByZero
		}
		if operation == div {
			return uint64(a / b), nil
		}
		return uint64(a % b), nil
	case or:
		return uint64(a | b), nil
	case and:
		return uint64(a & b), nil
	case lsh:
		return uint64(a << (b & 31)), nil
	case rsh:
		return uint64(a >> (b & 31)), nil
	case neg:
		return uint64(-a), nil
	case xor:
		return uint64(a ^ b), nil
	case mov:
		return uint64(b), nil
	case ash:
		return uint64(uint32(int32(a) >> (b & 31))), nil
	default:
		return 0, errUnsupported
	}
}

// alu64 is a 64-bit operation on a register.
func alu64(operation byte, a, b uint64) (uint64, error) {
	switch operation {
	case add:
		return a + b, nil
	case sub:
		return a - b, nil
	case mul:
		return a * b, nil
	case div, mod:
		if b == 0 {
			return 0, errDivideByZero
		}
		if operation == div {
			return a / b, nil
		}
		return a % b, nil
	case or:
		return a | b, nil
	case and:
		return a & b, nil
	case lsh:
		return a << (b & 63), nil
	case rsh:
		return a >> (b & 63), nil
	case neg:
		return -a, nil
	case xor:
		return a ^ b, nil
	case mov:
		return b, nil
	case ash:
		return uint64(int64(a) >> (b & 63)), nil
	default:
		return 0, errUnsupported
	}
}

// byteOrder cuts a register to a number of bits, in little endian as it is or
// turned around for big endian.
func byteOrder(big bool, width int32, v uint64) (uint64, error) {
	switch {
	case width == 16 && big:
		return uint64(bits.ReverseBytes16(uint16(v))), nil
	case width == 16:
		return uint64(uint16(v)), nil
	case width == 32 && big:
		return uint64(bits.ReverseBytes32(uint32(v))), nil
	case width == 32:
		return uint64(uint32(v)), nil
	case width == 64 && big:
		return bits.ReverseBytes64(v), nil
	case width == 64:
		return v, nil
	default:
		return 0, errUnsupported
	}
}

// jumps reports whether a conditional jump is taken.
func jumps(operation byte, a, b uint64) (bool, error) {
	switch operation {
	case 0x00:
		return true, nil
	case 0x10:
		return a == b, nil
	case 0x20:
		return a > b, nil
	case 0x30:
		return a >= b, nil
	case 0x40:
		return a&b != 0, nil
	case 0x50:
		return a != b, nil
	case 0x60:
		return int64(a) > int64(b), nil
	case 0x70:
		return int64(a) >= int64(b), nil
	case 0xa0:
		return a < b, nil
	case 0xb0:
		return a <= b, nil
	case 0xc0:
		return int64(a) < int64(b), nil
	case 0xd0:
		return int64(a) <= int64(b), nil
	default:
		return false, errUnsupported
	}
}
