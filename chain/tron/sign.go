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
	"kivuko/exchange/money"
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
	raw := &core.TransactionRaw{}
	if err := proto.Unmarshal(u.Body, raw); err != nil {
		return chain.Signed{}, chain.Wrap(chain.ReasonProtocol, err, "the prepared bytes are not a transaction")
	}
	digest := sha256.Sum256(u.Body)
	if !bytes.Equal(digest[:], u.Payload) {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the payload is not the hash of the prepared bytes")
	}
	if err := c.says(raw, in); err != nil {
		return chain.Signed{}, err
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
	encoded, err := deterministic.Marshal(&core.Transaction{RawData: raw, Signature: [][]byte{signature}})
	if err != nil {
		return chain.Signed{}, chain.Wrap(chain.ReasonProtocol, err, "the signed transaction can't be encoded")
	}
	if _, err := decodeSigned(encoded); err != nil {
		return chain.Signed{}, err
	}
	return chain.Signed{Unsigned: u, TxID: hex.EncodeToString(digest[:]), Raw: encoded}, nil
}

// says checks that a transaction does what was intended and nothing else.
func (c *Client) says(raw *core.TransactionRaw, in intent) error {
	wrong := func(what string) error {
		return chain.Errorf(chain.ReasonProtocol, "the prepared bytes differ from the transfer: %s", what)
	}
	if len(raw.GetContract()) != 1 || len(raw.GetData()) != 0 || raw.GetContract()[0].GetPermissionId() != 0 {
		return wrong("not one plain contract")
	}
	body, err := deterministic.Marshal(raw)
	if err != nil {
		return wrong("not encodable")
	}
	want := proto.CloneOf(raw)
	want.Contract = nil
	if in.amount.Asset() == money.TRX {
		err = setContract(want, core.Transaction_Contract_TransferContract,
			&core.TransferContract{OwnerAddress: in.from.full(), ToAddress: in.to.full(), Amount: in.amount.Units().Int64()})
	} else {
		err = c.setTokenTransfer(want, in)
	}
	if err != nil {
		return err
	}
	rebuilt, err := deterministic.Marshal(want)
	if err != nil || !bytes.Equal(body, rebuilt) {
		return wrong("sender, recipient, amount or token")
	}
	if limit := big.NewInt(raw.GetFeeLimit()); limit.Cmp(c.config.Fees.Cap.Units()) > 0 {
		return wrong("the fee limit is above the cap")
	}
	return nil
}

func (c *Client) setTokenTransfer(raw *core.TransactionRaw, in intent) error {
	data, err := transferCall(in.to, in.amount)
	if err != nil {
		return err
	}
	return setContract(raw, core.Transaction_Contract_TriggerSmartContract, &core.TriggerSmartContract{
		OwnerAddress: in.from.full(), ContractAddress: c.contracts[in.amount.Asset()].full(), Data: data,
	})
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
