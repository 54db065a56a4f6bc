package svm

import (
	"slices"

	"github.com/gagliardetto/solana-go"
)

// execution is one transaction while it runs.
type execution struct {
	machine  *Machine
	block    Block
	tx       *Transaction
	accounts []*account // in the order of the message's keys
	before   []Account  // the same, before anything was changed
	places   map[solana.PublicKey]int

	stack []*invocation
	trace []*invocation // all that were started, in order
	inner [][]InnerInstruction

	log      logs
	units    uint64 // left
	heap     int    // bytes
	grown    int    // bytes by which accounts grew
	returned ReturnData
}

// execute is what Agave's bank does with a transaction after its signatures were
// verified: is it young enough and new, can its payer pay, can its programs be
// run, and then what do they do.
func (m *Machine) execute(t *Transaction, b Block, state Accounts) Result {
	t, err := m.Resolve(t, b, state)
	if err != nil {
		return Result{Err: err}
	}
	if err := checkLocks(t); err != nil {
		return Result{Err: err}
	}
	nonce, err := m.age(t, b, state)
	if err != nil {
		return Result{Err: err}
	}
	if b.Processed != nil && b.Processed(t.ID()) {
		return rejected(AlreadyProcessed)
	}
	budget, err := budgetOf(t)
	if err != nil {
		return Result{Err: err}
	}
	x := m.begin(t, b, state)
	x.units, x.heap = budget.units, budget.heap
	result := Result{Fee: budget.fee(len(t.Signatures)), NonceAdvanced: nonce.used, Loaded: t.Loaded()}
	payer, err := x.payFee(result.Fee)
	if err != nil {
		return Result{Err: err, Fee: result.Fee}
	}
	if err := x.checkPrograms(budget.loaded); err != nil {
		result.Err = err
	} else {
		result.Err = x.runAll()
		result.Units = budget.units - x.units
		result.Logs, result.Inner = x.log.lines, x.innerInstructions()
		if len(x.returned.Data) > 0 {
			result.ReturnData = &x.returned
		}
	}
	result.Outcome = Succeeded
	if result.Err != nil {
		result.Outcome = Failed
		x.rollBack(payer, nonce)
	}
	x.report(&result, state)
	return result
}

// maxLocks is the most accounts that a transaction may name.
const maxLocks = 64

// checkLocks checks that a transaction names no account twice, and not too many.
func checkLocks(t *Transaction) *TransactionError {
	if len(t.Keys()) > maxLocks {
		return &TransactionError{Kind: "TooManyAccountLocks"}
	}
	seen := map[solana.PublicKey]bool{}
	for _, key := range t.Keys() {
		if seen[key] {
			return &TransactionError{Kind: "AccountLoadedTwice"}
		}
		seen[key] = true
	}
	return nil
}

// begin loads the accounts of a transaction.
func (m *Machine) begin(t *Transaction, b Block, state Accounts) *execution {
	x := &execution{machine: m, block: b, tx: t, places: map[solana.PublicKey]int{}}
	for i, key := range t.Keys() {
		loaded := m.load(key, b, state)
		x.before = append(x.before, loaded)
		x.accounts = append(x.accounts, &account{Account: loaded, key: key, signer: t.IsSigner(i), writable: t.IsWritable(i)})
		x.places[key] = i
	}
	return x
}

// payFee takes the fee from the payer and returns its account after that. It must
// be an account of System's, empty or a durable nonce, and may not be left with
// less than an account must have.
func (x *execution) payFee(fee uint64) (Account, *TransactionError) {
	payer := x.accounts[0]
	if payer.Lamports == 0 {
		return Account{}, &TransactionError{Kind: "AccountNotFound"}
	}
	var keep uint64
	if len(payer.Data) != 0 {
		keep = MinimumBalance(nonceSize)
	}
	if payer.Owner != solana.SystemProgramID || len(payer.Data) != 0 && (len(payer.Data) != nonceSize || !isNonce(payer.Account)) {
		return Account{}, &TransactionError{Kind: "InvalidAccountForFee"}
	}
	if payer.Lamports < keep || payer.Lamports-keep < fee {
		return Account{}, &TransactionError{Kind: "InsufficientFundsForFee"}
	}
	payer.Lamports -= fee
	payer.changed = true
	if !rentAllows(x.before[0], payer.Account) {
		return Account{}, &TransactionError{Kind: kindRent, Index: 0}
	}
	return payer.Account, nil
}

// rentAllows reports whether an account may become what it became: gone, exempt from
// rent, or, if it was below that before, the same size with no more lamports.
func rentAllows(before, after Account) bool {
	least := MinimumBalance(len(after.Data))
	if after.Lamports == 0 || after.Lamports >= least {
		return true
	}
	return before.Lamports != 0 && before.Lamports < MinimumBalance(len(before.Data)) &&
		len(before.Data) == len(after.Data) && after.Lamports <= before.Lamports
}

// checkPrograms reports whether everything can be loaded that the message names. A
// transaction that fails here pays its fee all the same.
func (x *execution) checkPrograms(limit uint64) *TransactionError {
	const accountBase = 64 // counted for each account, SIMD-0186
	size := lookupTableBytes * uint64(len(x.tx.Message.AddressTableLookups))
	for _, a := range x.accounts {
		if a.Lamports == 0 {
			continue
		}
		size += accountBase + uint64(len(a.Data))
		if a.Executable && a.Owner == solana.BPFLoaderUpgradeableProgramID {
			size += accountBase + uint64(len(x.codeOf(a)))
		}
	}
	if size > limit {
		return &TransactionError{Kind: "MaxLoadedAccountsDataSizeExceeded"}
	}
	for _, instruction := range x.tx.Message.Instructions {
		program := x.accounts[instruction.ProgramIDIndex]
		if program.Lamports == 0 {
			return &TransactionError{Kind: "ProgramAccountNotFound"}
		}
		if !program.Executable {
			return &TransactionError{Kind: "InvalidProgramForExecution"}
		}
	}
	return nil
}

// codeOf is what holds the byte code of a program that can be upgraded.
func (x *execution) codeOf(program *account) []byte {
	const kindLength = 4
	if len(program.Data) != kindLength+solana.PublicKeyLength {
		return nil
	}
	return x.machine.genesis[solana.PublicKeyFromBytes(program.Data[kindLength:])].Data
}

// runAll runs the message's instructions, until one fails, and then asks whether
// every account may stay as it is.
func (x *execution) runAll() *TransactionError {
	for i, instruction := range x.tx.Message.Instructions {
		v := &invocation{program: int(instruction.ProgramIDIndex), data: instruction.Data}
		for _, place := range instruction.Accounts {
			a := x.accounts[place]
			v.accounts = append(v.accounts, passed{place: int(place), signer: a.signer, writable: a.writable})
		}
		x.inner = append(x.inner, nil)
		if err := x.invoke(v); err != nil {
			return failedAt(i, err)
		}
	}
	for i, a := range x.accounts {
		if a.writable && a.key != incinerator && !rentAllows(x.before[i], a.Account) {
			return &TransactionError{Kind: kindRent, Index: i}
		}
	}
	return nil
}

// rollBack takes back everything but the fee and the advance of a durable nonce.
func (x *execution) rollBack(payer Account, nonce durableNonce) {
	for i, a := range x.accounts {
		a.Account, a.changed = x.before[i], false
	}
	x.accounts[0].Account, x.accounts[0].changed = payer, true
	if nonce.used {
		a := x.accounts[nonce.place]
		a.Data, a.changed = nonce.advanced, true
	}
}

// report fills in what the accounts say.
func (x *execution) report(r *Result, state Accounts) {
	r.Changed = map[solana.PublicKey]Account{}
	for i, a := range x.accounts {
		if a.Lamports == 0 { // its data and its owner go with it
			a.Account = Account{}
		}
		r.PreBalances = append(r.PreBalances, x.before[i].Lamports)
		r.PostBalances = append(r.PostBalances, a.Lamports)
		r.Touched = append(r.Touched, a.Account)
		if a.changed {
			r.Changed[a.key] = a.Account
		}
	}
	stored := func(mint solana.PublicKey) Account { return x.machine.load(mint, x.block, state) }
	r.PreTokens = x.tokenBalances(x.before, stored)
	r.PostTokens = x.tokenBalances(r.Touched, func(mint solana.PublicKey) Account {
		if i, ok := x.places[mint]; ok {
			return r.Touched[i]
		}
		return stored(mint)
	})
}

func (x *execution) innerInstructions() []InnerInstructions {
	var all []InnerInstructions
	for i, list := range x.inner {
		if len(list) > 0 {
			all = append(all, InnerInstructions{Index: i, Instructions: slices.Clone(list)})
		}
	}
	return all
}
