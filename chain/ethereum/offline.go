package ethereum

import (
	"bytes"

	"github.com/ethereum/go-ethereum/crypto"

	"kivuko/chain"
)

var _ chain.Offline = (*Client)(nil)

// TakeSigned implements chain.Offline. It rebuilds the bytes from the prepared transaction and the signature, with the
// checks of Sign.
func (c *Client) TakeSigned(u chain.Unsigned, raw []byte) (chain.Signed, error) {
	in, err := c.intent(u.Transfer)
	if err != nil {
		return chain.Signed{}, err
	}
	tx, err := decodeSigned(raw)
	if err != nil {
		return chain.Signed{}, err
	}
	fields, err := envelope{
		ChainID: tx.ChainId(), Nonce: tx.Nonce(), GasTipCap: tx.GasTipCap(), GasFeeCap: tx.GasFeeCap(), Gas: tx.Gas(),
		To: *tx.To(), Value: tx.Value(), Data: tx.Data(), AccessList: tx.AccessList(),
	}.encode()
	if err != nil || !bytes.Equal(append(in.from.Bytes(), fields...), u.Body) {
		return chain.Signed{}, chain.Errorf(chain.ReasonForeign, "the transaction is not the one that was handed out")
	}
	v, r, s := tx.RawSignatureValues()
	if r.BitLen() > 256 || s.BitLen() > 256 || v.BitLen() > 1 {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the signature has values that no node accepts")
	}
	signature := make([]byte, crypto.SignatureLength)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:64])
	signature[64] = byte(v.Uint64())
	key, err := crypto.SigToPub(u.Payload, signature)
	if err != nil {
		return chain.Signed{}, chain.Wrap(chain.ReasonProtocol, err, "the signature can't be recovered")
	}
	return c.Sign(u, chain.Presigned(crypto.FromECDSAPub(key), signature))
}

// KnownID implements chain.Offline: the id depends on the signature.
func (c *Client) KnownID(chain.Unsigned) string { return "" }
