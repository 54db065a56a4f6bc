package svm

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"

	"kivuko/dev/nodes/solana/programs"
)

// lamportsOfPlenty is what the tests' payers start with.
const lamportsOfPlenty = 1_000_000_000_000

// chain is as much of a chain as a machine needs to run on.
type chain struct {
	t        testing.TB
	machine  *Machine
	accounts map[solana.PublicKey]Account
	block    Block
	hashes   map[solana.Hash]uint64 // height by hash
	slots    []SlotHash             // newest first
	seen     map[solana.Signature]bool
	keys     map[solana.PublicKey]solana.PrivateKey
}

func newChain(t testing.TB, set programs.Set) *chain {
	t.Helper()
	m, err := New(set)
	require.NoError(t, err)
	c := &chain{
		t: t, machine: m, accounts: m.Genesis(), hashes: map[solana.Hash]uint64{}, seen: map[solana.Signature]bool{},
		keys: map[solana.PublicKey]solana.PrivateKey{},
	}
	c.block = Block{
		UnixTime: 1_790_000_000, EpochStart: 1_789_000_000, Epoch: 3, Slot: 1_300_000,
		AgeOf: func(h solana.Hash) (uint64, bool) {
			height, known := c.hashes[h]
			return c.block.Height - 1 - height, known
		},
		SlotHashes: func() []SlotHash { return c.slots },
		Processed:  func(s solana.Signature) bool { return c.seen[s] },
	}
	c.next(sha256.Sum256([]byte("genesis")))
	return c
}

// cachedPrograms are the real programs, or the end of the test with a sentence.
func cachedPrograms(t testing.TB) programs.Set {
	t.Helper()
	dir, err := programs.CacheDir()
	require.NoError(t, err)
	set, err := programs.Cached(dir)
	if err != nil {
		t.Skipf("Solana's programs are not on this machine (the local stack takes them from npm when it starts): %v", err)
	}
	return set
}

// next starts a block whose parent has the given hash.
func (c *chain) next(hash solana.Hash) {
	c.slots = append([]SlotHash{{c.block.Slot, hash}}, c.slots[:min(len(c.slots), maxSlotHashes-1)]...)
	c.block.Height++
	c.block.Slot++
	c.block.UnixTime++
	c.block.LastBlockhash = hash
	c.hashes[hash] = c.block.Height - 1
}

// skip makes n blocks.
func (c *chain) skip(n int) {
	for range n {
		c.next(sha256.Sum256(c.block.LastBlockhash[:]))
	}
}

// Account makes the chain a state.
func (c *chain) Account(key solana.PublicKey) (Account, bool) {
	a, ok := c.accounts[key]
	return a, ok
}

// key makes a key whose owner the chain can sign for.
func (c *chain) key(name string) solana.PublicKey {
	seed := sha256.Sum256([]byte(name))
	private := solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
	c.keys[private.PublicKey()] = private
	return private.PublicKey()
}

// payer makes a key with plenty of lamports.
func (c *chain) payer(name string) solana.PublicKey {
	key := c.key(name)
	c.accounts[key] = Account{Lamports: lamportsOfPlenty}
	return key
}

// sign builds a transaction and signs it with every key it needs.
func (c *chain) sign(payer solana.PublicKey, hash solana.Hash, v0 bool, list ...solana.Instruction) []byte {
	c.t.Helper()
	version := solana.MessageVersionLegacy
	if v0 {
		version = solana.MessageVersionV0
	}
	return c.signed(list, hash, solana.TransactionPayer(payer), solana.TransactionMessageVersion(version))
}

func (c *chain) signed(list []solana.Instruction, hash solana.Hash, options ...solana.TransactionOption) []byte {
	c.t.Helper()
	tx, err := solana.NewTransaction(list, hash, options...)
	require.NoError(c.t, err)
	_, err = tx.Sign(func(k solana.PublicKey) *solana.PrivateKey {
		if p, ok := c.keys[k]; ok {
			return &p
		}
		return nil
	})
	require.NoError(c.t, err)
	wire, err := tx.MarshalBinary()
	require.NoError(c.t, err)
	return wire
}

// send builds, signs and executes a transaction on the newest block hash.
func (c *chain) send(payer solana.PublicKey, list ...solana.Instruction) Result {
	c.t.Helper()
	return c.execute(c.sign(payer, c.block.LastBlockhash, false, list...))
}

// execute executes a transaction and writes what it changed.
func (c *chain) execute(wire []byte) Result {
	c.t.Helper()
	tx, err := Decode(wire)
	require.NoError(c.t, err)
	r := c.machine.Execute(tx, c.block, c)
	c.commit(tx, r)
	return r
}

func (c *chain) commit(tx *Transaction, r Result) {
	if r.Outcome != Rejected {
		c.seen[tx.ID()] = true
	}
	for key, a := range r.Changed {
		if a.Lamports == 0 {
			delete(c.accounts, key)
			continue
		}
		c.accounts[key] = a
	}
}

// The helpers below write instructions by hand, so that bad ones can be made too.

func instruction(program solana.PublicKey, data []byte, accounts ...*solana.AccountMeta) solana.Instruction {
	return solana.NewInstruction(program, accounts, data)
}

func read(k solana.PublicKey) *solana.AccountMeta       { return solana.Meta(k) }
func writes(k solana.PublicKey) *solana.AccountMeta     { return solana.Meta(k).WRITE() }
func signs(k solana.PublicKey) *solana.AccountMeta      { return solana.Meta(k).SIGNER() }
func signsWrite(k solana.PublicKey) *solana.AccountMeta { return solana.Meta(k).WRITE().SIGNER() }

// pack writes values in the little-endian order of bincode.
func pack(values ...any) []byte {
	var data []byte
	for _, v := range values {
		switch v := v.(type) {
		case solana.PublicKey:
			data = append(data, v[:]...)
		case []byte:
			data = append(data, v...)
		case string:
			data = append(data, v...)
		case int: // a number of 32 bits, as System's instructions have
			data = binary.LittleEndian.AppendUint32(data, uint32(v))
		case byte:
			data = append(data, v)
		case uint16:
			data = binary.LittleEndian.AppendUint16(data, v)
		case uint64:
			data = binary.LittleEndian.AppendUint64(data, v)
		default:
			panic("pack: a type that it doesn't know")
		}
	}
	return data
}

func system(data []byte, accounts ...*solana.AccountMeta) solana.Instruction {
	return instruction(solana.SystemProgramID, data, accounts...)
}

func pay(from, to solana.PublicKey, lamports uint64) solana.Instruction {
	return system(pack(transfer, lamports), signsWrite(from), writes(to))
}

func open(payer, key, owner solana.PublicKey, size int) solana.Instruction {
	return system(pack(createAccount, MinimumBalance(size), uint64(size), owner), signsWrite(payer), signsWrite(key))
}

func nonceOpen(payer, key, authority solana.PublicKey) []solana.Instruction {
	return []solana.Instruction{
		open(payer, key, solana.SystemProgramID, nonceSize),
		system(pack(initializeNonceAccount, authority), writes(key),
			read(solana.SysVarRecentBlockHashesPubkey), read(solana.SysVarRentPubkey)),
	}
}

func nonceAdvance(key, authority solana.PublicKey) solana.Instruction {
	return system(pack(advanceNonceAccount), writes(key), read(solana.SysVarRecentBlockHashesPubkey), signs(authority))
}
