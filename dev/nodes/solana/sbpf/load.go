package sbpf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

// Machine numbers of an ELF object that is SBPF: the kernel's BPF and Solana's own.
const (
	machineBPF  = 247
	machineSBPF = 263
)

// Kinds of relocation.
const (
	relocate64       = 1  // the address of a symbol, in a load of 64 bits
	relocateRelative = 8  // an address inside the object
	relocateCall     = 10 // a call of a symbol
)

const relocationSize = 16

var le = binary.LittleEndian

// loader holds an object while it is linked.
type loader struct {
	file    *elf.File
	image   []byte // the file's bytes, changed by relocations
	text    *elf.Section
	symbols []elf.Symbol
	program *Program
}

// Load reads, links and verifies a program of SBPF version 0. What it is given may
// come from anywhere: it fails on anything that it does not understand.
func Load(object []byte) (*Program, error) {
	if len(object) > MaxProgram {
		return nil, fmt.Errorf("the program has %d bytes, and at most %d are allowed", len(object), MaxProgram)
	}
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read the ELF object: %w", err)
	}
	l := &loader{file: file, image: bytes.Clone(object), program: &Program{functions: map[uint32]int{}}}
	if err := l.checkHeader(); err != nil {
		return nil, err
	}
	for _, step := range []func() error{l.numberCalls, l.relocate, l.mapReadOnly} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	p := l.program
	p.text = decodeText(l.image[l.text.Offset : l.text.Offset+l.text.Size])
	p.textStart = ProgramStart + l.text.Addr
	entry := l.file.Entry - l.text.Addr
	if l.file.Entry < l.text.Addr || entry%slotSize != 0 || entry/slotSize >= uint64(len(p.text)) {
		return nil, fmt.Errorf("the entry point %#x is outside the text", l.file.Entry)
	}
	p.entry = int(entry / slotSize)
	if err := verify(p.text); err != nil {
		return nil, err
	}
	return p, nil
}

func (l *loader) checkHeader() error {
	f := l.file
	if f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB || f.Type != elf.ET_DYN {
		return errors.New("the ELF object is not a 64-bit little-endian shared object")
	}
	if m := f.Machine; m != machineBPF && m != machineSBPF {
		return fmt.Errorf("the ELF object is for machine %d, not for SBPF", m)
	}
	const flagsAt = 48
	if flags := le.Uint32(l.image[flagsAt:]); flags != 0 {
		return fmt.Errorf("the ELF object is of SBPF version %d, and only version 0 can be run", flags)
	}
	l.text = f.Section(".text")
	if l.text == nil || l.text.Size == 0 || l.text.Size%slotSize != 0 {
		return errors.New("the ELF object has no text of whole instructions")
	}
	for _, s := range f.Sections {
		if s.Name == ".bss" || s.Name == ".data" && s.Size != 0 {
			return fmt.Errorf("the ELF object has a writable section %s", s.Name)
		}
	}
	if !inside(l.text.Offset, l.text.Size, len(l.image)) || !inside(l.text.Addr, l.text.Size, MaxProgram) {
		return errors.New("the text is outside the ELF object")
	}
	symbols, err := f.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return fmt.Errorf("read the symbols: %w", err)
	}
	l.symbols = symbols
	return nil
}

// inside reports whether size bytes at a place lie within a length.
func inside(at, size uint64, length int) bool {
	return size <= uint64(length) && at <= uint64(length)-size
}

// numberCalls replaces the distance in calls of the program's own functions by a
// number, which is how calls are told from those of system functions.
func (l *loader) numberCalls() error {
	text := l.image[l.text.Offset : l.text.Offset+l.text.Size]
	count := len(text) / slotSize
	for i := 0; i < count; i++ {
		at := text[i*slotSize:]
		if at[0] == opLoad64 {
			i++
			continue
		}
		distance := int32(le.Uint32(at[4:]))
		if at[0] != opCall || distance == -1 {
			continue // -1 stands for a symbol, which a relocation fills in
		}
		target := i + 1 + int(distance)
		if target < 0 || target >= count {
			return fmt.Errorf("the call at instruction %d leaves the text", i)
		}
		number := functionNumber(target)
		l.program.functions[number] = target
		le.PutUint32(at[4:], number)
	}
	return nil
}

func (l *loader) relocate() error {
	section := l.file.Section(".rel.dyn")
	if section == nil {
		return nil
	}
	if !inside(section.Offset, section.Size, len(l.image)) {
		return errors.New("the relocations are outside the ELF object")
	}
	// The table is read from the object itself: relocations must not rewrite it.
	table := bytes.Clone(l.image[section.Offset : section.Offset+section.Size])
	for ; len(table) >= relocationSize; table = table[relocationSize:] {
		at, info := le.Uint64(table), le.Uint64(table[8:])
		if !inside(at, relocationSize, len(l.image)) && !inside(at, slotSize, len(l.image)) {
			return fmt.Errorf("a relocation at %#x is outside the ELF object", at)
		}
		if err := l.relocateOne(at, uint32(info), info>>32); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) relocateOne(at uint64, kind uint32, symbol uint64) error {
	inText := at >= l.text.Offset && at-l.text.Offset < l.text.Size
	if (inText || kind == relocate64) && kind != relocateCall && !inside(at, relocationSize, len(l.image)) {
		return fmt.Errorf("a relocation at %#x is outside the ELF object", at)
	}
	switch kind {
	case relocate64:
		s, err := l.symbol(symbol)
		if err != nil {
			return err
		}
		address := inProgram(s.Value + uint64(le.Uint32(l.image[at+4:])))
		if inText {
			l.putLoad64(at, address)
		} else {
			le.PutUint64(l.image[at+4:], address)
		}
	case relocateRelative:
		low := uint64(le.Uint32(l.image[at+4:]))
		if inText {
			l.putLoad64(at, inProgram(low|uint64(le.Uint32(l.image[at+12:]))<<32))
		} else { // version 0 keeps the address in the upper half of the word
			le.PutUint64(l.image[at:], inProgram(low))
		}
	case relocateCall:
		return l.relocateCall(at, symbol)
	default:
		return fmt.Errorf("the relocation of kind %d at %#x is unknown", kind, at)
	}
	return nil
}

func (l *loader) relocateCall(at, index uint64) error {
	s, err := l.symbol(index)
	if err != nil {
		return err
	}
	number := CallNumber(s.Name)
	if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 {
		place := (s.Value - l.text.Addr) / slotSize
		if s.Value < l.text.Addr || place >= l.text.Size/slotSize {
			return fmt.Errorf("the function %q is outside the text", s.Name)
		}
		if s.Name != "entrypoint" {
			number = functionNumber(int(place))
		}
		l.program.functions[number] = int(place)
	}
	le.PutUint32(l.image[at+4:], number)
	return nil
}

// symbol finds a symbol by its index in the object; debug/elf leaves out the first.
func (l *loader) symbol(index uint64) (elf.Symbol, error) {
	if index == 0 || index > uint64(len(l.symbols)) {
		return elf.Symbol{}, fmt.Errorf("a relocation names symbol %d of %d", index, len(l.symbols))
	}
	return l.symbols[index-1], nil
}

// putLoad64 puts an address into the two slots of a 64-bit load.
func (l *loader) putLoad64(at, address uint64) {
	le.PutUint32(l.image[at+4:], uint32(address))
	le.PutUint32(l.image[at+12:], uint32(address>>32))
}

// inProgram moves an address of the object to where programs see it.
func inProgram(address uint64) uint64 {
	if address < ProgramStart {
		return address + ProgramStart
	}
	return address
}

// mapReadOnly lays out what the program may read of itself.
func (l *loader) mapReadOnly() error {
	readable := func(s *elf.Section) bool {
		switch s.Name {
		case ".text", ".rodata", ".data.rel.ro", ".eh_frame":
			return s.Type != elf.SHT_NOBITS
		}
		return false
	}
	var end uint64
	for _, s := range l.file.Sections {
		if !readable(s) {
			continue
		}
		if !inside(s.Offset, s.Size, len(l.image)) || !inside(s.Addr, s.Size, MaxProgram) {
			return fmt.Errorf("the section %s is outside the ELF object", s.Name)
		}
		end = max(end, s.Addr+s.Size)
	}
	l.program.readOnly = make([]byte, end)
	for _, s := range l.file.Sections {
		if readable(s) {
			copy(l.program.readOnly[s.Addr:], l.image[s.Offset:s.Offset+s.Size])
		}
	}
	return nil
}
