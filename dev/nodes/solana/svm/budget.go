package svm

import (
	"math"
	"math/bits"

	"github.com/gagliardetto/solana-go"
)

// Limits and defaults of the compute budget.
const (
	maxUnits             = 1_400_000
	defaultUnits         = 200_000 // for each instruction
	defaultBuiltinUnits  = 3_000   // for each instruction of a built-in program, SIMD-0170
	heapStep             = 1 << 10
	defaultHeap          = 32 << 10
	maxHeap              = 256 << 10
	maxLoadedAccounts    = 64 << 20
	microLamportsPerUnit = 1_000_000 // the price is in millionths of a lamport
)

// Instructions of the ComputeBudget program.
const (
	requestHeapFrame               = 1
	setComputeUnitLimit            = 2
	setComputeUnitPrice            = 3
	setLoadedAccountsDataSizeLimit = 4
)

// budget is what a transaction may use and what it bids.
type budget struct {
	units  uint64
	price  uint64 // micro-lamports for each unit
	heap   int    // bytes
	loaded uint64 // bytes of accounts
}

// budgetOf reads the ComputeBudget instructions of a message, of which each kind
// may stand once.
func budgetOf(t *Transaction) (budget, *TransactionError) {
	b := budget{heap: defaultHeap, loaded: maxLoadedAccounts}
	var byDefault uint64
	seen := map[byte]int{} // the instruction's place by its kind
	for i, instruction := range t.Message.Instructions {
		program := t.Message.AccountKeys[instruction.ProgramIDIndex]
		if program == solana.SystemProgramID || program == computeBudgetProgram {
			byDefault += defaultBuiltinUnits
		} else {
			byDefault += defaultUnits
		}
		if program != computeBudgetProgram {
			continue
		}
		data := []byte(instruction.Data)
		if !b.read(data) {
			return b, failedAt(i, errBadData())
		}
		if _, twice := seen[data[0]]; twice {
			return b, &TransactionError{Kind: kindDuplicateInstruction, Index: i}
		}
		seen[data[0]] = i
	}
	if i, asked := seen[requestHeapFrame]; asked && (b.heap < defaultHeap || b.heap > maxHeap || b.heap%heapStep != 0) {
		return b, failedAt(i, errBadData())
	}
	if _, asked := seen[setComputeUnitLimit]; !asked {
		b.units = byDefault
	}
	b.units = min(b.units, maxUnits)
	if b.loaded == 0 {
		return b, &TransactionError{Kind: "InvalidLoadedAccountsDataSizeLimit"}
	}
	b.loaded = min(b.loaded, maxLoadedAccounts)
	return b, nil
}

// read takes one ComputeBudget instruction, and reports whether it is one.
func (b *budget) read(data []byte) bool {
	switch {
	case len(data) >= 9 && data[0] == setComputeUnitPrice:
		b.price = le.Uint64(data[1:])
	case len(data) < 5:
		return false
	case data[0] == requestHeapFrame:
		b.heap = int(le.Uint32(data[1:]))
	case data[0] == setComputeUnitLimit:
		b.units = uint64(le.Uint32(data[1:]))
	case data[0] == setLoadedAccountsDataSizeLimit:
		b.loaded = uint64(le.Uint32(data[1:]))
	default:
		return false
	}
	return true
}

// fee is what the payer pays: for the signatures, and the price of all units that
// it asked for, rounded up. Sums beyond 64 bits are cut off there.
func (b budget) fee(signatures int) uint64 {
	base := lamportsPerSignature * uint64(signatures)
	hi, lo := bits.Mul64(b.price, b.units)
	if hi >= microLamportsPerUnit {
		return math.MaxUint64
	}
	priority, rest := bits.Div64(hi, lo, microLamportsPerUnit)
	if rest != 0 && priority != math.MaxUint64 {
		priority++
	}
	total, carry := bits.Add64(base, priority, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return total
}

// Fee is what a transaction costs its payer in lamports: 5,000 for each signature
// and the priority fee. It fails if the ComputeBudget instructions are invalid.
func Fee(t *Transaction) (uint64, *TransactionError) {
	b, err := budgetOf(t)
	if err != nil {
		return 0, err
	}
	return b.fee(len(t.Signatures)), nil
}

// heapUnits is what a heap larger than the default costs at every run of a program.
func heapUnits(heap int) uint64 {
	const page, unitsPerPage = 32 << 10, 8
	pages := uint64((heap + page - 1) / page)
	return (pages - 1) * unitsPerPage
}
