package sbpf

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"

	"kivuko/dev/nodes/solana/programs"
	"kivuko/dev/nodes/solana/sbpf/sbpftest"
)

// example reads a byte of its own data, calls a function of its own, and a system
// function.
func example() sbpftest.Object {
	const readOnlyAt = sbpftest.TextStart + 9*slotSize
	return sbpftest.Object{
		Machine: machineBPF,
		Calls:   "answer",
		Text: []sbpftest.Instruction{
			{Op: opLoad64, Dst: 1, Imm: readOnlyAt},
			{},                                    // relocated
			{Op: 0x71, Dst: 1, Src: 1, Offset: 1}, // 'b'
			{Op: opCall, Src: 1, Imm: 3},          // the function below
			{Op: opCall, Imm: -1},                 // relocated: answer(r1)
			{Op: classALU64 | add, Imm: 1},
			{Op: opExit},
			{Op: classALU64 | add, Dst: 1, Imm: 2},
			{Op: opExit},
		},
		ReadOnly: []byte("abc"),
		Relocations: append(sbpftest.Relocation(sbpftest.TextStart, relocateRelative, 0),
			sbpftest.Relocation(sbpftest.TextStart+4*slotSize, relocateCall, 1)...),
	}
}

func TestLoadLinks(t *testing.T) {
	p, err := Load(example().Bytes())
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
		change func(*sbpftest.Object)
		says   string
	}{
		"another machine":                   {func(o *sbpftest.Object) { o.Machine = elf.EM_X86_64 }, "is for machine 62"},
		"another version":                   {func(o *sbpftest.Object) { o.Flags = 3 }, "SBPF version 3"},
		"no text":                           {func(o *sbpftest.Object) { o.Text = nil }, "no text"},
		"an entry point outside":            {func(o *sbpftest.Object) { o.Entry = 900 }, "entry point"},
		"an entry point inside of a slot":   {func(o *sbpftest.Object) { o.Entry = 4 }, "entry point"},
		"a call that leaves":                {func(o *sbpftest.Object) { o.Text[3].Imm = 99 }, "leaves the text"},
		"a relocation outside":              {func(o *sbpftest.Object) { o.Relocations = sbpftest.Relocation(1<<40, relocateRelative, 0) }, "outside"},
		"a relocation at the very end":      {func(o *sbpftest.Object) { o.Relocations = sbpftest.Relocation(^uint64(0), relocateRelative, 0) }, "outside"},
		"an unknown relocation":             {func(o *sbpftest.Object) { o.Relocations = sbpftest.Relocation(sbpftest.TextStart, 77, 0) }, "kind 77"},
		"a symbol that is not there":        {func(o *sbpftest.Object) { o.Relocations = sbpftest.Relocation(sbpftest.TextStart, relocateCall, 9) }, "symbol 9"},
		"a writable section":                {func(o *sbpftest.Object) { o.Section = ".data" }, "writable section"},
		"text that the verifier would stop": {func(o *sbpftest.Object) { o.Text[5].Op = 0xff }, "instruction 5"},
	} {
		t.Run(name, func(t *testing.T) {
			o := example()
			test.change(&o)
			_, err := Load(o.Bytes())
			require.ErrorContains(t, err, test.says)
		})
	}
	_, err := Load(make([]byte, MaxProgram+1))
	require.ErrorContains(t, err, "at most")
}

// FuzzLoad loads whatever it gets; what loads must run to an end.
func FuzzLoad(f *testing.F) {
	f.Add(example().Bytes())
	for _, change := range []func(*sbpftest.Object){func(o *sbpftest.Object) { o.Flags = 1 }, func(o *sbpftest.Object) { o.Section = ".eh_frame" }} {
		o := example()
		change(&o)
		f.Add(o.Bytes())
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
