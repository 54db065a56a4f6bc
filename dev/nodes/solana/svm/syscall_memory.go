package svm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"kivuko/dev/nodes/solana/sbpf"
)

func consumeMemory(vm *sbpf.VM, size uint64) error {
	return vm.Consume(max(memoryUnits, size/bytesPerUnit))
}

func sysMemcpy(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) { // to, from, length
	if err := consumeMemory(vm, r[2]); err != nil {
		return 0, err
	}
	if r[0] < r[1]+r[2] && r[1] < r[0]+r[2] {
		return 0, errors.New("Overlapping copy") //nolint:staticcheck // the text is Agave's and goes into logs
	}
	return move(vm, r)
}

func sysMemmove(p *program, vm *sbpf.VM, r [5]uint64) (uint64, error) { // to, from, length
	if err := consumeMemory(vm, r[2]); err != nil {
		return 0, err
	}
	return move(vm, r)
}

func move(vm *sbpf.VM, r [5]uint64) (uint64, error) {
	to, err := vm.Memory(r[0], r[2], true)
	if err != nil {
		return 0, err
	}
	from, err := vm.Memory(r[1], r[2], false)
	copy(to, from)
	return 0, err
}

func sysMemset(_ *program, vm *sbpf.VM, r [5]uint64) (uint64, error) { // to, byte, length
	if err := consumeMemory(vm, r[2]); err != nil {
		return 0, err
	}
	to, err := vm.Memory(r[0], r[2], true)
	for i := range to {
		to[i] = byte(r[1])
	}
	return 0, err
}

func sysMemcmp(_ *program, vm *sbpf.VM, r [5]uint64) (uint64, error) { // one, other, length, result
	if err := consumeMemory(vm, r[2]); err != nil {
		return 0, err
	}
	a, err := vm.Memory(r[0], r[2], false)
	if err != nil {
		return 0, err
	}
	b, err := vm.Memory(r[1], r[2], false)
	if err != nil {
		return 0, err
	}
	var difference int32
	if !bytes.Equal(a, b) {
		for i := range a {
			if a[i] != b[i] {
				difference = int32(a[i]) - int32(b[i])
				break
			}
		}
	}
	return 0, write(vm, r[3], le.AppendUint32(nil, uint32(difference)))
}

// checkUTF8 words what is wrong with a text as Rust's standard library does, whose
// words Agave puts into the logs.
func checkUTF8(b []byte) error {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r != utf8.RuneError || n > 1 {
			i += n
			continue
		}
		listed := strings.ReplaceAll(fmt.Sprintf("%d", b), " ", ", ")
		could := 1 // bytes that might still have become a character
		for could < utf8.UTFMax && i+could <= len(b) && !utf8.FullRune(b[i:i+could]) {
			could++
		}
		if i+could > len(b) {
			return fmt.Errorf("incomplete utf-8 byte sequence from index %d: %s", i, listed)
		}
		return fmt.Errorf("invalid utf-8 sequence of %d bytes from index %d: %s", max(1, could-1), i, listed)
	}
	return nil
}
