package keys

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Algorithm is the kind of a private key.
type Algorithm string

// The algorithms of the three networks.
const (
	Secp256k1 Algorithm = "secp256k1" // Ethereum and TRON
	Ed25519   Algorithm = "ed25519"   // Solana
)

// AlgorithmOf is the algorithm that a network's accounts use.
func AlgorithmOf(n exchange.Network) (Algorithm, error) {
	switch n {
	case exchange.Ethereum, exchange.Tron:
		return Secp256k1, nil
	case exchange.Solana:
		return Ed25519, nil
	}
	return "", fmt.Errorf("keys: network: %q is unknown", string(n))
}

// Ref is the owner and use of a key. It is bound into the encryption, so that a sealed key works only for the wallet,
// network and purpose that it was made for.
type Ref struct {
	WalletID uuid.UUID
	Network  exchange.Network
	// Purpose distinguishes keys of one wallet ("", "approver-1"). It may be empty.
	Purpose string
}

// maxPurpose bounds Ref.Purpose in bytes.
const maxPurpose = 128

func (r Ref) check() error {
	switch {
	case r.WalletID == uuid.Nil:
		return errors.New("keys: wallet id: must not be empty")
	case !r.Network.Valid():
		return fmt.Errorf("keys: network: %q is unknown", string(r.Network))
	case len(r.Purpose) > maxPurpose:
		return fmt.Errorf("keys: purpose: at most %d bytes", maxPurpose)
	}
	return nil
}

// binding is the associated data of the encryption. Each part is preceded by its length, so that two references never give
// the same bytes. The public key is part of it: with another one stored beside it, a sealed key does not open.
func (r Ref) binding(a Algorithm, publicKey []byte) []byte {
	var out []byte
	for _, part := range []string{
		"kivuko wallet key v1", r.WalletID.String(), string(r.Network), r.Purpose, string(a), hex.EncodeToString(publicKey),
	} {
		out = fmt.Appendf(out, "%d:%s;", len(part), part)
	}
	return out
}

// Sealed is a private key in its stored form. It is useless without the master key. It still refuses to be written to logs
// or workflow histories.
type Sealed struct {
	Ciphertext []byte
	MasterKey  string // the name of the master key that opens it
	PublicKey  []byte // 65 bytes uncompressed secp256k1, or 32 bytes ed25519
	Algorithm  Algorithm
	// For is the reference of a key that another wallet uses too: the counterpart of a wallet of Ethereum or TRON, which is
	// the same account on the other network. Zero for a wallet's own key.
	For Ref
}

// ref is the reference that the key of a wallet was sealed for.
func (s Sealed) ref(wallet uuid.UUID, n exchange.Network) Ref {
	if s.For != (Ref{}) {
		return s.For
	}
	return Ref{WalletID: wallet, Network: n}
}

// String shows the public parts.
func (s Sealed) String() string {
	return fmt.Sprintf("sealed %s key %x under %s", s.Algorithm, s.PublicKey, s.MasterKey)
}

// Format is String for every verb.
func (s Sealed) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue is String.
func (s Sealed) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON refuses: a sealed key is stored in the database, column by column, and nowhere else.
func (s Sealed) MarshalJSON() ([]byte, error) { return nil, errNotPrintable }

var errNotPrintable = errors.New("keys: key material does not leave the key store")
