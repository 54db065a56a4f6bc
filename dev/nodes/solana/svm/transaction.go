package svm

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gagliardetto/solana-go"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
)

// PacketSize is the most bytes that a transaction may have, Agave's PACKET_DATA_SIZE.
const PacketSize = 1232

// ErrTooLarge says that a transaction doesn't fit into a packet.
var ErrTooLarge = errors.New("transaction too large")

// Transaction is a decoded and sanitised transaction. It is not changed after Decode.
type Transaction struct {
	// Signatures are one for each key that signs, the fee payer's first.
	Signatures []solana.Signature
	// Message is what was signed. Its keys are without those of lookup tables.
	Message solana.Message

	wire   []byte
	body   []byte // the message's bytes inside wire
	loaded LoadedAddresses
	keys   []solana.PublicKey // of the message, then the loaded ones
}

// Decode reads a transaction of the legacy format or of version 0 from its wire
// bytes. Bytes that are not exactly what encoding the result would give are
// refused: a signature's transaction then has one form only. The errors carry the
// texts of Agave's RPC.
func Decode(wire []byte) (*Transaction, error) {
	const what = "failed to deserialize solana_transaction::versioned::VersionedTransaction: "
	if len(wire) > PacketSize {
		return nil, fmt.Errorf("%w: %d bytes (max: encoded/raw 1644/%d)", ErrTooLarge, len(wire), PacketSize)
	}
	if len(wire) == 0 || wire[0]&0x80 != 0 {
		return nil, errors.New(what + "neither a legacy transaction nor one of version 0")
	}
	wire = bytes.Clone(wire)
	parsed, err := solana.TransactionFromBytes(wire)
	if err != nil {
		return nil, fmt.Errorf(what+"%w", err)
	}
	if err := sanitise(parsed); err != nil {
		return nil, fmt.Errorf("invalid transaction: %w", err)
	}
	again, err := parsed.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf(what+"%w", err)
	}
	if !bytes.Equal(again, wire) {
		return nil, errors.New(what + "trailing or non-canonical bytes")
	}
	t := &Transaction{Signatures: parsed.Signatures, Message: parsed.Message, wire: wire, keys: parsed.Message.AccountKeys}
	t.body = wire[1+len(t.Signatures)*solana.SignatureLength:]
	return t, nil
}

// maxInstructions is the most instructions of a transaction, SIMD-0160.
const maxInstructions = 64

func sanitise(t *solana.Transaction) error {
	if err := t.Sanitize(); err != nil {
		return err
	}
	if n := len(t.Message.Instructions); n > maxInstructions {
		return fmt.Errorf("%d instructions, and at most %d are allowed", n, maxInstructions)
	}
	return nil
}

// Wire is the transaction as it was received.
func (t *Transaction) Wire() []byte { return bytes.Clone(t.wire) }

// ID is the transaction's first signature, by which it is known.
func (t *Transaction) ID() solana.Signature { return t.Signatures[0] }

// Keys are the accounts of the transaction: those of the message, then those that it loads from lookup tables, which are there
// once they were loaded (Machine.Resolve).
func (t *Transaction) Keys() []solana.PublicKey { return t.keys }

// static is how many keys the message itself has.
func (t *Transaction) static() int { return len(t.Message.AccountKeys) }

// IsLoaded reports whether the key at a place comes from a lookup table.
func (t *Transaction) IsLoaded(index int) bool { return index >= t.static() }

// strict are the rules of Agave's verification (ed25519-dalek verify_strict): no point may be of a small order.
var strict = &ed25519.Options{Verify: &ed25519.VerifyOptions{CofactorlessVerify: true}}

// SignaturesValid reports whether every key that must sign did.
func (t *Transaction) SignaturesValid() bool {
	for i, signature := range t.Signatures {
		if !ed25519.VerifyWithOptions(t.Message.AccountKeys[i][:], t.body, signature[:], strict) {
			return false
		}
	}
	return true
}

// IsSigner reports whether the key at a place signs.
func (t *Transaction) IsSigner(index int) bool {
	return index < int(t.Message.Header.NumRequiredSignatures)
}

// IsWritable reports whether the transaction may change the account at a place.
// Sysvars and built-in programs are never writable, and neither is a program that
// the message calls, whatever the message says.
func (t *Transaction) IsWritable(index int) bool {
	if !t.declaredWritable(index) || reserved(t.keys[index]) {
		return false
	}
	for _, instruction := range t.Message.Instructions {
		if int(instruction.ProgramIDIndex) == index {
			return false
		}
	}
	return true
}

// declaredWritable reports whether the message says so.
func (t *Transaction) declaredWritable(index int) bool {
	header := t.Message.Header
	signed := int(header.NumRequiredSignatures)
	switch {
	case t.IsLoaded(index):
		return index < t.static()+len(t.loaded.Writable)
	case index < signed:
		return index < signed-int(header.NumReadonlySignedAccounts)
	}
	return index < t.static()-int(header.NumReadonlyUnsignedAccounts)
}

// NonceAccount is the durable nonce account that the transaction's first
// instruction advances, and whether there is one. It is never one from a lookup table. Whether the transaction lives by
// it depends on the state: see Machine.Execute.
func (t *Transaction) NonceAccount() (index int, ok bool) {
	if len(t.Message.Instructions) == 0 {
		return 0, false
	}
	first := t.Message.Instructions[0]
	if t.Message.AccountKeys[first.ProgramIDIndex] != solana.SystemProgramID || len(first.Accounts) == 0 {
		return 0, false
	}
	if len(first.Data) < 4 || le.Uint32(first.Data) != advanceNonceAccount {
		return 0, false
	}
	index = int(first.Accounts[0])
	if t.IsLoaded(index) { // SIMD-0242
		return 0, false
	}
	return index, t.IsWritable(index)
}
