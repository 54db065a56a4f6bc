package tron

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"github.com/holiman/uint256"
	"google.golang.org/protobuf/proto"
)

const (
	// unmeteredGas keeps Ethereum's own gas from ever ending a run.
	unmeteredGas = 1 << 50
	// constantEnergyLimit is java-tron's vm.maxEnergyLimitForConstant.
	constantEnergyLimit = 100_000_000
	revertMessage       = "REVERT opcode executed"
)

// blockContext is what a transaction sees of the block it is in. A pending
// transaction sees the block after the head, at the head's time.
type blockContext struct {
	number  int64
	time    int64 // milliseconds
	witness Address
	chainID uint64
	blockID func(number uint64) common.Hash
}

// call is one run of the virtual machine.
type call struct {
	caller   Address
	contract Address
	initCode []byte // set when the call creates the contract
	input    []byte
	value    int64 // sun
	limit    int64 // energy
	forced   core.Transaction_ResultContractResult
}

// callResult is a receipt in the making.
type callResult struct {
	result  core.Transaction_ResultContractResult
	message string
	output  []byte
	logs    []*core.TransactionInfo_Log
	used    int64
	penalty int64
}

// cancun has every Ethereum fork up to Cancun, which is what TRON's machine
// follows, and nothing after it.
func cancun(chainID uint64) *params.ChainConfig {
	c := *params.MergedTestChainConfig
	genesis := uint64(0)
	c.ChainID = new(big.Int).SetUint64(chainID)
	c.ShanghaiTime, c.CancunTime = &genesis, &genesis
	c.PragueTime, c.OsakaTime, c.AmsterdamTime, c.UBTTime = nil, nil, nil, nil
	c.BPO1Time, c.BPO2Time, c.BPO3Time, c.BPO4Time, c.BPO5Time = nil, nil, nil, nil, nil
	return &c
}

// execute runs a call on st and leaves its effects there only when it succeeds.
// The energy it reports is to be paid in any case.
func execute(st *state, block *blockContext, c *call) *callResult {
	mark := st.mark()
	db := newMachineState(st, block.time)
	m := &meter{limit: c.limit, state: db}
	machine := newMachine(block, db, m)
	defer machine.Release()
	machine.SetTxContext(vm.TxContext{Origin: c.caller.vm(), GasPrice: new(uint256.Int)})

	to := c.contract.vm()
	if c.initCode != nil {
		db.createAccount(c.contract, core.AccountType_Contract, block.time)
		db.CreateContract(to)
		db.SetNonce(to, 1, tracing.NonceChangeNewContract)
		db.SetCode(to, c.initCode, tracing.CodeChangeContractCreation)
	}
	output, _, err := machine.Call(c.caller.vm(), to, c.input, vm.NewGasBudget(unmeteredGas, 0), uint256.NewInt(uint64(c.value)))
	if c.initCode != nil && err == nil && m.failure == nil {
		m.spend("SAVE_CODE", energyCreateByte*int64(len(output)), common.Address{})
		db.SetCode(to, bytes.Clone(output), tracing.CodeChangeContractCreation)
	}
	if db.overflow {
		m.fail(core.Transaction_Result_TRANSFER_FAILED, "transfer trx failed: balance out of range")
	}
	r := m.outcome(c, output, err)
	if r.result != core.Transaction_Result_SUCCESS {
		st.revert(mark)
		return r
	}
	db.finish(c.contract)
	r.logs = receiptLogs(db)
	return r
}

func newMachine(block *blockContext, db *machineState, m *meter) *vm.EVM {
	context := vm.BlockContext{
		CanTransfer: func(_ vm.StateDB, from common.Address, sun *uint256.Int) bool {
			return db.GetBalance(from).Cmp(sun) >= 0
		},
		Transfer: func(_ vm.StateDB, from, to common.Address, sun *uint256.Int, _ *params.Rules) {
			if !sun.IsZero() {
				db.SubBalance(from, sun, tracing.BalanceChangeTransfer)
				db.AddBalance(to, sun, tracing.BalanceChangeTransfer)
			}
		},
		GetHash: block.blockID, Coinbase: block.witness.vm(),
		BlockNumber: big.NewInt(block.number), Time: uint64(block.time / 1000),
		Difficulty: new(big.Int), BaseFee: big.NewInt(energyFee), BlobBaseFee: new(big.Int), Random: &common.Hash{},
	}
	m.machine = vm.NewEVM(context, db, cancun(block.chainID), vm.Config{Tracer: m.hooks(), NoBaseFee: true})
	return m.machine
}

// outcome maps the end of a run to java-tron's contract results. Everything but
// success and REVERT takes all energy up to the limit.
func (m *meter) outcome(c *call, output []byte, err error) *callResult {
	r := &callResult{result: core.Transaction_Result_SUCCESS, output: bytes.Clone(output), used: m.used, penalty: m.penalty}
	all := func(result core.Transaction_ResultContractResult, message string) *callResult {
		r.result, r.message, r.used, r.output = result, message, m.limit, nil
		return r
	}
	switch {
	case m.failure != nil:
		return all(m.failure.result, m.failure.message)
	case c.forced == core.Transaction_Result_OUT_OF_ENERGY:
		return all(c.forced, outOfEnergy("SSTORE", m.limit, energySstoreSet, m.used))
	case c.forced == core.Transaction_Result_REVERT:
		r.result, r.message, r.output = c.forced, revertMessage, nil
	case errors.Is(err, vm.ErrExecutionReverted):
		r.result, r.message = core.Transaction_Result_REVERT, revertMessage
	case err != nil:
		return all(machineError(err))
	}
	return r
}

func machineError(err error) (core.Transaction_ResultContractResult, string) {
	var underflow *vm.ErrStackUnderflow
	var overflow *vm.ErrStackOverflow
	var opcode *vm.ErrInvalidOpCode
	switch {
	case errors.As(err, &opcode):
		return core.Transaction_Result_ILLEGAL_OPERATION, "Invalid operation code: opCode[fe];"
	case errors.As(err, &underflow):
		return core.Transaction_Result_STACK_TOO_SMALL, err.Error()
	case errors.As(err, &overflow):
		return core.Transaction_Result_STACK_TOO_LARGE, err.Error()
	case errors.Is(err, vm.ErrInvalidJump):
		return core.Transaction_Result_BAD_JUMP_DESTINATION, err.Error()
	case errors.Is(err, vm.ErrInvalidCode):
		return core.Transaction_Result_INVALID_CODE, err.Error()
	case errors.Is(err, vm.ErrInsufficientBalance):
		return core.Transaction_Result_TRANSFER_FAILED, "transfer trx failed: Validate InternalTransfer error, balance is not sufficient."
	}
	return core.Transaction_Result_UNKNOWN, err.Error()
}

// receiptLogs writes a log's address as java-tron does: 20 bytes, without 0x41.
func receiptLogs(db *machineState) []*core.TransactionInfo_Log {
	var out []*core.TransactionInfo_Log
	for _, l := range db.logs {
		log := &core.TransactionInfo_Log{Address: bytes.Clone(l.Address[:]), Data: bytes.Clone(l.Data)}
		for _, topic := range l.Topics {
			log.Topics = append(log.Topics, bytes.Clone(topic[:]))
		}
		out = append(out, log)
	}
	return out
}

// registerContract records what GetContract answers.
func (s *state) registerContract(a Address, deployed *core.SmartContract) {
	c := proto.Clone(deployed).(*core.SmartContract)
	code, _ := s.get(stateKey{space: spaceCode, address: a}).([]byte)
	c.ContractAddress, c.Version, c.CodeHash = bytes.Clone(a[:]), 1, crypto.Keccak256(code)
	s.put(stateKey{space: spaceContract, address: a}, c)
}

// createAt runs init code at a fixed address without price or limit: how the
// genesis block gets its tokens.
func createAt(st *state, block *blockContext, owner, at Address, contract *core.SmartContract) error {
	r := execute(st, block, &call{caller: owner, contract: at, initCode: contract.Bytecode, limit: constantEnergyLimit})
	if r.result != core.Transaction_Result_SUCCESS {
		return fmt.Errorf("genesis contract %s: %s: %s", contract.Name, r.result, r.message)
	}
	st.registerContract(at, contract)
	return nil
}
