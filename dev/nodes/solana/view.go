package solana

import (
	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/svm"
)

// view is the chain as it was after the block at a height. It holds while the
// ledger is locked.
type view struct {
	*ledger
	at uint64
}

// view gives the chain at a commitment, or as it was behind blocks before.
func (l *ledger) view(c commitment, behind uint64) view {
	height := l.heightAt(c)
	return view{l, height - min(height, behind)}
}

func (v view) header() header { return v.headers[v.at] }

func (v view) slot() uint64 { return v.header().slot }

// Account is what svm.Accounts asks for: everything but the sysvars.
func (v view) Account(address solana.PublicKey) (svm.Account, bool) {
	return v.accounts.at(address, v.slot())
}

// read is Account with the sysvars.
func (v view) read(address solana.PublicKey) (svm.Account, bool) {
	if account, ok := v.machine.Sysvar(address, v.context()); ok {
		return account, true
	}
	return v.Account(address)
}

// context is what a simulation on the block of the view sees. As in Agave, the
// block's own hash is the newest one.
func (v view) context() svm.Block { return v.ledger.context(v.at, v.at, v.header()) }

// shows reports whether a transaction is in the view.
func (v view) shows(e *entry) bool { return e != nil && e.height <= v.at }

// known reports whether a transaction may name the block hash now.
func (v view) known(hash solana.Hash) bool {
	_, ok := v.age(hash, v.at)
	return ok
}

// find is the entry of a transaction in the view, nil for none.
func (v view) entry(signature solana.Signature) *entry {
	if e := v.bySignature[signature]; v.shows(e) {
		return e
	}
	return nil
}

// lastValidHeight is the height up to which a cluster accepts transactions with
// the view's block hash.
func (v view) lastValidHeight() uint64 { return v.at + svm.MaxAge }
