package svm

import (
	"encoding/json"

	"github.com/gagliardetto/solana-go"
)

// Account is one account of the chain.
type Account struct {
	// Lamports is its balance; an account with none does not exist.
	Lamports uint64
	Data     []byte
	// Owner is the program that may change Data and take Lamports.
	Owner      solana.PublicKey
	Executable bool
	// RentEpoch is math.MaxUint64 for everything that is exempt from rent, which
	// is all there is.
	RentEpoch uint64
}

// Accounts is a state that transactions run on. What it returns is not changed.
type Accounts interface {
	// Account returns an account and whether it exists. Sysvars are not asked for:
	// the machine makes them of the block. A program that the state does not know is
	// the one of Machine.Genesis.
	Account(address solana.PublicKey) (Account, bool)
}

// Block is what a transaction sees of the block that it is executed in.
type Block struct {
	Slot   uint64
	Height uint64
	Epoch  uint64
	// EpochStart and UnixTime are seconds of the Unix clock.
	EpochStart int64
	UnixTime   int64
	// LastBlockhash is the hash of the parent: the newest one that a transaction
	// may name, and what a durable nonce is next made of.
	LastBlockhash solana.Hash
	// AgeOf tells how many blocks old a block hash is, 0 for LastBlockhash, and
	// whether it is known. A transaction may name one of at most MaxAge.
	AgeOf func(hash solana.Hash) (age uint64, known bool)
	// SlotHashes are the slots before this one that have a block, newest first, 512 at most. Nil means none.
	SlotHashes func() []SlotHash
	// Processed reports whether a transaction was executed already. Nil means none.
	Processed func(signature solana.Signature) bool
}

func (b Block) slotHashes() []SlotHash {
	if b.SlotHashes == nil {
		return nil
	}
	hashes := b.SlotHashes()
	return hashes[:min(len(hashes), maxSlotHashes)]
}

// MaxAge is the age in blocks up to which a block hash is accepted, Agave's
// MAX_PROCESSING_AGE.
const MaxAge = 150

// Outcome is what became of a transaction.
type Outcome int

const (
	// Rejected transactions change nothing, pay nothing and are in no block.
	Rejected Outcome = iota
	// Failed ones are in a block and pay the fee; a durable nonce advances. Nothing
	// else of theirs stays.
	Failed
	// Succeeded ones did all that they say.
	Succeeded
)

// Result is what executing a transaction did.
type Result struct {
	Outcome Outcome
	// Err is nil for Succeeded alone.
	Err *TransactionError
	// Fee is in lamports. A rejected transaction has one when it came so far that
	// it is known; no payer paid it.
	Fee uint64
	// Units is the compute units used.
	Units uint64
	Logs  []string
	// Inner has the cross-program invocations of each instruction that made any.
	Inner []InnerInstructions
	// ReturnData is what the last program that set any returned; nil if none.
	ReturnData *ReturnData
	// Loaded are the keys that came from lookup tables.
	Loaded LoadedAddresses `json:",omitzero"`
	// PreBalances and PostBalances are lamports in the order of the transaction's keys.
	// Both are empty for a rejected transaction.
	PreBalances, PostBalances []uint64
	// PreTokens and PostTokens are the balances of those keys that hold tokens. An
	// account that the transaction opens has no entry before, one that it closes
	// none after.
	PreTokens, PostTokens []TokenBalance
	// Changed has the accounts to write, empty if rejected. One with no lamports
	// is to be deleted.
	Changed map[solana.PublicKey]Account
	// Touched are the accounts after the transaction in the order of the message's
	// keys, whether it changed them or not. A simulation reports from it. Empty
	// when the transaction was rejected.
	Touched []Account
	// NonceAdvanced tells that the transaction named a durable nonce and used it up.
	NonceAdvanced bool
}

// InnerInstructions are the cross-program invocations below one instruction.
type InnerInstructions struct {
	// Index is the instruction's place in the message.
	Index        int
	Instructions []InnerInstruction
}

// InnerInstruction is one cross-program invocation. Program and Accounts are
// places in the message's keys.
type InnerInstruction struct {
	Program  int
	Accounts []int
	Data     []byte
	// StackHeight is 2 for what an instruction of the message invokes itself.
	StackHeight int
}

// ReturnData is what a program gave back with sol_set_return_data.
type ReturnData struct {
	Program solana.PublicKey
	Data    []byte
}

// TokenBalance is what one account of a transaction holds of a mint.
type TokenBalance struct {
	// AccountIndex is the account's place in the message's keys.
	AccountIndex int
	Mint         solana.PublicKey
	Owner        solana.PublicKey
	// Program is SPL Token or Token-2022.
	Program solana.PublicKey
	// Amount is in the mint's smallest unit.
	Amount   uint64
	Decimals uint8
}

// TransactionError is why a transaction was rejected or failed. It marshals to
// the JSON of the RPC: "BlockhashNotFound", {"InstructionError":[0,{"Custom":1}]}.
type TransactionError struct {
	// Kind is the name of the variant in Agave's TransactionError.
	Kind string
	// Index is the instruction's place with InstructionError and
	// DuplicateInstruction, the account's with InsufficientFundsForRent.
	Index int
	// Instruction is what went wrong in it; only with InstructionError.
	Instruction *InstructionError
}

// InstructionError is why an instruction failed.
type InstructionError struct {
	// Kind is the name of the variant in Agave's InstructionError.
	Kind string
	// Code is the program's own number; only with Custom.
	Code uint32
}

var (
	_ error          = (*TransactionError)(nil)
	_ error          = (*InstructionError)(nil)
	_ json.Marshaler = (*TransactionError)(nil)
	_ json.Marshaler = (*InstructionError)(nil)
)

// Simulation is how a simulation differs from an execution.
type Simulation struct {
	// VerifySignatures checks them; without it any bytes will do.
	VerifySignatures bool
	// ReplaceBlockhash runs the transaction as if it named the newest block hash.
	ReplaceBlockhash bool
}
