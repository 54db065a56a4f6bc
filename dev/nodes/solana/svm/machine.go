package svm

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/programs"
	"kivuko/dev/nodes/solana/sbpf"
)

var le = binary.LittleEndian

// Machine executes transactions. It holds no state of the chain and may be used by
// several goroutines.
type Machine struct {
	programs map[solana.PublicKey]*sbpf.Program
	syscalls map[uint32]sbpf.Syscall
	genesis  map[solana.PublicKey]Account
}

// New makes a machine with the given programs beside System and ComputeBudget. It
// fails on byte code that it can't run.
func New(set programs.Set) (*Machine, error) {
	m := &Machine{
		programs: map[solana.PublicKey]*sbpf.Program{},
		syscalls: syscalls(),
		genesis: map[solana.PublicKey]Account{
			solana.SystemProgramID: builtin("system_program"),
			computeBudgetProgram:   builtin("compute_budget_program"),
		},
	}
	for _, p := range set {
		loaded, err := sbpf.Load(p.ELF)
		if err != nil {
			return nil, fmt.Errorf("load the program %s: %w", p.Name, err)
		}
		m.programs[p.Address] = loaded
		if err := m.deploy(p); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func builtin(name string) Account {
	return Account{Lamports: 1, Data: []byte(name), Owner: nativeLoader, Executable: true, RentEpoch: math.MaxUint64}
}

// deploy makes a program's accounts. One that can be upgraded keeps its byte code
// in an account of its own, which the program's account names.
func (m *Machine) deploy(p programs.Program) error {
	account := Account{Owner: solana.BPFLoaderProgramID, Data: p.ELF, Executable: true, RentEpoch: math.MaxUint64}
	if p.Upgradeable {
		holder, _, err := solana.FindProgramAddress([][]byte{p.Address[:]}, solana.BPFLoaderUpgradeableProgramID)
		if err != nil {
			return fmt.Errorf("find where the program %s keeps its code: %w", p.Name, err)
		}
		const kindProgram, kindData, header = 2, 3, 45
		account.Owner = solana.BPFLoaderUpgradeableProgramID
		account.Data = append(le.AppendUint32(nil, kindProgram), holder[:]...)
		code := make([]byte, header, header+len(p.ELF)) // deployed in slot 0, without an authority
		le.PutUint32(code, kindData)
		code = append(code, p.ELF...)
		m.genesis[holder] = Account{
			Lamports: MinimumBalance(len(code)), Data: code,
			Owner: solana.BPFLoaderUpgradeableProgramID, RentEpoch: math.MaxUint64,
		}
	}
	account.Lamports = MinimumBalance(len(account.Data))
	m.genesis[p.Address] = account
	return nil
}

// Genesis is the accounts that a new chain starts with: the programs. The caller
// may change the map, not the data in it.
func (m *Machine) Genesis() map[solana.PublicKey]Account { return maps.Clone(m.genesis) }

// load reads an account for a transaction. An account that does not exist is an
// empty one of System's.
func (m *Machine) load(address solana.PublicKey, b Block, state Accounts) Account {
	if a, ok := m.Sysvar(address, b); ok {
		return a
	}
	a, ok := state.Account(address)
	if !ok {
		a, ok = m.genesis[address]
	}
	if !ok || a.Lamports == 0 {
		return Account{RentEpoch: math.MaxUint64}
	}
	return a
}

// Execute checks a transaction, its signatures included, and runs it on a state,
// which it does not change: what to write is in the result.
func (m *Machine) Execute(t *Transaction, b Block, state Accounts) Result {
	if !t.SignaturesValid() {
		return rejected(SignatureFailure)
	}
	return m.execute(t, b, state)
}

// Simulate is Execute for a transaction that is not meant to be executed: its
// signatures and block hash need not be valid.
func (m *Machine) Simulate(t *Transaction, b Block, state Accounts, how Simulation) Result {
	if how.VerifySignatures && !t.SignaturesValid() {
		return rejected(SignatureFailure)
	}
	if how.ReplaceBlockhash {
		copied := *t
		copied.Message.RecentBlockhash = b.LastBlockhash
		t = &copied
	}
	return m.execute(t, b, state)
}

func rejected(kind string) Result {
	return Result{Outcome: Rejected, Err: &TransactionError{Kind: kind}}
}
