package sbpf

import "fmt"

// Memory gives the bytes of a program's memory at an address, to be read or also
// to be written. What lies outside the regions, crosses their ends or may not be
// written is a fault of the program.
func (vm *VM) Memory(address, size uint64, write bool) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	offset := address & 0xffff_ffff
	var region []byte
	name := "unknown"
	switch address >> 32 {
	case ProgramStart >> 32:
		name = "program"
		if !write {
			region = vm.program.readOnly
		}
	case StackStart >> 32:
		return vm.stackMemory(address, size)
	case HeapStart >> 32:
		region, name = vm.heap, "heap"
	case InputStart >> 32:
		region, name = vm.input, "input"
	}
	if !inside(offset, size, len(region)) {
		return nil, fmt.Errorf("Access violation in %s section at address %#x of size %d", name, address, size) //nolint:staticcheck // the text is Agave's and goes into logs
	}
	return region[offset : offset+size], nil
}

// stackMemory finds a place on the stack, on which a gap follows every frame.
func (vm *VM) stackMemory(address, size uint64) ([]byte, error) {
	offset := address & 0xffff_ffff
	number, within := offset/(2*frameSize), offset%(2*frameSize)
	if number >= maxFrames || within >= frameSize || size > frameSize-within {
		return nil, fmt.Errorf("Access violation in stack frame %d at address %#x of size %d", offset/frameSize, address, size) //nolint:staticcheck // the text is Agave's and goes into logs
	}
	at := number*frameSize + within
	return vm.stack[at : at+size], nil
}

// width is how many bytes a load or store moves: bits 3 and 4 of its code.
func width(code byte) uint64 {
	switch code & 0x18 {
	case 0x10:
		return 1
	case 0x08:
		return 2
	case 0x00:
		return 4
	default:
		return 8
	}
}

func (vm *VM) loadMemory(s slot) error {
	size := width(s.code)
	b, err := vm.Memory(vm.r[s.src]+uint64(int64(s.offset)), size, false)
	if err != nil {
		return err
	}
	switch size {
	case 1:
		vm.r[s.dst] = uint64(b[0])
	case 2:
		vm.r[s.dst] = uint64(le.Uint16(b))
	case 4:
		vm.r[s.dst] = uint64(le.Uint32(b))
	default:
		vm.r[s.dst] = le.Uint64(b)
	}
	return nil
}

func (vm *VM) storeMemory(s slot, v uint64) error {
	size := width(s.code)
	b, err := vm.Memory(vm.r[s.dst]+uint64(int64(s.offset)), size, true)
	if err != nil {
		return err
	}
	switch size {
	case 1:
		b[0] = byte(v)
	case 2:
		le.PutUint16(b, uint16(v))
	case 4:
		le.PutUint32(b, uint32(v))
	default:
		le.PutUint64(b, v)
	}
	return nil
}
