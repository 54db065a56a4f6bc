package tron

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"github.com/holiman/uint256"
)

// The energy table of TRON's virtual machine (java-tron
// org.tron.core.vm.EnergyCost and OperationRegistry, release 4.8).
const (
	energyBase        = 2
	energyVeryLow     = 3
	energyLow         = 5
	energyMid         = 8
	energyHigh        = 10
	energyExt         = 20
	energySpecial     = 1
	energyExp         = 10
	energyExpByte     = 10
	energyKeccak      = 30
	energyKeccakWord  = 6
	energyCopyWord    = 3
	energyMemoryWord  = 3
	energyMemoryDiv   = 512
	energySload       = 50
	energySstoreSet   = 20_000
	energySstoreReset = 5_000
	energyTransient   = 100
	energyLog         = 375
	energyLogTopic    = 375
	energyLogByte     = 8
	energyExtCodeHash = 400
	energyCreate      = 32_000
	energyCreateByte  = 200
	energyCall        = 40
	energyCallValue   = 9_000
	energyCallNew     = 25_000
	memoryCeiling     = 3 * 1024 * 1024 // bytes, java-tron MEM_LIMIT
	energyFactorUnit  = 10_000          // dynamic energy factor of 1.0
	lastPrecompile    = 9
)

// meter prices a run of go-ethereum's virtual machine in TRON energy. The
// machine itself runs on practically unlimited gas; the meter sees every opcode
// before it executes and stops the run when the limit is passed.
type meter struct {
	limit, used, penalty int64
	machine              *vm.EVM
	state                *machineState
	failure              *machineFailure
	precompiled          []bool           // one per open call frame
	written              map[slotKey]bool // slots this transaction stored to
}

// machineFailure ends a run and takes all energy up to the limit.
type machineFailure struct {
	result  core.Transaction_ResultContractResult
	message string
}

func (m *meter) hooks() *tracing.Hooks {
	return &tracing.Hooks{OnOpcode: m.opcode, OnEnter: m.enter, OnExit: m.exit}
}

func (m *meter) fail(result core.Transaction_ResultContractResult, message string) {
	if m.failure == nil {
		m.failure = &machineFailure{result, message}
		m.machine.Cancel()
	}
}

// spend charges cost under the dynamic energy factor of the executing contract.
func (m *meter) spend(name string, cost int64, at common.Address) {
	var penalty int64
	if f := m.state.energyFactor(addressOfVM(at)); f > 0 {
		penalty = cost * f / energyFactorUnit
	}
	if total := cost + penalty; m.used+total > m.limit {
		m.fail(core.Transaction_Result_OUT_OF_ENERGY, outOfEnergy(name, m.limit, cost, m.used))
		return
	}
	m.used += cost + penalty
	m.penalty += penalty
}

func outOfEnergy(name string, limit, cost, used int64) string {
	return fmt.Sprintf("Not enough energy for '%s' operation executing: curInvokeEnergyLimit[%d], curOpEnergy[%d], usedEnergy[%d]",
		name, limit, cost, used)
}

func (m *meter) enter(_ int, _ byte, _, to common.Address, _ []byte, _ uint64, _ *big.Int) {
	small := new(big.Int).SetBytes(to[:])
	m.precompiled = append(m.precompiled, small.Sign() > 0 && small.Cmp(big.NewInt(lastPrecompile)) <= 0)
}

func (m *meter) exit(_ int, _ []byte, gasUsed uint64, _ error, _ bool) {
	last := len(m.precompiled) - 1
	if m.precompiled[last] && m.failure == nil {
		m.spend("CALL", int64(gasUsed), common.Address{}) // Ethereum's prices equal TRON's for 1 to 9
	}
	m.precompiled = m.precompiled[:last]
}

// frame is what the price of one opcode depends on.
type frame struct {
	meter   *meter
	op      vm.OpCode
	stack   []uint256.Int
	memory  uint64 // bytes in use
	address common.Address
}

func (m *meter) opcode(_ uint64, op byte, _, _ uint64, scope tracing.OpContext, _ []byte, _ int, _ error) {
	if m.failure != nil {
		return
	}
	f := &frame{m, vm.OpCode(op), scope.StackData(), uint64(len(scope.MemoryData())), scope.Address()}
	cost := f.cost()
	if m.failure == nil {
		m.spend(f.op.String(), cost, f.address)
	}
}

var noWord uint256.Int

// arg returns the i-th stack word from the top.
func (f *frame) arg(i int) *uint256.Int {
	if i >= len(f.stack) {
		return &noWord // the machine will stop with a stack underflow
	}
	return &f.stack[len(f.stack)-1-i]
}

func wordsOf(bytes uint64) int64 { return int64((bytes + 31) / 32) }

// expand prices growing memory to hold size bytes at offset.
func (f *frame) expand(offset, size *uint256.Int) int64 {
	if size.IsZero() {
		return 0
	}
	end, overflow := new(uint256.Int).AddOverflow(offset, size)
	if overflow || !end.IsUint64() || end.Uint64() > memoryCeiling {
		f.meter.fail(core.Transaction_Result_OUT_OF_MEMORY, fmt.Sprintf("Out of Memory when '%s' operation executing", f.op))
		return 0
	}
	price := func(words int64) int64 { return energyMemoryWord*words + words*words/energyMemoryDiv }
	return max(0, price(wordsOf(end.Uint64()))-price(wordsOf(f.memory)))
}

func (f *frame) copyCost(offset, size int) int64 {
	return f.expand(f.arg(offset), f.arg(size)) + energyCopyWord*wordsOf(f.arg(size).Uint64())
}

func (f *frame) cost() int64 {
	switch op := f.op; {
	case op >= vm.PUSH1 && op <= vm.PUSH32, op >= vm.DUP1 && op <= vm.DUP16, op >= vm.SWAP1 && op <= vm.SWAP16:
		return energyVeryLow
	case op >= vm.LOG0 && op <= vm.LOG4:
		memory := f.expand(f.arg(0), f.arg(1))
		return energyLog + energyLogTopic*int64(op-vm.LOG0) + energyLogByte*int64(f.arg(1).Uint64()) + memory
	}
	if tier, ok := fixedEnergy[f.op]; ok {
		return tier
	}
	return f.variableCost()
}

// fixedEnergy lists the opcodes whose price depends on nothing. Opcodes in
// neither this table nor variableCost cost energyBase.
var fixedEnergy = map[vm.OpCode]int64{
	vm.STOP: 0, vm.SELFDESTRUCT: 0,
	vm.ADD: energyVeryLow, vm.SUB: energyVeryLow, vm.NOT: energyVeryLow, vm.LT: energyVeryLow, vm.GT: energyVeryLow,
	vm.SLT: energyVeryLow, vm.SGT: energyVeryLow, vm.EQ: energyVeryLow, vm.ISZERO: energyVeryLow, vm.AND: energyVeryLow,
	vm.OR: energyVeryLow, vm.XOR: energyVeryLow, vm.BYTE: energyVeryLow, vm.CALLDATALOAD: energyVeryLow,
	vm.SHL: energyVeryLow, vm.SHR: energyVeryLow, vm.SAR: energyVeryLow,
	vm.MUL: energyLow, vm.DIV: energyLow, vm.SDIV: energyLow, vm.MOD: energyLow, vm.SMOD: energyLow,
	vm.SIGNEXTEND: energyLow, vm.SELFBALANCE: energyLow,
	vm.ADDMOD: energyMid, vm.MULMOD: energyMid, vm.JUMP: energyMid,
	vm.JUMPI: energyHigh, vm.JUMPDEST: energySpecial,
	vm.SLOAD: energySload, vm.TLOAD: energyTransient, vm.TSTORE: energyTransient,
	vm.BALANCE: energyExt, vm.EXTCODESIZE: energyExt, vm.BLOCKHASH: energyExt, vm.EXTCODEHASH: energyExtCodeHash,
}

var (
	oneByte  = uint256.NewInt(1)
	oneWord  = uint256.NewInt(32)
	memoryOp = energySpecial // what 4.x charges MLOAD, MSTORE and MSTORE8 besides memory
)

func (f *frame) variableCost() int64 {
	switch f.op {
	case vm.RETURN, vm.REVERT:
		return f.expand(f.arg(0), f.arg(1))
	case vm.EXP:
		return energyExp + energyExpByte*int64((f.arg(1).BitLen()+7)/8)
	case vm.KECCAK256:
		memory := f.expand(f.arg(0), f.arg(1))
		return energyKeccak + energyKeccakWord*wordsOf(f.arg(1).Uint64()) + memory
	case vm.MLOAD, vm.MSTORE:
		return int64(memoryOp) + f.expand(f.arg(0), oneWord)
	case vm.MSTORE8:
		return int64(memoryOp) + f.expand(f.arg(0), oneByte)
	case vm.CALLDATACOPY, vm.CODECOPY, vm.RETURNDATACOPY:
		return f.copyCost(0, 2)
	case vm.EXTCODECOPY:
		return energyExt + f.copyCost(1, 3)
	case vm.MCOPY:
		return energyVeryLow + max(f.expand(f.arg(0), f.arg(2)), f.expand(f.arg(1), f.arg(2))) + energyCopyWord*wordsOf(f.arg(2).Uint64())
	case vm.SSTORE:
		return f.storeCost()
	case vm.CREATE:
		return energyCreate + f.expand(f.arg(1), f.arg(2))
	case vm.CREATE2:
		return energyCreate + f.expand(f.arg(1), f.arg(2)) + energyKeccakWord*wordsOf(f.arg(2).Uint64())
	case vm.CALL, vm.CALLCODE:
		return f.callCost() + max(f.expand(f.arg(3), f.arg(4)), f.expand(f.arg(5), f.arg(6)))
	case vm.DELEGATECALL, vm.STATICCALL:
		return energyCall + max(f.expand(f.arg(2), f.arg(3)), f.expand(f.arg(4), f.arg(5)))
	}
	return energyBase
}

// storeCost follows java-tron: only a slot without a row costs the full price.
// A slot cleared in this same transaction still has its row.
func (f *frame) storeCost() int64 {
	k := slotKey{f.address, f.arg(0).Bytes32()}
	if f.meter.written == nil {
		f.meter.written = map[slotKey]bool{}
	}
	hasRow := f.meter.written[k] || f.meter.state.GetState(k.address, k.slot) != (common.Hash{})
	f.meter.written[k] = true
	if !hasRow && !f.arg(1).IsZero() {
		return energySstoreSet
	}
	return energySstoreReset
}

func (f *frame) callCost() int64 {
	if f.arg(2).IsZero() {
		return energyCall
	}
	cost := int64(energyCall + energyCallValue)
	if f.op == vm.CALL && !f.meter.state.Exist(f.arg(1).Bytes20()) {
		cost += energyCallNew
	}
	return cost
}
