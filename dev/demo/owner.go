package demo

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	sdk "github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"kivuko/dev/nodes/tron"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Owner is an owner of a wallet of several owners who holds the own key, and signs with a tool of its own: it reads what a payload would have
// it sign with libraries that are not Kivuko's, and signs nothing but the payment that was agreed.
type Owner struct {
	Network exchange.Network
	Address string
	seed    [sha256.Size]byte
}

// NewOwner makes an owner whose key follows from a name, so that the next run of a local stack has the key that an earlier run made an owner.
func NewOwner(n exchange.Network, name string) (Owner, error) {
	o := Owner{Network: n, seed: sha256.Sum256([]byte("kivuko development owner " + name))}
	if n == exchange.Solana {
		o.Address = sdk.PublicKeyFromBytes(o.ed25519().Public().(ed25519.PublicKey)).String()
		return o, nil
	}
	key, err := crypto.ToECDSA(o.seed[:])
	switch {
	case err != nil:
		return o, fmt.Errorf("the key of %s: %w", name, err)
	case n == exchange.Ethereum:
		o.Address = crypto.PubkeyToAddress(key.PublicKey).Hex()
	case n == exchange.Tron:
		o.Address = tron.AddressOfKey(key).String()
	default:
		return o, fmt.Errorf("there are no owners on the network %q", n)
	}
	return o, nil
}

func (o Owner) ed25519() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(o.seed[:]) }

// digest signs 32 bytes, with the recovery value that wallets write.
func (o Owner) digest(sum []byte) (string, error) {
	const walletsV = 27
	key, err := crypto.ToECDSA(o.seed[:])
	if err != nil {
		return "", err
	}
	made, err := crypto.Sign(sum, key)
	if err != nil {
		return "", err
	}
	made[crypto.RecoveryIDOffset] += walletsV
	return hex.EncodeToString(made), nil
}

// Payload has the fields of what owners sign for a proposal that the demo reads.
type Payload struct {
	ID           uuid.UUID       `json:"id"`
	Status       string          `json:"status"`
	Says         string          `json:"says"`
	Digest       string          `json:"digest"`
	JointID      string          `json:"joint_id"`
	Signers      []string        `json:"signers"` // empty where any owners may sign
	TypedData    json.RawMessage `json:"typed_data"`
	RawData      string          `json:"raw_data"`
	Message      string          `json:"message"`
	Confirmation string          `json:"confirmation_digest"` // for officers
}

// Agreement is the payment that people agreed on outside of Kivuko.
type Agreement struct {
	From, To string
	Amount   money.Amount
}

// Sign reads what the payload would have the owner sign, and signs it if it is the agreed payment and nothing else.
func (o Owner) Sign(y Payload, want Agreement) (signature string, err error) {
	switch o.Network {
	case exchange.Ethereum:
		signature, err = o.signTyped(y, want)
	case exchange.Tron:
		signature, err = o.signRaw(y, want, time.Now())
	case exchange.Solana:
		signature, err = o.signMessage(y, want)
	}
	if err != nil {
		return "", fmt.Errorf("the owner's tool refuses payload %s: %w", y.ID, err)
	}
	return signature, nil
}

// differs is the refusal of what is not as it was agreed.
func differs(what string, got, want any) error {
	return fmt.Errorf("%s is %v, and %v was agreed", what, got, want)
}
