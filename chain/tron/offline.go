package tron

import (
	"bytes"
	"encoding/hex"

	"github.com/ethereum/go-ethereum/crypto"

	"kivuko/chain"
)

var _ chain.Offline = (*Client)(nil)

// TakeSigned implements chain.Offline. It rebuilds the bytes from the prepared transaction and the signature, with the
// checks of Sign.
func (c *Client) TakeSigned(u chain.Unsigned, raw []byte) (chain.Signed, error) {
	tx, err := decodeSigned(raw)
	if err != nil {
		return chain.Signed{}, err
	}
	if len(tx.GetSignature()) != 1 {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the transaction has %d signatures, it must have one", len(tx.GetSignature()))
	}
	if body, err := deterministic.Marshal(tx.GetRawData()); err != nil || !bytes.Equal(body, u.Body) {
		return chain.Signed{}, chain.Errorf(chain.ReasonForeign, "the transaction is not the one that was handed out")
	}
	signature := tx.GetSignature()[0]
	if len(signature) != signatureLength {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "a signature has %d bytes, it must have %d", len(signature), signatureLength)
	}
	signature = bytes.Clone(signature)
	if signature[signatureLength-1] >= 27 { // as some wallets write it
		signature[signatureLength-1] -= 27
	}
	key, err := crypto.SigToPub(u.Payload, signature)
	if err != nil {
		return chain.Signed{}, chain.Wrap(chain.ReasonProtocol, err, "the signature can't be recovered")
	}
	return c.Sign(u, chain.Presigned(crypto.FromECDSAPub(key), signature))
}

// KnownID implements chain.Offline: the id is the hash that is signed.
func (c *Client) KnownID(u chain.Unsigned) string { return hex.EncodeToString(u.Payload) }
