package sbpf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kivuko/dev/solana/programs"
)

// object is an ELF object in the making.
type object struct {
	text        []slot
	rodata      []byte
	relocations []byte
	entry       uint64
	flags       uint32
	machine     elf.Machine
	extra       string // the name of one more section
}

const headerSize = 64

// bytes lays the object out: header, text, read-only data, symbols, relocations,
// names, and the table of sections.
func (o object) bytes() []byte {
	var body bytes.Buffer
	body.Write(make([]byte, headerSize))
	put := func(b []byte) (offset uint64) {
		offset = uint64(body.Len())
		body.Write(b)
		body.Write(make([]byte, (8-body.Len()%8)%8))
		return offset
	}
	var text []byte
	for _, s := range o.text {
		text = append(text, s.code, s.dst|s.src<<4)
		text = binary.LittleEndian.AppendUint16(text, uint16(s.offset))
		text = binary.LittleEndian.AppendUint32(text, uint32(s.imm))
	}
	textAt := put(text)
	rodataAt := put(o.rodata)
	names := append([]byte("\x00answer\x00"), 0)
	symbols := make([]byte, 48) // the first is empty
	binary.LittleEndian.PutUint32(symbols[24:], 1)
	symbols[28] = byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_NOTYPE)
	symbolsAt, namesAt, relocationsAt := put(symbols), put(names), put(o.relocations)

	var sectionNames bytes.Buffer
	var table []byte
	section := func(name string, kind elf.SectionType, at, size uint64, link, entry uint32) {
		b := make([]byte, 64)
		binary.LittleEndian.PutUint32(b, uint32(sectionNames.Len()))
		binary.LittleEndian.PutUint32(b[4:], uint32(kind))
		binary.LittleEndian.PutUint64(b[16:], at)
		binary.LittleEndian.PutUint64(b[24:], at)
		binary.LittleEndian.PutUint64(b[32:], size)
		binary.LittleEndian.PutUint32(b[40:], link)
		binary.LittleEndian.PutUint64(b[56:], uint64(entry))
		table = append(table, b...)
		sectionNames.WriteString(name + "\x00")
	}
	section("", elf.SHT_NULL, 0, 0, 0, 0)
	section(".text", elf.SHT_PROGBITS, textAt, uint64(len(text)), 0, 0)
	section(".rodata", elf.SHT_PROGBITS, rodataAt, uint64(len(o.rodata)), 0, 0)
	section(".dynsym", elf.SHT_DYNSYM, symbolsAt, uint64(len(symbols)), 4, 24)
	section(".dynstr", elf.SHT_STRTAB, namesAt, uint64(len(names)), 0, 0)
	section(".rel.dyn", elf.SHT_REL, relocationsAt, uint64(len(o.relocations)), 3, 16)
	section(o.extra, elf.SHT_PROGBITS, rodataAt, uint64(len(o.rodata)), 0, 0)
	section(".shstrtab", elf.SHT_STRTAB, uint64(body.Len()), uint64(sectionNames.Len()+len(".shstrtab\x00")), 0, 0)
	put(sectionNames.Bytes())
	tableAt := put(table)

	all := body.Bytes()
	copy(all, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(all[16:], uint16(elf.ET_DYN))
	binary.LittleEndian.PutUint16(all[18:], uint16(o.machine))
	binary.LittleEndian.PutUint32(all[20:], 1)
	binary.LittleEndian.PutUint64(all[24:], headerSize+o.entry)
	binary.LittleEndian.PutUint64(all[40:], tableAt)
	binary.LittleEndian.PutUint32(all[48:], o.flags)
	binary.LittleEndian.PutUint16(all[52:], headerSize)
	binary.LittleEndian.PutUint16(all[58:], 64)
	binary.LittleEndian.PutUint16(all[60:], uint16(len(table)/64))
	binary.LittleEndian.PutUint16(all[62:], uint16(len(table)/64-1))
	return all
}

func relocation(at uint64, kind uint32, symbol uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, at)
	return binary.LittleEndian.AppendUint64(b, symbol<<32|uint64(kind))
}

// example reads a byte of its own data, calls a function of its own, and a system
// function.
func example() object {
	rodataAt := uint64(headerSize + 9*slotSize)
	return object{
		machine: machineBPF,
		text: []slot{
			code(opLoad64, 1, 0, 0, int32(rodataAt)), code(0, 0, 0, 0, 0), // relocated
			code(0x71, 1, 1, 1, 0),           // 'b'
			code(opCall, 0, 1, 0, 3),         // the function below
			code(opCall, 0, 0, 0, -1),        // relocated: answer(r1)
			code(classALU64|add, 0, 0, 0, 1), // + 1
			exit,
			code(classALU64|add, 1, 0, 0, 2),
			exit,
		},
		rodata:      []byte("abc"),
		relocations: append(relocation(headerSize, relocateRelative, 0), relocation(headerSize+4*slotSize, relocateCall, 1)...),
	}
}

func TestLoadLinks(t *testing.T) {
	p, err := Load(example().bytes())
	require.NoError(t, err)
	require.Equal(t, 9, p.Instructions())
	units := uint64(100)
	double := func(_ *VM, args [5]uint64) (uint64, error) { return 2 * args[0], nil }
	got, err := New(p, map[uint32]Syscall{CallNumber("answer"): double}, nil, 0, 0, &units).Run()
	require.NoError(t, err)
	require.EqualValues(t, 2*('b'+2)+1, got)
}

func TestLoadRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*object)
		says   string
	}{
		"another machine":                   {func(o *object) { o.machine = elf.EM_X86_64 }, "is for machine 62"},
		"another version":                   {func(o *object) { o.flags = 3 }, "SBPF version 3"},
		"no text":                           {func(o *object) { o.text = nil }, "no text"},
		"an entry point outside":            {func(o *object) { o.entry = 900 }, "entry point"},
		"an entry point inside of a slot":   {func(o *object) { o.entry = 4 }, "entry point"},
		"a call that leaves":                {func(o *object) { o.text[3].imm = 99 }, "leaves the text"},
		"a relocation outside":              {func(o *object) { o.relocations = relocation(1<<40, relocateRelative, 0) }, "outside"},
		"a relocation at the very end":      {func(o *object) { o.relocations = relocation(^uint64(0), relocateRelative, 0) }, "outside"},
		"an unknown relocation":             {func(o *object) { o.relocations = relocation(headerSize, 77, 0) }, "kind 77"},
		"a symbol that is not there":        {func(o *object) { o.relocations = relocation(headerSize, relocateCall, 9) }, "symbol 9"},
		"a writable section":                {func(o *object) { o.extra = ".data" }, "writable section"},
		"text that the verifier would stop": {func(o *object) { o.text[5].code = 0xff }, "instruction 5"},
	} {
		t.Run(name, func(t *testing.T) {
			o := example()
			test.change(&o)
			_, err := Load(o.bytes())
			require.ErrorContains(t, err, test.says)
		})
	}
	_, err := Load(make([]byte, MaxProgram+1))
	require.ErrorContains(t, err, "at most")
}

// FuzzLoad loads whatever it gets; what loads must run to an end.
func FuzzLoad(f *testing.F) {
	f.Add(example().bytes())
	for _, change := range []func(*object){func(o *object) { o.flags = 1 }, func(o *object) { o.extra = ".eh_frame" }} {
		o := example()
		change(&o)
		f.Add(o.bytes())
	}
	if dir, err := programs.CacheDir(); err == nil {
		set, err := programs.Cached(dir)
		for _, p := range set {
			if err == nil && p.Name == "memo" {
				f.Add(p.ELF)
			}
		}
	}
	f.Fuzz(func(_ *testing.T, raw []byte) {
		p, err := Load(raw)
		if err != nil {
			return
		}
		units := uint64(1000)
		_, _ = New(p, nil, []byte("some input"), 4, 64, &units).Run()
	})
}

func TestCallNumber(t *testing.T) {
	// Numbers that Solana's own documentation and compilers use.
	require.EqualValues(t, 0xb6fc1a11, CallNumber("abort"))
	require.EqualValues(t, 0x207559bd, CallNumber("sol_log_"))
	require.EqualValues(t, 0x71e3cf81, CallNumber("entrypoint"))
}
