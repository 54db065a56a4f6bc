package tron

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math/big"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"

	"kivuko/chain"
)

// Sign completes a prepared transaction. Before signing, the bytes are decoded and must match the transfer exactly;
// afterwards the signature must recover to the sender.
func (c *Client) Sign(u chain.Unsigned, keys ...chain.Key) (chain.Signed, error) {
	if len(keys) != 1 {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "a transaction on TRON is signed by its sender alone, not by %d keys", len(keys))
	}
	key := keys[0]
	in, err := c.intent(u.Transfer)
	if err != nil {
		return chain.Signed{}, err
	}
	raw, err := c.says(u.Body, func(r *core.TransactionRaw) error { return c.setTransfer(r, in) })
	if err != nil {
		return chain.Signed{}, err
	}
	digest := sha256.Sum256(u.Body)
	if !bytes.Equal(digest[:], u.Payload) {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the payload is not the hash of the prepared bytes")
	}
	if raw.GetExpiration() != u.ExpiresAt.UnixMilli() {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the prepared bytes expire at a time other than the prepared one")
	}
	holder, err := c.Address(key.PublicKey())
	if err != nil {
		return chain.Signed{}, err
	}
	if holder != u.Transfer.From {
		return chain.Signed{}, chain.Errorf(chain.ReasonAddress, "the key belongs to %s, the sender is %s", holder, u.Transfer.From)
	}
	signature, err := key.Sign(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	signer, err := recoverSigner(digest, signature)
	if err != nil {
		return chain.Signed{}, err
	}
	if signer != in.from {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the signature is of %s, the sender is %s", signer, in.from)
	}
	return finish(u, raw, signature)
}

// finish puts the signatures to a transaction.
func finish(u chain.Unsigned, raw *core.TransactionRaw, signatures ...[]byte) (chain.Signed, error) {
	encoded, err := deterministic.Marshal(&core.Transaction{RawData: raw, Signature: signatures})
	if err != nil {
		return chain.Signed{}, chain.Wrap(chain.ReasonProtocol, err, "the signed transaction can't be encoded")
	}
	if _, err := decodeSigned(encoded); err != nil {
		return chain.Signed{}, err
	}
	return chain.Signed{Unsigned: u, TxID: hex.EncodeToString(u.Payload), Raw: encoded}, nil
}

// says decodes a transaction, which must have the contract that set makes and nothing else, to the last byte.
func (c *Client) says(body []byte, set func(*core.TransactionRaw) error) (*core.TransactionRaw, error) {
	raw := &core.TransactionRaw{}
	if err := proto.Unmarshal(body, raw); err != nil {
		return nil, chain.Wrap(chain.ReasonProtocol, err, "the prepared bytes are not a transaction")
	}
	want := &core.TransactionRaw{
		RefBlockBytes: raw.GetRefBlockBytes(), RefBlockHash: raw.GetRefBlockHash(),
		Expiration: raw.GetExpiration(), Timestamp: raw.GetTimestamp(), FeeLimit: raw.GetFeeLimit(),
	}
	if err := set(want); err != nil {
		return nil, err
	}
	rebuilt, err := deterministic.Marshal(want)
	if err != nil || !bytes.Equal(body, rebuilt) {
		return nil, chain.Errorf(chain.ReasonProtocol, "the prepared bytes say something other than what they were prepared for")
	}
	if limit := big.NewInt(raw.GetFeeLimit()); limit.Cmp(c.config.Fees.Cap.Units()) > 0 {
		return nil, chain.Errorf(chain.ReasonProtocol, "the prepared bytes have a fee limit above the cap")
	}
	return raw, nil
}

// recoverSigner returns the signer of a 65-byte signature r‖s‖v, with v 0 or 1, or 27 or 28 as some wallets write it.
func recoverSigner(digest [sha256.Size]byte, signature []byte) (accountID, error) {
	if len(signature) != signatureLength {
		return accountID{}, chain.Errorf(chain.ReasonProtocol, "a signature has %d bytes, it must have %d", len(signature), signatureLength)
	}
	plain := bytes.Clone(signature)
	if plain[64] >= 27 {
		plain[64] -= 27
	}
	key, err := crypto.SigToPub(digest[:], plain)
	if err != nil {
		return accountID{}, chain.Wrap(chain.ReasonProtocol, err, "a signature can't be recovered")
	}
	return accountID(crypto.PubkeyToAddress(*key)), nil
}

// decodeSigned reads stored bytes and refuses any that would be sent differently.
func decodeSigned(encoded []byte) (*core.Transaction, error) {
	tx := &core.Transaction{}
	if err := proto.Unmarshal(encoded, tx); err != nil {
		return nil, chain.Wrap(chain.ReasonProtocol, err, "the bytes are not a signed transaction")
	}
	again, err := deterministic.Marshal(tx)
	if err != nil || !bytes.Equal(again, encoded) {
		return nil, chain.Errorf(chain.ReasonProtocol, "the bytes would change when they are sent")
	}
	if len(tx.GetRawData().GetContract()) != 1 || len(tx.GetSignature()) == 0 {
		return nil, chain.Errorf(chain.ReasonProtocol, "the bytes hold no signed transaction")
	}
	return tx, nil
}

// txID is the id of a transaction: the SHA-256 of its raw_data.
func txID(raw *core.TransactionRaw) (string, error) {
	body, err := deterministic.Marshal(raw)
	if err != nil {
		return "", chain.Wrap(chain.ReasonProtocol, err, "a transaction can't be encoded")
	}
	digest := sha256.Sum256(body)
	return hex.EncodeToString(digest[:]), nil
}
