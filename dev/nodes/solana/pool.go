package solana

import (
	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/svm"
)

// maxWaiting is how many transactions wait for a block at most. A cluster's nodes
// silently drop what exceeds it, and so does this one.
const maxWaiting = 10_000

// pooled is a transaction that waits for a block.
type pooled struct {
	tx        *svm.Transaction
	forced    bool   // to fail when it is executed
	notBefore uint64 // the first slot that may hold it
}

// pool is the transactions that wait, in the order of their arrival.
type pool struct {
	waiting []*pooled
	known   map[solana.Signature]bool
}

func newPool() pool { return pool{known: map[solana.Signature]bool{}} }

// add lets a transaction wait. One that waits already is not taken twice.
func (p *pool) add(tx *pooled) (taken bool) {
	if p.known[tx.tx.ID()] || len(p.waiting) >= maxWaiting {
		return false
	}
	p.known[tx.tx.ID()] = true
	p.waiting = append(p.waiting, tx)
	return true
}

// replace says who waits from now on.
func (p *pool) replace(waiting []*pooled) {
	p.waiting = nil
	clear(p.known)
	for _, tx := range waiting {
		p.add(tx)
	}
}

// giveBack puts the transactions of lost blocks before those that wait.
func (p *pool) giveBack(lost []*entry) {
	var all []*pooled
	for _, e := range lost {
		all = append(all, &pooled{tx: e.tx, forced: e.forced})
	}
	p.replace(append(all, p.waiting...))
}

// forcedFailure is the program's error number that a forced failure carries. It is
// InsufficientFunds of the token programs.
const forcedFailure = 1

// forceFailure turns a success into the failure that a transaction has whose last
// instruction fails: it pays its fee, its nonce is used up, and nothing else of it
// stays.
func forceFailure(tx *svm.Transaction, r svm.Result) svm.Result {
	if r.Outcome != svm.Succeeded {
		return r
	}
	payer := tx.Keys()[0]
	kept := map[solana.PublicKey]svm.Account{}
	if nonce, ok := tx.NonceAccount(); ok && r.NonceAdvanced {
		account := r.Touched[nonce]
		account.Lamports = r.PreBalances[nonce]
		kept[tx.Keys()[nonce]] = account
	}
	account, both := kept[payer]
	if !both {
		account = r.Touched[0]
	}
	account.Lamports = r.PreBalances[0] - r.Fee
	kept[payer] = account
	r.Outcome, r.Changed = svm.Failed, kept
	r.Err = &svm.TransactionError{
		Kind: "InstructionError", Index: len(tx.Message.Instructions) - 1,
		Instruction: &svm.InstructionError{Kind: "Custom", Code: forcedFailure},
	}
	r.PostBalances = append([]uint64{}, r.PreBalances...)
	r.PostBalances[0] -= r.Fee
	r.PostTokens, r.ReturnData = r.PreTokens, nil
	return r
}
