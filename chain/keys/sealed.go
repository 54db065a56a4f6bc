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

// Ref says whose key it is. It is bound into the encryption, so that a sealed key works for no other
// wallet, network or purpose than it was made for.
type Ref struct {
	WalletID uuid.UUID
	Network  exchange.Network
	// Purpose tells keys of one wallet apart ("", "approver-1"). It may be empty.
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

// binding is the associated data of the encryption. Every part has its length before it, so that no
// two references give the same bytes. The public key is part of it: with another one stored beside
// it, a sealed key does not open.
func (r Ref) binding(a Algorithm, publicKey []byte) []byte {
	var out []byte
	for _, part := range []string{
		"kivuko wallet key v1", r.WalletID.String(), string(r.Network), r.Purpose, string(a), hex.EncodeToString(publicKey),
	} {
		out = fmt.Appendf(out, "%d:%s;", len(part), part)
	}
	return out
}

// Sealed is a private key in the form in which it is stored. Without the master key it is worthless,
// yet it has no business in logs or workflow histories either, and refuses to go there.
type Sealed struct {
	Ciphertext []byte
	MasterKey  string // names the master key that opens it
	PublicKey  []byte // 65 bytes uncompressed secp256k1, or 32 bytes ed25519
	Algorithm  Algorithm
	// For is whose key it is, where a wallet signs with another one's: the twin of a wallet of Ethereum or TRON, which
	// is the same account on the other network. Zero for a wallet's own key.
	For Ref
}

// ref is what a key was sealed for that signs for a wallet.
func (s Sealed) ref(wallet uuid.UUID, n exchange.Network) Ref {
	if s.For != (Ref{}) {
		return s.For
	}
	return Ref{WalletID: wallet, Network: n}
}

// String names the public parts.
func (s Sealed) String() string {
	return fmt.Sprintf("sealed %s key %x under %s", s.Algorithm, s.PublicKey, s.MasterKey)
}

// Format is String for every verb.
func (s Sealed) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue is String.
func (s Sealed) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON refuses: a sealed key goes to the database, column by column, and nowhere else.
func (s Sealed) MarshalJSON() ([]byte, error) { return nil, errNotPrintable }

var errNotPrintable = errors.New("keys: key material does not leave the key store")
