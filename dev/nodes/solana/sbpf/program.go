// Package sbpf runs Solana's byte code, SBPF version 0: it loads the ELF objects
// that compilers for that target make, verifies them, and interprets them with
// every instruction metered.
//
// Facts about the format are Agave's (the crate solana-sbpf): the memory map, the
// checks of the verifier, the numbers of calls, and the texts of faults, which
// become part of transactions' logs.
package sbpf

import (
	"encoding/binary"
	"math/bits"
)

// Where the regions of memory begin, as a program sees them.
const (
	ProgramStart = 0x1_0000_0000
	StackStart   = 0x2_0000_0000
	HeapStart    = 0x3_0000_0000
	InputStart   = 0x4_0000_0000
)

// MaxProgram is the most bytes that an ELF object may have, and that its read-only
// data may span in memory: what an account can hold.
const MaxProgram = 10 << 20

const slotSize = 8

// slot is one decoded eight bytes of a program.
type slot struct {
	code     byte
	dst, src byte
	offset   int16
	imm      int32
}

// Program is a loaded and verified program. It may be run by several goroutines.
type Program struct {
	readOnly  []byte // mapped at ProgramStart
	text      []slot
	textStart uint64
	entry     int
	functions map[uint32]int // by the number of a call: the place in text
}

// Instructions is how many eight-byte slots the program has.
func (p *Program) Instructions() int { return len(p.text) }

func decodeText(text []byte) []slot {
	slots := make([]slot, len(text)/slotSize)
	for i := range slots {
		b := text[i*slotSize:]
		slots[i] = slot{
			code: b[0], dst: b[1] & 0x0f, src: b[1] >> 4,
			offset: int16(binary.LittleEndian.Uint16(b[2:])),
			imm:    int32(binary.LittleEndian.Uint32(b[4:])),
		}
	}
	return slots
}

// CallNumber is the number by which a program calls a system function of a name.
func CallNumber(name string) uint32 { return murmur3([]byte(name)) }

// functionNumber is the number by which a program calls a function of its own.
func functionNumber(place int) uint32 {
	return murmur3(binary.LittleEndian.AppendUint64(nil, uint64(place)))
}

// murmur3 is MurmurHash3's 32-bit variant with seed 0.
func murmur3(data []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*c1, 15) * c2 }
	var h uint32
	rest := data
	for ; len(rest) >= 4; rest = rest[4:] {
		h ^= mix(binary.LittleEndian.Uint32(rest))
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	var tail uint32
	for i, b := range rest {
		tail |= uint32(b) << (8 * i)
	}
	h ^= mix(tail)
	h ^= uint32(len(data))
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}
