package svm

import (
	"bytes"
	"crypto/sha256"
	"math"
	"slices"

	"github.com/gagliardetto/solana-go"
)

// A durable nonce account holds a version, a state, the key that may use it, the
// nonce, and the fee for a signature when it was last advanced.
const (
	nonceSize         = 80
	nonceStateAt      = 4
	nonceAuthorityAt  = 8
	nonceValueAt      = 40
	nonceFeeAt        = 72
	nonceVersion      = 1
	nonceInitialized  = 1
	nonceNotAvailable = 7 // System's own error number: a nonce made of this very block hash
)

// durableNonce is the nonce account that a transaction lives by.
type durableNonce struct {
	used     bool
	place    int
	advanced []byte // the account's data when the transaction failed
}

// DurableNonce is the nonce that is made of a block hash.
func DurableNonce(blockhash solana.Hash) solana.Hash {
	return sha256.Sum256(append([]byte("DURABLE_NONCE"), blockhash[:]...))
}

// isNonce reports whether an account is a nonce account that is in use.
func isNonce(a Account) bool {
	state, known := nonceState(a.Data)
	return a.Owner == solana.SystemProgramID && known && state == nonceInitialized
}

// nonceState reads the state of a nonce account, and whether it is one that is known.
func nonceState(data []byte) (state uint32, known bool) {
	if len(data) < nonceAuthorityAt || le.Uint32(data) > nonceVersion {
		return 0, false
	}
	state = le.Uint32(data[nonceStateAt:])
	return state, state == 0 || state == nonceInitialized && len(data) >= nonceSize
}

func nonceAuthority(data []byte) solana.PublicKey {
	return solana.PublicKey(data[nonceAuthorityAt:nonceValueAt])
}

func nonceValue(data []byte) solana.Hash { return solana.Hash(data[nonceValueAt:nonceFeeAt]) }

// nonceData is the data of a nonce account in use.
func nonceData(authority solana.PublicKey, nonce solana.Hash) []byte {
	data := le.AppendUint32(make([]byte, 0, nonceSize), nonceVersion)
	data = le.AppendUint32(data, nonceInitialized)
	data = append(data, authority[:]...)
	data = append(data, nonce[:]...)
	return le.AppendUint64(data, lamportsPerSignature)
}

// withNonce is data of an account with a nonce written over their beginning.
func withNonce(data, nonce []byte) []byte {
	data = bytes.Clone(data)
	copy(data, nonce)
	return data
}

// NonceOf is the nonce of an account, if it is a nonce account in use.
func NonceOf(a Account) (solana.Hash, bool) {
	if !isNonce(a) {
		return solana.Hash{}, false
	}
	return nonceValue(a.Data), true
}

// age reports whether the transaction may still be executed: it names a block hash
// that is young enough, or the nonce of an account that it advances.
func (m *Machine) age(t *Transaction, b Block, state Accounts) (durableNonce, *TransactionError) {
	if b.AgeOf != nil {
		if age, known := b.AgeOf(t.Message.RecentBlockhash); known && age <= MaxAge {
			return durableNonce{}, nil
		}
	}
	tooOld := &TransactionError{Kind: BlockhashNotFound}
	place, ok := t.NonceAccount()
	if !ok {
		return durableNonce{}, tooOld
	}
	a := m.load(t.Keys()[place], b, state)
	next := DurableNonce(b.LastBlockhash)
	if !isNonce(a) || nonceValue(a.Data) != t.Message.RecentBlockhash || next == t.Message.RecentBlockhash {
		return durableNonce{}, tooOld
	}
	authority := nonceAuthority(a.Data)
	signed := slices.ContainsFunc(t.Message.Instructions[0].Accounts, func(i uint16) bool {
		return t.IsSigner(int(i)) && t.Keys()[i] == authority
	})
	if !signed {
		return durableNonce{}, tooOld
	}
	return durableNonce{used: true, place: place, advanced: withNonce(a.Data, nonceData(authority, next))}, nil
}

// nonceAccount checks what all instructions on a nonce account need of it. what is
// their name in logs.
func (x *execution) nonceAccount(what string) (a reference, used bool, err error) {
	a = x.account(0)
	if !a.writable {
		x.log.add("%s nonce account: Account %s must be writeable", what, a.key)
		return a, false, fail("InvalidArgument")
	}
	state, known := nonceState(a.Data)
	if !known {
		return a, false, fail("InvalidAccountData")
	}
	return a, state == nonceInitialized, nil
}

func (x *execution) usedNonceAccount(what string) (reference, error) {
	a, used, err := x.nonceAccount(what)
	if err == nil && !used {
		x.log.add("%s nonce account: Account %s state is invalid", what, a.key)
		err = fail("InvalidAccountData")
	}
	return a, err
}

// setNonce writes a nonce into its account.
func (r reference) setNonce(nonce []byte) error {
	if err := r.checkData(len(r.Data)); err != nil {
		return err
	}
	if len(r.Data) < len(nonce) {
		return fail("AccountDataTooSmall")
	}
	return r.setData(withNonce(r.Data, nonce))
}

func (x *execution) advanceNonce() error {
	if err := x.sysvarsAt(2, solana.SysVarRecentBlockHashesPubkey); err != nil {
		return err
	}
	a, err := x.usedNonceAccount("Advance")
	if err != nil {
		return err
	}
	authority := nonceAuthority(a.Data)
	if !x.signed(authority) {
		x.log.add("Advance nonce account: Account %s must be a signer", authority)
		return fail("MissingRequiredSignature")
	}
	next := DurableNonce(x.block.LastBlockhash)
	if next == nonceValue(a.Data) {
		x.log.add("Advance nonce account: nonce can only advance once per slot")
		return custom(nonceNotAvailable)
	}
	return a.setNonce(nonceData(authority, next))
}

// sysvarsAt checks that the running instruction has a number of accounts of which
// the last ones are the given sysvars.
func (x *execution) sysvarsAt(accounts int, sysvars ...solana.PublicKey) error {
	first := accounts - len(sysvars)
	for i, sysvar := range sysvars {
		if err := x.need(first + i + 1); err != nil {
			return err
		}
		if x.account(first+i).key != sysvar {
			return fail("InvalidArgument")
		}
	}
	return nil
}

func (x *execution) initializeNonce(authority solana.PublicKey) error {
	if err := x.sysvarsAt(3, solana.SysVarRecentBlockHashesPubkey, solana.SysVarRentPubkey); err != nil {
		return err
	}
	a, used, err := x.nonceAccount("Initialize")
	if err != nil {
		return err
	}
	if used {
		x.log.add("Initialize nonce account: Account %s state is invalid", a.key)
		return fail("InvalidAccountData")
	}
	if least := MinimumBalance(len(a.Data)); a.Lamports < least {
		x.log.add("Initialize nonce account: insufficient lamports %d, need %d", a.Lamports, least)
		return fail("InsufficientFunds")
	}
	return a.setNonce(nonceData(authority, DurableNonce(x.block.LastBlockhash)))
}

func (x *execution) authorizeNonce(authority solana.PublicKey) error {
	a, err := x.usedNonceAccount("Authorize")
	if err != nil {
		return err
	}
	if current := nonceAuthority(a.Data); !x.signed(current) {
		x.log.add("Authorize nonce account: Account %s must sign", current)
		return fail("MissingRequiredSignature")
	}
	return a.setNonce(nonceData(authority, nonceValue(a.Data)))
}

// withdrawNonce takes lamports out of a nonce account. Taking all of them ends its
// use, which a transaction that lives by it can't do.
func (x *execution) withdrawNonce(lamports uint64) error {
	if err := x.need(2); err != nil {
		return err
	}
	if err := x.sysvarsAt(4, solana.SysVarRecentBlockHashesPubkey, solana.SysVarRentPubkey); err != nil {
		return err
	}
	a, used, err := x.nonceAccount("Withdraw")
	if err != nil {
		return err
	}
	signer, all := a.key, lamports == a.Lamports
	var keep uint64
	if used {
		signer, keep = nonceAuthority(a.Data), MinimumBalance(len(a.Data))
		if all && DurableNonce(x.block.LastBlockhash) == nonceValue(a.Data) {
			x.log.add("Withdraw nonce account: nonce can only advance once per slot")
			return custom(nonceNotAvailable)
		}
	}
	if lamports > math.MaxUint64-keep {
		return fail("InsufficientFunds")
	}
	if enough := lamports <= a.Lamports && (all || a.Lamports-lamports >= keep); !enough {
		x.log.add("Withdraw nonce account: insufficient lamports %d, need %d", a.Lamports, lamports+keep)
		return fail("InsufficientFunds")
	}
	if !x.signed(signer) {
		x.log.add("Withdraw nonce account: Account %s must sign", signer)
		return fail("MissingRequiredSignature")
	}
	if used && all {
		unused := le.AppendUint64(nil, nonceVersion) // and state 0
		if err := a.setNonce(unused); err != nil {
			return err
		}
	}
	if err := a.subLamports(lamports); err != nil {
		return err
	}
	return x.account(1).addLamports(lamports)
}
