package svm

import (
	"math"

	"github.com/gagliardetto/solana-go"
)

// What an account costs, since SIMD-0194: a deposit for each byte and for the
// account itself, given back when it is closed.
const (
	lamportsPerByte = 6960
	accountOverhead = 128
)

// lamportsPerSignature is the fee for each signature.
const lamportsPerSignature = 5000

// MinimumBalance is the lamports with which an account that holds size bytes is
// exempt from rent, the least that it may have.
func MinimumBalance(size int) uint64 {
	return uint64(accountOverhead+size) * lamportsPerByte
}

// rentData is the Rent sysvar: lamports per byte and year, the years that exempt,
// and the percentage of rent that is burned.
func rentData() []byte {
	data := le.AppendUint64(nil, lamportsPerByte)
	data = le.AppendUint64(data, math.Float64bits(1))
	return append(data, 50)
}

// clockData is the Clock sysvar.
func clockData(b Block) []byte {
	data := le.AppendUint64(nil, b.Slot)
	data = le.AppendUint64(data, uint64(b.EpochStart))
	data = le.AppendUint64(data, b.Epoch)
	data = le.AppendUint64(data, b.Epoch+1) // the last epoch with a leader schedule
	return le.AppendUint64(data, uint64(b.UnixTime))
}

// recentBlockhashesData is the RecentBlockhashes sysvar with one entry of 150.
// Programs that read more of it than whether it is empty are long gone.
func recentBlockhashesData(b Block) []byte {
	const size = 8 + 150*(32+8)
	data := make([]byte, 0, size)
	data = le.AppendUint64(data, 1)
	data = append(data, b.LastBlockhash[:]...)
	data = le.AppendUint64(data, lamportsPerSignature)
	return data[:size]
}

// slotHashesData is the SlotHashes sysvar, whose account always has room for all.
func slotHashesData(b Block) []byte {
	const size = 8 + maxSlotHashes*(8+solana.PublicKeyLength)
	hashes := b.slotHashes()
	data := le.AppendUint64(make([]byte, 0, size), uint64(len(hashes)))
	for _, h := range hashes {
		data = append(le.AppendUint64(data, h.Slot), h.Hash[:]...)
	}
	return data[:size]
}

// Sysvar is a sysvar's account as the transactions of a block see it, and whether
// the address is a sysvar of this machine: Clock, Rent, RecentBlockhashes or
// SlotHashes. They are in no state.
func (m *Machine) Sysvar(address solana.PublicKey, b Block) (Account, bool) {
	var data []byte
	switch address {
	case solana.SysVarRentPubkey:
		data = rentData()
	case solana.SysVarClockPubkey:
		data = clockData(b)
	case solana.SysVarRecentBlockHashesPubkey:
		data = recentBlockhashesData(b)
	case solana.SysVarSlotHashesPubkey:
		data = slotHashesData(b)
	default:
		return Account{}, false
	}
	return Account{Lamports: MinimumBalance(len(data)), Data: data, Owner: sysvarOwner, RentEpoch: math.MaxUint64}, true
}
