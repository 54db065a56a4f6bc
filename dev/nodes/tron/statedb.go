package tron

import (
	"math"

	"github.com/ethereum/go-ethereum/common"
	gethstate "github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/stateless"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"github.com/holiman/uint256"
)

type slotKey struct {
	address common.Address
	slot    common.Hash
}

// machineState shows the chain's state to go-ethereum's virtual machine during
// one transaction. Balances are sun of the TRON accounts; storage, code and
// nonces live in the same journal as everything else, so a reverted call and a
// refused transaction are undone by the same means.
type machineState struct {
	*state
	now       int64
	logs      []*types.Log
	transient map[slotKey]common.Hash
	fresh     map[common.Address]bool // contracts made by this transaction
	dead      map[common.Address]bool
	local     []func() // undoes what is not in the state's journal
	snapshots []snapshot
	overflow  bool // a balance left the range of int64
}

type snapshot struct{ journal, local int }

var _ vm.StateDB = (*machineState)(nil)

func newMachineState(s *state, now int64) *machineState {
	return &machineState{
		state: s, now: now,
		transient: map[slotKey]common.Hash{}, fresh: map[common.Address]bool{}, dead: map[common.Address]bool{},
	}
}

func (m *machineState) key(sp space, a common.Address) stateKey {
	return stateKey{space: sp, address: addressOfVM(a)}
}

func (m *machineState) CreateAccount(a common.Address) {
	if m.account(addressOfVM(a)) == nil {
		m.createAccount(addressOfVM(a), core.AccountType_Normal, m.now)
	}
}

func (m *machineState) CreateContract(a common.Address) {
	m.fresh[a] = true
	m.local = append(m.local, func() { delete(m.fresh, a) })
}

func (m *machineState) balance(a common.Address) int64 { return m.account(addressOfVM(a)).GetBalance() }

func (m *machineState) SubBalance(a common.Address, sun *uint256.Int, _ tracing.BalanceChangeReason) uint256.Int {
	previous := *uint256.NewInt(uint64(m.balance(a)))
	if !sun.IsZero() && (!sun.IsUint64() || !m.debit(addressOfVM(a), int64(sun.Uint64()))) {
		m.overflow = true
	}
	return previous
}

func (m *machineState) AddBalance(a common.Address, sun *uint256.Int, _ tracing.BalanceChangeReason) uint256.Int {
	held := m.balance(a)
	previous := *uint256.NewInt(uint64(held))
	switch {
	case sun.IsZero():
	case !sun.IsUint64() || sun.Uint64() > uint64(math.MaxInt64-held):
		m.overflow = true
	default:
		m.credit(addressOfVM(a), int64(sun.Uint64()), m.now)
	}
	return previous
}

func (m *machineState) GetBalance(a common.Address) *uint256.Int {
	return uint256.NewInt(uint64(m.balance(a)))
}

func (m *machineState) GetNonce(a common.Address) uint64 {
	n, _ := m.get(m.key(spaceNonce, a)).(uint64)
	return n
}

func (m *machineState) SetNonce(a common.Address, n uint64, _ tracing.NonceChangeReason) {
	m.put(m.key(spaceNonce, a), n)
}

func (m *machineState) GetCode(a common.Address) []byte {
	code, _ := m.get(m.key(spaceCode, a)).([]byte)
	return code
}

func (m *machineState) GetCodeSize(a common.Address) int { return len(m.GetCode(a)) }

func (m *machineState) GetCodeHash(a common.Address) common.Hash {
	if !m.Exist(a) {
		return common.Hash{}
	}
	return crypto.Keccak256Hash(m.GetCode(a))
}

func (m *machineState) SetCode(a common.Address, code []byte, _ tracing.CodeChangeReason) []byte {
	previous := m.GetCode(a)
	m.put(m.key(spaceCode, a), code)
	if x := m.account(addressOfVM(a)); x != nil && x.Type != core.AccountType_Contract && len(code) > 0 {
		m.edit(addressOfVM(a), func(x *core.Account) { x.Type = core.AccountType_Contract })
	}
	return previous
}

func (m *machineState) slot(a common.Address, slot common.Hash) stateKey {
	return stateKey{space: spaceSlot, address: addressOfVM(a), word: slot}
}

func (m *machineState) GetState(a common.Address, slot common.Hash) common.Hash {
	v, _ := m.get(m.slot(a, slot)).(common.Hash)
	return v
}

// GetStateAndCommittedState serves Ethereum's storage gas, which TRON does not
// have; the node meters energy on its own, so the current value serves as both.
func (m *machineState) GetStateAndCommittedState(a common.Address, slot common.Hash) (common.Hash, common.Hash) {
	v := m.GetState(a, slot)
	return v, v
}

func (m *machineState) SetState(a common.Address, slot, value common.Hash) common.Hash {
	previous := m.GetState(a, slot)
	if previous == value {
		return previous
	}
	var v any
	if value != (common.Hash{}) {
		v = value
	}
	m.put(m.slot(a, slot), v)
	return previous
}

func (m *machineState) GetTransientState(a common.Address, slot common.Hash) common.Hash {
	return m.transient[slotKey{a, slot}]
}

func (m *machineState) SetTransientState(a common.Address, slot, value common.Hash) {
	k := slotKey{a, slot}
	previous := m.transient[k]
	m.transient[k] = value
	m.local = append(m.local, func() { m.transient[k] = previous })
}

func (m *machineState) SelfDestruct(a common.Address) {
	if !m.dead[a] {
		m.dead[a] = true
		m.local = append(m.local, func() { delete(m.dead, a) })
	}
}

func (m *machineState) HasSelfDestructed(a common.Address) bool { return m.dead[a] }
func (m *machineState) Exist(a common.Address) bool             { return m.account(addressOfVM(a)) != nil }
func (m *machineState) Touch(common.Address)                    {}
func (m *machineState) IsNewContract(a common.Address) bool     { return m.fresh[a] }

func (m *machineState) Empty(a common.Address) bool {
	return m.balance(a) == 0 && m.GetNonce(a) == 0 && m.GetCodeSize(a) == 0
}

func (m *machineState) Snapshot() int {
	m.snapshots = append(m.snapshots, snapshot{m.mark(), len(m.local)})
	return len(m.snapshots) - 1
}

func (m *machineState) RevertToSnapshot(id int) {
	to := m.snapshots[id]
	m.snapshots = m.snapshots[:id]
	m.revert(to.journal)
	for i := len(m.local) - 1; i >= to.local; i-- {
		m.local[i]()
	}
	m.local = m.local[:to.local]
}

func (m *machineState) AddLog(l *types.Log) {
	n := len(m.logs)
	m.logs = append(m.logs, l)
	m.local = append(m.local, func() { m.logs = m.logs[:n] })
}

// finish carries out what the virtual machine leaves for the end of a
// transaction: contracts that contracts made become known, and those that
// destroyed themselves lose their code.
func (m *machineState) finish(called Address) {
	for a := range m.fresh {
		if at := addressOfVM(a); at != called {
			m.registerContract(at, &core.SmartContract{OriginAddress: called[:], ConsumeUserResourcePercent: 100})
		}
	}
	for a := range m.dead {
		m.put(m.key(spaceCode, a), nil)
		m.put(m.key(spaceContract, a), nil)
	}
}

// The rest of the interface is Ethereum's gas accounting, which does not exist
// on TRON: refunds, warm and cold access, witnesses and pre-images.

func (m *machineState) AddRefund(uint64)                        {}
func (m *machineState) SubRefund(uint64)                        {}
func (m *machineState) GetRefund() uint64                       { return 0 }
func (m *machineState) AddressInAccessList(common.Address) bool { return true }
func (m *machineState) SlotInAccessList(common.Address, common.Hash) (bool, bool) {
	return true, true
}
func (m *machineState) AddAddressToAccessList(common.Address)           {}
func (m *machineState) AddSlotToAccessList(common.Address, common.Hash) {}
func (m *machineState) Prepare(params.Rules, common.Address, common.Address, *common.Address, []common.Address, types.AccessList) {
}
func (m *machineState) AddPreimage(common.Hash, []byte)       {}
func (m *machineState) Witness() *stateless.Witness           { return nil }
func (m *machineState) AccessEvents() *gethstate.AccessEvents { return nil }
func (m *machineState) Finalise(params.Rules) *bal.ConstructionBlockAccessList {
	return nil
}
func (m *machineState) SetTxContext(common.Hash, int, uint32) {}
