package tron

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	sdkaddress "github.com/fbsobreira/gotron-sdk/pkg/address"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// addressPrefix is the first byte of every TRON address.
const addressPrefix = 0x41

// signatureLength is r, s and the recovery id.
const signatureLength = 65

// Address is a TRON address as the protocol's messages carry it: the prefix
// 0x41 and the 20 bytes the virtual machine uses. The zero value is no address.
type Address [21]byte

// ParseAddress reads a base58check address ("T...") or 42 hexadecimal digits
// that begin with 41.
func ParseAddress(text string) (Address, error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil {
		decoded, err58 := sdkaddress.Base58ToAddress(text)
		if err58 != nil {
			return Address{}, fmt.Errorf("address %q: neither base58check nor hexadecimal", text)
		}
		raw = decoded
	}
	a, ok := addressOf(raw)
	if !ok {
		return Address{}, fmt.Errorf("address %q: want 21 bytes that begin with 0x41", text)
	}
	return a, nil
}

// AddressOfKey returns the address of a key pair.
func AddressOfKey(key *ecdsa.PrivateKey) Address {
	return addressOfVM(crypto.PubkeyToAddress(key.PublicKey))
}

func addressOf(raw []byte) (a Address, ok bool) {
	if len(raw) != len(a) || raw[0] != addressPrefix {
		return Address{}, false
	}
	copy(a[:], raw)
	return a, true
}

func addressOfVM(vm common.Address) (a Address) {
	a[0] = addressPrefix
	copy(a[1:], vm[:])
	return a
}

// String returns the base58check form.
func (a Address) String() string { return sdkaddress.Address(a[:]).String() }

// Hex returns 42 hexadecimal digits.
func (a Address) Hex() string { return hex.EncodeToString(a[:]) }

func (a Address) vm() common.Address { return common.Address(a[1:]) }

// Hash is a transaction or block id.
type Hash [32]byte

// String returns 64 hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

var deterministic = proto.MarshalOptions{Deterministic: true}

// encode marshals a message of this package's own making, which cannot fail.
func encode(m proto.Message) []byte {
	b, err := deterministic.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("tron: marshal %T: %v", m, err))
	}
	return b
}

// TransactionID is the SHA-256 of the raw data; signatures and results are not
// part of it (java-tron TransactionCapsule.getTransactionId).
func TransactionID(tx *core.Transaction) Hash { return sha256.Sum256(encode(tx.GetRawData())) }

// BlockID is the SHA-256 of the raw header with the block number in place of
// its first eight bytes (java-tron BlockCapsule.BlockId).
func BlockID(header *core.BlockHeaderRaw) Hash {
	id := sha256.Sum256(encode(header))
	binary.BigEndian.PutUint64(id[:8], uint64(header.Number))
	return id
}

// Recover returns the address whose key made a 65-byte signature over hash. The
// recovery id may be 0/1 (gotron-sdk) or 27/28 (tronweb).
func Recover(hash Hash, signature []byte) (Address, error) {
	if len(signature) < signatureLength {
		return Address{}, fmt.Errorf("Signature size is %d", len(signature)) //nolint:staticcheck // java-tron's text
	}
	s := bytes.Clone(signature[:signatureLength])
	if s[64] >= 27 {
		s[64] -= 27
	}
	key, err := crypto.SigToPub(hash[:], s)
	if err != nil {
		return Address{}, errSignatureMath
	}
	return addressOfVM(crypto.PubkeyToAddress(*key)), nil
}

var errSignatureMath = errors.New("Could not recover public key from signature") //nolint:staticcheck // java-tron's text

// Sign appends the key's signature to the transaction.
func Sign(tx *core.Transaction, key *ecdsa.PrivateKey) error {
	id := TransactionID(tx)
	s, err := crypto.Sign(id[:], key)
	if err != nil {
		return fmt.Errorf("sign %s: %w", id, err)
	}
	tx.Signature = append(tx.Signature, s)
	return nil
}

// contractAddress is the address a CreateSmartContract transaction gives its
// contract (java-tron WalletUtil.generateContractAddress).
func contractAddress(txID Hash, owner Address) Address {
	return addressOfVM(common.Address(crypto.Keccak256(txID[:], owner[:])[12:]))
}

// merkleRoot is java-tron's tree over the full transactions: an odd node moves
// up unchanged.
func merkleRoot(txs []*core.Transaction) []byte {
	if len(txs) == 0 {
		return make([]byte, 32)
	}
	level := make([]Hash, len(txs))
	for i, tx := range txs {
		level[i] = sha256.Sum256(encode(tx))
	}
	for len(level) > 1 {
		next := level[:0]
		for i := 0; i < len(level); i += 2 {
			if i+1 == len(level) {
				next = append(next, level[i])
				break
			}
			next = append(next, sha256.Sum256(append(level[i][:], level[i+1][:]...)))
		}
		level = next
	}
	return level[0][:]
}
