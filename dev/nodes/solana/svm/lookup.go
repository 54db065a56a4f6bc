package svm

import (
	"slices"

	"github.com/gagliardetto/solana-go"
)

// The program of address lookup tables is byte code, on clusters and here. The runtime itself reads the tables, before it runs a
// transaction.

// Where an address lookup table keeps what: a kind, the slot in which it was deactivated, the slot of its last extension and
// how many addresses it had before that slot, an authority behind a flag, and the addresses.
const (
	tableDeactivatedAt = 4
	tableExtendedAt    = 12
	tableBeforeAt      = 20
	tableAuthorityAt   = 21
	tableAddressesAt   = 56
	tableKind          = 1
	tableActive        = ^uint64(0) // deactivated in no slot
)

// lookupTableBytes counts for each table that a transaction uses, SIMD-0186.
const lookupTableBytes = 8248

// maxSlotHashes is how many slots the SlotHashes sysvar has, which is how long a deactivated table can still be used.
const maxSlotHashes = 512

// SlotHash is a slot with a block, and that block's hash.
type SlotHash struct {
	Slot uint64
	Hash solana.Hash
}

// LoadedAddresses are the keys that a transaction loads from address lookup tables. They follow the message's own keys, those
// that it may write first.
type LoadedAddresses struct {
	Writable []solana.PublicKey `json:"writable"`
	Readonly []solana.PublicKey `json:"readonly"`
}

// LookupTable is an address lookup table.
type LookupTable struct {
	// Deactivated is the slot in which it was deactivated, math.MaxUint64 for none.
	Deactivated uint64
	// Extended is the slot of the last extension, before which there were Before addresses.
	Extended uint64
	Before   uint8
	// Authority may change the table; nil for one that is frozen.
	Authority *solana.PublicKey
	Addresses []solana.PublicKey
}

// LookupTableOf reads an account, and whether it is an address lookup table.
func LookupTableOf(a Account) (LookupTable, bool) {
	if a.Owner != solana.AddressLookupTableProgramID || len(a.Data) < tableAddressesAt || le.Uint32(a.Data) != tableKind || a.Data[tableAuthorityAt] > 1 {
		return LookupTable{}, false
	}
	raw := a.Data[tableAddressesAt:]
	if len(raw)%solana.PublicKeyLength != 0 {
		return LookupTable{}, false
	}
	t := LookupTable{
		Deactivated: le.Uint64(a.Data[tableDeactivatedAt:]), Extended: le.Uint64(a.Data[tableExtendedAt:]), Before: a.Data[tableBeforeAt],
	}
	if a.Data[tableAuthorityAt] == 1 {
		key := solana.PublicKeyFromBytes(a.Data[tableAuthorityAt+1 : tableAuthorityAt+1+solana.PublicKeyLength])
		t.Authority = &key
	}
	for ; len(raw) > 0; raw = raw[solana.PublicKeyLength:] {
		t.Addresses = append(t.Addresses, solana.PublicKeyFromBytes(raw[:solana.PublicKeyLength]))
	}
	return t, true
}

// usable are the addresses that a transaction of a block may load, or false for a table that is deactivated. Those of an
// extension in the block's own slot are not among them.
func (t LookupTable) usable(b Block) ([]solana.PublicKey, bool) {
	recent := func(h SlotHash) bool { return h.Slot == t.Deactivated }
	if t.Deactivated != tableActive && t.Deactivated != b.Slot && !slices.ContainsFunc(b.slotHashes(), recent) {
		return nil, false
	}
	if b.Slot > t.Extended {
		return t.Addresses, true
	}
	return t.Addresses[:min(int(t.Before), len(t.Addresses))], true
}

// Resolve loads the addresses that a transaction takes from lookup tables. What it returns is another transaction, unless
// there is nothing to load.
func (m *Machine) Resolve(t *Transaction, b Block, state Accounts) (*Transaction, *TransactionError) {
	var loaded LoadedAddresses
	for _, lookup := range t.Message.AddressTableLookups {
		a, exists := state.Account(lookup.AccountKey)
		if !exists || a.Lamports == 0 {
			return nil, &TransactionError{Kind: "AddressLookupTableNotFound"}
		}
		if a.Owner != solana.AddressLookupTableProgramID {
			return nil, &TransactionError{Kind: "InvalidAddressLookupTableOwner"}
		}
		table, ok := LookupTableOf(a)
		if !ok {
			return nil, &TransactionError{Kind: "InvalidAddressLookupTableData"}
		}
		usable, active := table.usable(b)
		if !active { // it may be closed any moment, and then it would not be there
			return nil, &TransactionError{Kind: "AddressLookupTableNotFound"}
		}
		for _, part := range []struct {
			indexes []byte
			into    *[]solana.PublicKey
		}{{lookup.WritableIndexes, &loaded.Writable}, {lookup.ReadonlyIndexes, &loaded.Readonly}} {
			for _, i := range part.indexes {
				if int(i) >= len(usable) {
					return nil, &TransactionError{Kind: "InvalidAddressLookupTableIndex"}
				}
				*part.into = append(*part.into, usable[i])
			}
		}
	}
	return t.WithLoaded(loaded), nil
}

// WithLoaded is the transaction with the addresses that it loads from lookup tables.
func (t *Transaction) WithLoaded(loaded LoadedAddresses) *Transaction {
	if len(t.Message.AddressTableLookups) == 0 {
		return t
	}
	with := *t
	with.loaded = loaded
	with.keys = slices.Concat([]solana.PublicKey(t.Message.AccountKeys), loaded.Writable, loaded.Readonly)
	return &with
}

// Loaded is what the transaction loads from lookup tables.
func (t *Transaction) Loaded() LoadedAddresses { return t.loaded }
