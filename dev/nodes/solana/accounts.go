package solana

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sort"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/svm"
)

// version is an account as the block of a slot left it. Without lamports it is
// deleted.
type version struct {
	slot    uint64
	account svm.Account
}

// accounts holds every account with the versions that a commitment or a change of
// forks may still ask for, oldest first. Slots are never used twice, not even on
// another fork, so a slot says which block wrote a version.
type accounts map[solana.PublicKey][]version

// at is an account as it was after the block of a slot.
func (a accounts) at(address solana.PublicKey, slot uint64) (svm.Account, bool) {
	versions := a[address]
	i := sort.Search(len(versions), func(i int) bool { return versions[i].slot > slot })
	if i == 0 || versions[i-1].account.Lamports == 0 {
		return svm.Account{}, false
	}
	return versions[i-1].account, true
}

// written is the slot whose block last wrote an account that exists, up to the block of a slot.
func (a accounts) written(address solana.PublicKey, slot uint64) uint64 {
	versions := a[address]
	return versions[sort.Search(len(versions), func(i int) bool { return versions[i].slot > slot })-1].slot
}

// put writes an account in the block of a slot. Versions that no request can read at
// the slot floor or later are forgotten.
func (a accounts) put(address solana.PublicKey, slot, floor uint64, account svm.Account) {
	versions := a[address]
	for len(versions) > 1 && versions[1].slot <= floor {
		versions = versions[1:]
	}
	if last := len(versions) - 1; last >= 0 && versions[last].slot == slot {
		versions[last].account = account
		return
	}
	a[address] = append(versions, version{slot, account})
}

// cut forgets what the blocks after a slot wrote to an account.
func (a accounts) cut(address solana.PublicKey, slot uint64) {
	versions := a[address]
	for len(versions) > 0 && versions[len(versions)-1].slot > slot {
		versions = versions[:len(versions)-1]
	}
	if len(versions) == 0 {
		delete(a, address)
		return
	}
	a[address] = versions
}

// addresses lists all accounts that exist after the block of a slot, in order.
func (a accounts) addresses(slot uint64) []solana.PublicKey {
	var out []solana.PublicKey
	for address := range a {
		if _, ok := a.at(address, slot); ok {
			out = append(out, address)
		}
	}
	slices.SortFunc(out, func(x, y solana.PublicKey) int { return bytes.Compare(x[:], y[:]) })
	return out
}

// digest is the same for two states that hold the same accounts.
func (a accounts) digest(slot uint64) solana.Hash {
	sum := sha256.New()
	for _, address := range a.addresses(slot) {
		account, _ := a.at(address, slot)
		sum.Write(address[:])
		sum.Write(account.Owner[:])
		var numbers [16]byte
		binary.LittleEndian.PutUint64(numbers[:], account.Lamports)
		binary.LittleEndian.PutUint64(numbers[8:], uint64(len(account.Data)))
		sum.Write(numbers[:])
		sum.Write(account.Data)
	}
	return solana.Hash(sum.Sum(nil))
}
