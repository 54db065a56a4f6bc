package svm

import (
	"bytes"
	"math"

	"github.com/gagliardetto/solana-go"
)

// maxAccountData is the most bytes that an account can hold, and maxGrowth the most
// by which the accounts of one transaction can grow together.
const (
	maxAccountData = 10 << 20
	maxGrowth      = 20 << 20
)

// Addresses that the runtime itself knows.
var (
	computeBudgetProgram = solana.MustPublicKeyFromBase58("ComputeBudget111111111111111111111111111111")
	nativeLoader         = solana.MustPublicKeyFromBase58("NativeLoader1111111111111111111111111111111")
	sysvarOwner          = solana.MustPublicKeyFromBase58("Sysvar1111111111111111111111111111111111111")
	incinerator          = solana.MustPublicKeyFromBase58("1nc1nerator11111111111111111111111111111111")
)

// reservedKeys are Agave's reserved account keys: no transaction may write them.
var reservedKeys = func() map[solana.PublicKey]bool {
	keys := map[solana.PublicKey]bool{}
	for _, text := range []string{
		"11111111111111111111111111111111",
		"AddressLookupTab1e1111111111111111111111111",
		"BPFLoader1111111111111111111111111111111111",
		"BPFLoader2111111111111111111111111111111111",
		"BPFLoaderUpgradeab1e11111111111111111111111",
		"ComputeBudget111111111111111111111111111111",
		"Config1111111111111111111111111111111111111",
		"Ed25519SigVerify111111111111111111111111111",
		"Feature111111111111111111111111111111111111",
		"KeccakSecp256k11111111111111111111111111111",
		"LoaderV411111111111111111111111111111111111",
		"NativeLoader1111111111111111111111111111111",
		"Secp256r1SigVerify1111111111111111111111111",
		"Stake11111111111111111111111111111111111111",
		"StakeConfig11111111111111111111111111111111",
		"Sysvar1111111111111111111111111111111111111",
		"SysvarC1ock11111111111111111111111111111111",
		"SysvarEpochRewards1111111111111111111111111",
		"SysvarEpochSchedu1e111111111111111111111111",
		"SysvarFees111111111111111111111111111111111",
		"Sysvar1nstructions1111111111111111111111111",
		"SysvarLastRestartS1ot1111111111111111111111",
		"SysvarRecentB1ockHashes11111111111111111111",
		"SysvarRent111111111111111111111111111111111",
		"SysvarRewards111111111111111111111111111111",
		"SysvarS1otHashes111111111111111111111111111",
		"SysvarS1otHistory11111111111111111111111111",
		"SysvarStakeHistory1111111111111111111111111",
		"Vote111111111111111111111111111111111111111",
		"ZkE1Gama1Proof11111111111111111111111111111",
		"ZkTokenProof1111111111111111111111111111111",
	} {
		keys[solana.MustPublicKeyFromBase58(text)] = true
	}
	return keys
}()

func reserved(address solana.PublicKey) bool { return reservedKeys[address] }

// account is an account of the transaction that is being executed. Its data are
// never changed in place, only replaced, so that they can be shared with the state
// and with copies.
type account struct {
	Account
	key              solana.PublicKey
	signer, writable bool
	changed          bool
}

// reference is an account as one instruction sees it.
type reference struct {
	*account
	place            int // in the transaction
	signer, writable bool
	program          solana.PublicKey // the one that runs
	run              *execution
}

// The setters below are the runtime's rules of what a program may do to an account,
// in the order in which Agave checks them.

func (r reference) setLamports(lamports uint64) error {
	if r.Owner != r.program && lamports < r.Lamports {
		return fail("ExternalAccountLamportSpend")
	}
	if !r.writable {
		return fail("ReadonlyLamportChange")
	}
	if lamports != r.Lamports {
		r.Lamports, r.changed = lamports, true
	}
	return nil
}

func (r reference) addLamports(lamports uint64) error {
	if lamports > math.MaxUint64-r.Lamports {
		return fail("ArithmeticOverflow")
	}
	return r.setLamports(r.Lamports + lamports)
}

func (r reference) subLamports(lamports uint64) error {
	if lamports > r.Lamports {
		return fail("ArithmeticOverflow")
	}
	return r.setLamports(r.Lamports - lamports)
}

// checkData reports whether the program may give the account data of a length.
func (r reference) checkData(length int) error {
	if !r.writable {
		return fail("ReadonlyDataModified")
	}
	if r.Owner != r.program {
		return fail("ExternalAccountDataModified")
	}
	if length > maxAccountData {
		return fail("InvalidRealloc")
	}
	if r.run.grown+length-len(r.Data) > maxGrowth {
		return fail("MaxAccountsDataAllocationsExceeded")
	}
	return nil
}

// setData replaces the data. The account keeps the slice.
func (r reference) setData(data []byte) error {
	if err := r.checkData(len(data)); err != nil {
		return err
	}
	r.run.grown += len(data) - len(r.Data)
	r.Data, r.changed = data, true
	return nil
}

// syncData takes over data that a program may have changed in its memory.
func (r reference) syncData(data []byte) error {
	if bytes.Equal(data, r.Data) {
		return nil
	}
	return r.setData(bytes.Clone(data))
}

func (r reference) setOwner(owner solana.PublicKey) error {
	if r.Owner != r.program || !r.writable || !zero(r.Data) {
		return fail("ModifiedProgramId")
	}
	if owner != r.Owner {
		r.Owner, r.changed = owner, true
	}
	return nil
}

func zero(data []byte) bool {
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}
