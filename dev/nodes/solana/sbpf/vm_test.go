package sbpf

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// code is one eight-byte slot in the making.
func code(op, dst, src byte, offset int16, imm int32) slot {
	return slot{code: op, dst: dst, src: src, offset: offset, imm: imm}
}

var exit = code(opExit, 0, 0, 0, 0)

// run verifies and runs a text with some input and units.
func run(t testing.TB, units uint64, input []byte, text ...slot) (uint64, uint64, error) {
	t.Helper()
	require.NoError(t, verify(text))
	p := &Program{text: text, textStart: ProgramStart, functions: map[uint32]int{}, readOnly: []byte("read-only")}
	for i := range text {
		p.functions[functionNumber(i)] = i
	}
	vm := New(p, nil, input, 0, 1024, &units)
	r0, err := vm.Run()
	return r0, units, err
}

// load64 puts a 64-bit number into a register.
func load64(dst byte, v uint64) []slot {
	return []slot{code(opLoad64, dst, 0, 0, int32(uint32(v))), code(0, 0, 0, 0, int32(uint32(v>>32)))}
}

func TestArithmetic(t *testing.T) {
	const minus = math.MaxUint64 // -1
	for name, test := range map[string]struct {
		op         byte
		a, b, want uint64
	}{
		"add32 extends the sign":   {classALU32 | add, 0x7fff_ffff, 1, 0xffff_ffff_8000_0000},
		"sub32 extends the sign":   {classALU32 | sub, 0, 1, minus},
		"mul32 cuts":               {classALU32 | mul, 0x1_0000_0003, 2, 6},
		"div32":                    {classALU32 | div, 0xffff_ffff_0000_0007, 2, 3},
		"mod32":                    {classALU32 | mod, 7, 4, 3},
		"or32 does not extend":     {classALU32 | or, 0x8000_0000, 1, 0x8000_0001},
		"mov32 does not extend":    {classALU32 | mov, 0, minus, 0xffff_ffff},
		"neg32":                    {classALU32 | neg, 1, 0, 0xffff_ffff},
		"lsh32 counts to 31":       {classALU32 | lsh, 1, 33, 2},
		"arsh32":                   {classALU32 | ash, 0x8000_0000, 31, 0xffff_ffff},
		"add64 wraps":              {classALU64 | add, minus, 2, 1},
		"sub64 wraps":              {classALU64 | sub, 0, 1, minus},
		"mul64 wraps":              {classALU64 | mul, 1 << 63, 2, 0},
		"div64 is unsigned":        {classALU64 | div, minus, 2, math.MaxInt64},
		"mod64":                    {classALU64 | mod, minus, 10, 5},
		"and64":                    {classALU64 | and, 0b1100, 0b1010, 0b1000},
		"xor64":                    {classALU64 | xor, 0b1100, 0b1010, 0b0110},
		"rsh64 counts to 63":       {classALU64 | rsh, 4, 65, 2},
		"arsh64 keeps the sign":    {classALU64 | ash, 1 << 63, 63, minus},
		"neg64":                    {classALU64 | neg, 1, 0, minus},
		"lsh64":                    {classALU64 | lsh, 1, 63, 1 << 63},
		"or64 of the whole number": {classALU64 | or, 1 << 63, 1, 1<<63 | 1},
	} {
		t.Run(name, func(t *testing.T) {
			op := test.op | fromRegister
			if test.op&operationMask == neg {
				op = test.op
			}
			text := append(load64(0, test.a), load64(1, test.b)...)
			got, _, err := run(t, 100, nil, append(text, code(op, 0, 1, 0, 0), exit)...)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestImmediatesExtendTheirSign(t *testing.T) {
	got, _, err := run(t, 10, nil, code(classALU64|mov, 0, 0, 0, -1), exit)
	require.NoError(t, err)
	require.Equal(t, uint64(math.MaxUint64), got)
}

func TestByteOrder(t *testing.T) {
	for name, test := range map[string]struct {
		op    byte
		width int32
		want  uint64
	}{
		"big 16":    {classALU32 | end | fromRegister, 16, 0x0807},
		"big 32":    {classALU32 | end | fromRegister, 32, 0x08070605},
		"big 64":    {classALU32 | end | fromRegister, 64, 0x0807060504030201},
		"little 16": {classALU32 | end, 16, 0x0708},
		"little 32": {classALU32 | end, 32, 0x05060708},
		"little 64": {classALU32 | end, 64, 0x0102030405060708},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := run(t, 10, nil, append(load64(0, 0x0102030405060708), code(test.op, 0, 0, 0, test.width), exit)...)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestJumps(t *testing.T) {
	const minus = math.MaxUint64
	for name, test := range map[string]struct {
		op    byte
		a, b  uint64
		taken bool
	}{
		"equal":                      {0x10, 5, 5, true},
		"not equal":                  {0x50, 5, 5, false},
		"greater is unsigned":        {0x20, minus, 1, true},
		"greater or equal":           {0x30, 4, 5, false},
		"bits in common":             {0x40, 6, 2, true},
		"greater, signed":            {0x60, minus, 1, false},
		"greater or equal, signed":   {0x70, 1, minus, true},
		"less is unsigned":           {0xa0, 1, minus, true},
		"less or equal":              {0xb0, 5, 5, true},
		"less, signed":               {0xc0, minus, 1, true},
		"less or equal, signed, not": {0xd0, 1, minus, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := append(load64(1, test.a), load64(2, test.b)...)
			text = append(text, code(classJump|test.op|fromRegister, 1, 2, 1, 0), exit, code(classALU64|mov, 0, 0, 0, 1), exit)
			got, _, err := run(t, 100, nil, text...)
			require.NoError(t, err)
			require.Equal(t, test.taken, got == 1)
		})
	}
}

func TestMemory(t *testing.T) {
	const stack = framePoint
	for name, test := range map[string]struct {
		text  []slot
		fault string
		want  uint64
	}{
		"the stack keeps":          {text: []slot{code(0x7a, stack, 0, -8, 7), code(0x79, 0, stack, -8, 0)}, want: 7},
		"a byte of it":             {text: []slot{code(0x7a, stack, 0, -8, 0x1234), code(0x71, 0, stack, -8, 0)}, want: 0x34},
		"input is read":            {text: []slot{code(0x71, 0, 1, 2, 0)}, want: 'c'},
		"input is written":         {text: []slot{code(0x72, 1, 0, 0, 9), code(0x71, 0, 1, 0, 0)}, want: 9},
		"beyond the input":         {text: []slot{code(0x79, 0, 1, 0, 0)}, fault: "Access violation in input section at address 0x400000000 of size 8"},
		"before the input":         {text: []slot{code(0x71, 0, 1, -1, 0)}, fault: "Access violation in heap section at address 0x3ffffffff of size 1"},
		"the gap after the frame":  {text: []slot{code(0x72, stack, 0, 0, 9)}, fault: "Access violation in stack frame 1 at address 0x200001000 of size 1"},
		"deep in the gap":          {text: []slot{code(0x72, stack, 0, 24, 9)}, fault: "Access violation in stack frame 1 at address 0x200001018 of size 1"},
		"across the frame's end":   {text: []slot{code(0x79, 0, stack, -4, 0)}, fault: "Access violation in stack frame 0 at address 0x200000ffc of size 8"},
		"the program is read":      {text: append(load64(3, ProgramStart), code(0x71, 0, 3, 0, 0)), want: 'r'},
		"the program is read-only": {text: append(load64(3, ProgramStart), code(0x72, 3, 0, 0, 1)), fault: "Access violation in program section at address 0x100000000 of size 1"},
		"nowhere":                  {text: []slot{code(0x71, 0, 0, 0, 0)}, fault: "Access violation in unknown section at address 0x0 of size 1"},
		"the heap's end":           {text: append(load64(3, HeapStart+1017), code(0x79, 0, 3, 0, 0)), fault: "Access violation in heap section at address 0x3000003f9 of size 8"},
		"an address that wraps":    {text: append(load64(3, math.MaxUint64), code(0x79, 0, 3, 0, 0)), fault: "Access violation in unknown section at address 0xffffffffffffffff of size 8"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := run(t, 100, []byte("abc"), append(test.text, exit)...)
			if test.fault != "" {
				require.EqualError(t, err, test.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestCallsKeepRegistersAndFrames(t *testing.T) {
	text := []slot{
		code(classALU64|mov, 6, 0, 0, 1), // kept by the caller's frame
		code(0x7a, framePoint, 0, -8, 5),
		code(opCall, 0, 0, 0, int32(functionNumber(6))),
		code(0x79, 0, framePoint, -8, 0),
		code(classALU64|add|fromRegister, 0, 6, 0, 0),
		exit,
		code(classALU64|mov, 6, 0, 0, 100),
		code(0x7a, framePoint, 0, -8, 200), // another frame
		exit,
	}
	got, left, err := run(t, 100, nil, text...)
	require.NoError(t, err)
	require.EqualValues(t, 6, got)
	require.EqualValues(t, 100-9, left)
}

func TestFaults(t *testing.T) {
	self := code(opCall, 0, 0, 0, int32(functionNumber(0)))
	for name, test := range map[string]struct {
		text []slot
		want error
	}{
		"division by zero":       {[]slot{code(classALU64|div|fromRegister, 0, 5, 0, 0), exit}, errDivideByZero},
		"division by zero in 32": {[]slot{code(classALU32|mod|fromRegister, 0, 5, 0, 0), exit}, errDivideByZero},
		"out of units":           {[]slot{code(opJump, 0, 0, -1, 0)}, errExceeded},
		"calls too deep":         {[]slot{self, exit}, errCallDepth},
		"unknown function":       {[]slot{code(opCall, 0, 0, 0, 1), exit}, errUnsupported},
		"no exit":                {[]slot{code(classALU64|mov, 0, 0, 0, 0)}, errOverrun},
		"call to nowhere":        {[]slot{code(opCallReg, 0, 0, 0, 1), exit}, errCallOutside},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, 1000, []byte("input"), test.text...)
			require.ErrorIs(t, err, test.want)
		})
	}
}

func TestUnitsAreCountedExactly(t *testing.T) {
	text := []slot{code(classALU64|mov, 0, 0, 0, 0), exit}
	_, left, err := run(t, 2, nil, text...)
	require.NoError(t, err)
	require.Zero(t, left)
	_, _, err = run(t, 1, nil, text...)
	require.ErrorIs(t, err, errExceeded)
}

func TestSystemFunctions(t *testing.T) {
	units := uint64(50)
	text := []slot{code(opCall, 0, 0, 0, int32(CallNumber("answer"))), exit}
	p := &Program{text: text, functions: map[uint32]int{}}
	refusal := errors.New("no")
	answer := func(vm *VM, args [5]uint64) (uint64, error) {
		require.EqualValues(t, InputStart, args[0])
		if vm.Host == nil {
			return 0, refusal
		}
		return 42, vm.Consume(40)
	}
	vm := New(p, map[uint32]Syscall{CallNumber("answer"): answer}, nil, 0, 0, &units)
	_, err := vm.Run()
	require.ErrorIs(t, err, refusal)
	vm = New(p, map[uint32]Syscall{CallNumber("answer"): answer}, nil, 0, 0, &units)
	vm.Host = t
	got, err := vm.Run()
	require.NoError(t, err)
	require.EqualValues(t, 42, got)
	require.EqualValues(t, 50-1-40-2, vm.Units())
	require.ErrorIs(t, vm.Consume(100), ErrBudget)
	require.Zero(t, vm.Units())
}

func TestVerifierRefuses(t *testing.T) {
	for name, text := range map[string][]slot{
		"an unknown code":             {code(0xff, 0, 0, 0, 0), exit},
		"signed division":             {code(classALU64|0xe0, 0, 0, 0, 1), exit},
		"half a load":                 {code(opLoad64, 0, 0, 0, 0)},
		"a load of other halves":      {code(opLoad64, 0, 0, 0, 0), exit},
		"division by zero":            {code(classALU64|div, 0, 0, 0, 0), exit},
		"a shift too far":             {code(classALU32|lsh, 0, 0, 0, 32), exit},
		"a negative shift":            {code(classALU64|ash, 0, 0, 0, -1), exit},
		"byte order of 8 bits":        {code(classALU32|end, 0, 0, 0, 8), exit},
		"writing the frame's pointer": {code(classALU64|mov, framePoint, 0, 0, 0), exit},
		"register 11":                 {code(classALU64|mov|fromRegister, 0, 11, 0, 0), exit},
		"a jump before the text":      {code(opJump, 0, 0, -2, 0), exit},
		"a jump behind the text":      {code(opJump, 0, 0, 1, 0), exit},
		"a jump into a load":          {code(opJump, 0, 0, 1, 0), code(opLoad64, 0, 0, 0, 0), code(0, 0, 0, 0, 0), exit},
		"a call through register 11":  {code(opCallReg, 0, 0, 0, 11), exit},
		"a jump of 32 bits":           {code(0x16, 0, 0, 0, 0), exit},
		"a load of the packet":        {code(0x20, 0, 0, 0, 0), exit},
	} {
		t.Run(name, func(t *testing.T) { require.Error(t, verify(text)) })
	}
}

// FuzzRun runs whatever the verifier lets through: it must end, within its units,
// and may not panic.
func FuzzRun(f *testing.F) {
	f.Add([]byte{0xb7, 0, 0, 0, 1, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0x79, 0x10, 0, 0, 0, 0, 0, 0, 0x7b, 0x0a, 0xf8, 0xff, 0, 0, 0, 0, 0x8d, 0, 0, 0, 1, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		text := decodeText(raw)
		if verify(text) != nil {
			return
		}
		p := &Program{text: text, textStart: ProgramStart, readOnly: raw, functions: map[uint32]int{}}
		for i := range text {
			p.functions[uint32(i)] = i
		}
		units := uint64(10_000)
		_, _ = New(p, nil, []byte("some input"), 4, 64, &units).Run()
		require.LessOrEqual(t, units, uint64(10_000))
	})
}
