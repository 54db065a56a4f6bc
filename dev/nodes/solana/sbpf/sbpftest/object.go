// Package sbpftest puts small SBPF programs together, for the tests of the
// interpreter and of what runs on it.
package sbpftest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// Instruction is one slot of a program's text.
type Instruction struct {
	Op, Dst, Src byte
	Offset       int16
	Imm          int32
}

// Kinds of relocation that a program needs to find its data and to call the system.
const (
	RelocateData = 8
	RelocateCall = 10
)

// TextStart is where the text lies in the object and in memory.
const TextStart = 64

// Object is an ELF object in the making. Its zero parts are valid.
type Object struct {
	Text []Instruction
	// ReadOnly follows the text, aligned to eight bytes.
	ReadOnly []byte
	// Calls is the system function that relocations of calls can name, as symbol 1.
	Calls       string
	Relocations []byte
	// Entry is the entry point, in bytes from the text's beginning.
	Entry uint64
	// Flags hold the version of SBPF.
	Flags   uint32
	Machine elf.Machine
	// Section is the name of one more section, empty for none.
	Section string
}

// Relocation is an entry of the table of relocations.
func Relocation(at uint64, kind uint32, symbol uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, at)
	return binary.LittleEndian.AppendUint64(b, symbol<<32|uint64(kind))
}

// writer lays an object out.
type writer struct {
	body, names bytes.Buffer
	table       []byte
}

func (w *writer) put(b []byte) (offset uint64) {
	offset = uint64(w.body.Len())
	w.body.Write(b)
	w.body.Write(make([]byte, (8-w.body.Len()%8)%8))
	return offset
}

func (w *writer) section(name string, kind elf.SectionType, at uint64, size int, link, entry uint32) {
	b := make([]byte, 64)
	binary.LittleEndian.PutUint32(b, uint32(w.names.Len()))
	binary.LittleEndian.PutUint32(b[4:], uint32(kind))
	binary.LittleEndian.PutUint64(b[16:], at)
	binary.LittleEndian.PutUint64(b[24:], at)
	binary.LittleEndian.PutUint64(b[32:], uint64(size))
	binary.LittleEndian.PutUint32(b[40:], link)
	binary.LittleEndian.PutUint64(b[56:], uint64(entry))
	w.table = append(w.table, b...)
	w.names.WriteString(name + "\x00")
}

func (o Object) text() []byte {
	var text []byte
	for _, s := range o.Text {
		text = append(text, s.Op, s.Dst|s.Src<<4)
		text = binary.LittleEndian.AppendUint16(text, uint16(s.Offset))
		text = binary.LittleEndian.AppendUint32(text, uint32(s.Imm))
	}
	return text
}

// Bytes is the object, such that Agave's loader takes it too.
func (o Object) Bytes() []byte {
	w := &writer{}
	w.body.Write(make([]byte, TextStart))
	text := o.text()
	textAt := w.put(text)
	readOnlyAt := w.put(o.ReadOnly)
	symbolNames := []byte("\x00" + o.Calls + "\x00")
	symbols := make([]byte, 48) // the first is empty
	binary.LittleEndian.PutUint32(symbols[24:], 1)
	symbols[28] = byte(elf.STB_GLOBAL) << 4
	symbolsAt, symbolNamesAt, relocationsAt := w.put(symbols), w.put(symbolNames), w.put(o.Relocations)
	var dynamic []byte
	for _, tag := range [][2]uint64{
		{uint64(elf.DT_SYMTAB), symbolsAt},
		{uint64(elf.DT_REL), relocationsAt},
		{uint64(elf.DT_RELSZ), uint64(len(o.Relocations))},
		{uint64(elf.DT_RELENT), 16},
		{uint64(elf.DT_NULL), 0},
	} {
		dynamic = binary.LittleEndian.AppendUint64(dynamic, tag[0])
		dynamic = binary.LittleEndian.AppendUint64(dynamic, tag[1])
	}
	dynamicAt := w.put(dynamic)

	w.section("", elf.SHT_NULL, 0, 0, 0, 0)
	w.section(".text", elf.SHT_PROGBITS, textAt, len(text), 0, 0)
	w.section(".rodata", elf.SHT_PROGBITS, readOnlyAt, len(o.ReadOnly), 0, 0)
	w.section(".dynsym", elf.SHT_DYNSYM, symbolsAt, len(symbols), 4, 24)
	w.section(".dynstr", elf.SHT_STRTAB, symbolNamesAt, len(symbolNames), 0, 0)
	w.section(".rel.dyn", elf.SHT_REL, relocationsAt, len(o.Relocations), 3, 16)
	w.section(".dynamic", elf.SHT_DYNAMIC, dynamicAt, len(dynamic), 4, 16)
	if o.Section != "" {
		w.section(o.Section, elf.SHT_PROGBITS, dynamicAt, len(dynamic), 0, 0)
	}
	const last = ".shstrtab"
	w.section(last, elf.SHT_STRTAB, uint64(w.body.Len()), w.names.Len()+len(last)+1, 0, 0)
	w.put(w.names.Bytes())
	return o.header(w, w.put(w.table))
}

func (o Object) header(w *writer, tableAt uint64) []byte {
	const sectionSize, segmentSize = 64, 56
	all := w.body.Bytes()
	copy(all, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(all[16:], uint16(elf.ET_DYN))
	binary.LittleEndian.PutUint16(all[18:], uint16(o.Machine))
	binary.LittleEndian.PutUint32(all[20:], 1)
	binary.LittleEndian.PutUint64(all[24:], TextStart+o.Entry)
	binary.LittleEndian.PutUint64(all[32:], TextStart) // no segments
	binary.LittleEndian.PutUint64(all[40:], tableAt)
	binary.LittleEndian.PutUint32(all[48:], o.Flags)
	binary.LittleEndian.PutUint16(all[52:], TextStart)
	binary.LittleEndian.PutUint16(all[54:], segmentSize)
	binary.LittleEndian.PutUint16(all[58:], sectionSize)
	binary.LittleEndian.PutUint16(all[60:], uint16(len(w.table)/sectionSize))
	binary.LittleEndian.PutUint16(all[62:], uint16(len(w.table)/sectionSize-1))
	return all
}
