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
	// Message is what was signed. It loads no addresses from lookup tables.
	Message solana.Message

	wire []byte
	body []byte // the message's bytes inside wire
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
	t := &Transaction{Signatures: parsed.Signatures, Message: parsed.Message, wire: wire}
	t.body = wire[1+len(t.Signatures)*solana.SignatureLength:]
	return t, nil
}

// maxInstructions is the most instructions of a transaction, SIMD-0160.
const maxInstructions = 64

func sanitise(t *solana.Transaction) error {
	if err := t.Sanitize(); err != nil {
		return err
	}
	if len(t.Message.AddressTableLookups) != 0 {
		return errors.New("address lookup tables are not supported by this development node")
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

// Keys are the accounts of the transaction.
func (t *Transaction) Keys() []solana.PublicKey { return t.Message.AccountKeys }

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
	header := t.Message.Header
	signed, total := int(header.NumRequiredSignatures), len(t.Message.AccountKeys)
	if index < signed {
		if index >= signed-int(header.NumReadonlySignedAccounts) {
			return false
		}
	} else if index >= total-int(header.NumReadonlyUnsignedAccounts) {
		return false
	}
	if reserved(t.Message.AccountKeys[index]) {
		return false
	}
	for _, instruction := range t.Message.Instructions {
		if int(instruction.ProgramIDIndex) == index {
			return false
		}
	}
	return true
}

// NonceAccount is the durable nonce account that the transaction's first
// instruction advances, and whether there is one. Whether the transaction lives by
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
	return index, t.IsWritable(index)
}
