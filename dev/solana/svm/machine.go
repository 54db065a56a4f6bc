package svm

import (
	"encoding/binary"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/solana/programs"
)

var le = binary.LittleEndian

const advanceNonceAccount = 4

// Machine executes transactions. It holds no state of the chain and may be used by
// several goroutines.
type Machine struct {
	genesis map[solana.PublicKey]Account
}

// New makes a machine with the given programs beside System and ComputeBudget. It
// fails on byte code that it can't run.
func New(set programs.Set) (*Machine, error) {
	return &Machine{}, nil
}

// Genesis is the accounts that a new chain starts with: the programs. The caller
// may change the map.
func (m *Machine) Genesis() map[solana.PublicKey]Account { return nil }

// Sysvar is a sysvar's account as transactions of a block see it, and whether the
// address is a sysvar of this machine (Clock, Rent, RecentBlockhashes). They are
// in no state.
func (m *Machine) Sysvar(address solana.PublicKey, b Block) (Account, bool) { return Account{}, false }

// Execute checks a transaction and runs it on a state, which it does not change:
// what to write is in the result.
func (m *Machine) Execute(t *Transaction, b Block, state Accounts) Result {
	return Result{Err: &TransactionError{Kind: "ClusterMaintenance"}}
}

// Simulate is Execute for a transaction that is not meant to be executed: its
// signatures and block hash need not be valid.
func (m *Machine) Simulate(t *Transaction, b Block, state Accounts, how Simulation) Result {
	return Result{Err: &TransactionError{Kind: "ClusterMaintenance"}}
}

// Fee is what a transaction costs its payer in lamports: 5,000 for each signature
// and the priority fee. It fails if the ComputeBudget instructions are invalid.
func Fee(t *Transaction) (uint64, *TransactionError) { return 0, nil }

// MinimumBalance is the lamports with which an account of a size is exempt from rent.
func MinimumBalance(size int) uint64 {
	const accountOverhead, lamportsPerByte = 128, 6960
	return uint64(accountOverhead+size) * lamportsPerByte
}

func reserved(address solana.PublicKey) bool { return false }
