package ethereum

import (
	"bytes"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"kivuko/chain"
)

// envelope is an unsigned transaction of type 2 in the order of its encoding (EIP-1559).
type envelope struct {
	ChainID    *big.Int
	Nonce      uint64
	GasTipCap  *big.Int
	GasFeeCap  *big.Int
	Gas        uint64
	To         common.Address
	Value      *big.Int
	Data       []byte
	AccessList types.AccessList
}

// encode returns the bytes whose Keccak-256 is signed: the type, and the fields in RLP.
func (e envelope) encode() ([]byte, error) {
	fields, err := rlp.EncodeToBytes(e)
	if err != nil {
		return nil, chain.Wrap(chain.ReasonProtocol, err, "the transaction can't be encoded")
	}
	return append([]byte{types.DynamicFeeTxType}, fields...), nil
}

// decode reads what encode wrote, and refuses any other encoding.
func decode(body []byte) (envelope, error) {
	var e envelope
	if len(body) == 0 || body[0] != types.DynamicFeeTxType {
		return e, chain.Errorf(chain.ReasonProtocol, "the prepared bytes are not a transaction of type %d", types.DynamicFeeTxType)
	}
	if err := rlp.DecodeBytes(body[1:], &e); err != nil {
		return e, chain.Wrap(chain.ReasonProtocol, err, "the prepared bytes are not a transaction")
	}
	again, err := e.encode()
	if err != nil || !bytes.Equal(again, body) {
		return e, chain.Errorf(chain.ReasonProtocol, "the prepared bytes are not in their canonical form")
	}
	return e, nil
}

// transaction adds a signature (65 bytes r‖s‖v) to the fields.
func (e envelope) transaction(signature []byte) (*types.Transaction, error) {
	tx := types.NewTx(&types.DynamicFeeTx{
		ChainID: e.ChainID, Nonce: e.Nonce, GasTipCap: e.GasTipCap, GasFeeCap: e.GasFeeCap, Gas: e.Gas,
		To: &e.To, Value: e.Value, Data: e.Data, AccessList: e.AccessList,
	})
	return tx.WithSignature(types.NewLondonSigner(e.ChainID), signature)
}

// Sign completes a prepared transaction. Its body is the sender followed by the network's encoding, which has no sender: a
// number that was counted for one wallet must not be signed by another. Before signing, the bytes are decoded and must match
// the transfer exactly; afterwards the signature must recover to the sender.
func (c *Client) Sign(u chain.Unsigned, keys ...chain.Key) (chain.Signed, error) {
	if len(keys) != 1 || u.FeePayer != "" {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "a transaction on Ethereum is signed by its sender alone, not by %d keys", len(keys))
	}
	if u.Owners != nil {
		m, err := c.openingCall(u.Transfer, u.Seed, *u.Owners)
		if err != nil {
			return chain.Signed{}, err
		}
		return c.signCall(u, m, keys[0])
	}
	in, err := c.intent(u.Transfer)
	if err != nil {
		return chain.Signed{}, err
	}
	return c.signCall(u, c.message(in), keys[0])
}

// signCall signs the transaction of a call.
func (c *Client) signCall(u chain.Unsigned, m message, key chain.Key) (chain.Signed, error) {
	fields, ours := bytes.CutPrefix(u.Body, m.From.Bytes())
	if !ours {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the prepared bytes are for another sender")
	}
	e, err := decode(fields)
	if err != nil {
		return chain.Signed{}, err
	}
	if !bytes.Equal(crypto.Keccak256(fields), u.Payload) {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the payload is not the hash of the prepared bytes")
	}
	if err := c.says(e, m, u); err != nil {
		return chain.Signed{}, err
	}
	holder, err := c.Address(key.PublicKey())
	if err != nil {
		return chain.Signed{}, err
	}
	if holder != m.From.Hex() {
		return chain.Signed{}, chain.Errorf(chain.ReasonAddress, "the key belongs to %s, the sender is %s", holder, m.From)
	}
	signature, err := key.Sign(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	return seal(u, e, m.From, signature)
}

// seal adds a signature and checks that it is the sender's. A signature with the high half of s is also valid for the same
// bytes, with another transaction id, but no node accepts it (EIP-2).
func seal(u chain.Unsigned, e envelope, sender common.Address, signature []byte) (chain.Signed, error) {
	if len(signature) != crypto.SignatureLength {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "a signature has %d bytes, it must have %d", len(signature), crypto.SignatureLength)
	}
	r, s, v := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:64]), signature[64]
	if !crypto.ValidateSignatureValues(v, r, s, true) {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "a signature has values that no node accepts (EIP-2)")
	}
	tx, err := e.transaction(signature)
	if err != nil {
		return chain.Signed{}, chain.Wrap(chain.ReasonProtocol, err, "the signature can't be added")
	}
	signer, err := types.Sender(types.NewLondonSigner(e.ChainID), tx)
	if err != nil {
		return chain.Signed{}, chain.Wrap(chain.ReasonProtocol, err, "a signature can't be recovered")
	}
	if signer != sender {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the signature is of %s, the sender is %s", signer, sender)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		return chain.Signed{}, chain.Wrap(chain.ReasonProtocol, err, "the signed transaction can't be encoded")
	}
	if again, err := decodeSigned(raw); err != nil || again.Hash() != tx.Hash() {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the signed transaction would change when it is sent")
	}
	return chain.Signed{Unsigned: u, TxID: tx.Hash().Hex(), Raw: raw}, nil
}

// says checks that a transaction does what was intended and nothing else, and that its bid is the prepared one and within
// the ceilings.
func (c *Client) says(e envelope, m message, u chain.Unsigned) error {
	b := bid{tip: e.GasTipCap, cap: e.GasFeeCap}
	cost := eth(new(big.Int).Mul(new(big.Int).SetUint64(e.Gas), b.cap))
	for _, rule := range []struct {
		ok   bool
		what string
	}{
		{e.ChainID.Cmp(c.chainID()) == 0, "the chain"},
		{e.Nonce == u.Nonce, "the number"},
		{e.To == m.To && e.Value.Cmp(m.value()) == 0 && bytes.Equal(e.Data, m.Input), "recipient, amount or token"},
		{len(e.AccessList) == 0, "an access list"},
		{b.public().Tip.Equal(u.Bid.Tip) && b.public().Cap.Equal(u.Bid.Cap), "the bid"},
		{cost.Equal(u.FeeLimit), "the fee limit"},
		{cost.Cmp(c.config.Fees.Most) <= 0 && e.GasTipCap.Cmp(e.GasFeeCap) <= 0, "the fee is above the ceiling"},
	} {
		if !rule.ok {
			return chain.Errorf(chain.ReasonProtocol, "the prepared bytes differ from what was intended: %s", rule.what)
		}
	}
	return nil
}

// decodeSigned reads stored bytes and refuses any that would be sent differently.
func decodeSigned(raw []byte) (*types.Transaction, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, chain.Wrap(chain.ReasonProtocol, err, "the bytes are not a signed transaction")
	}
	again, err := tx.MarshalBinary()
	if err != nil || !bytes.Equal(again, raw) {
		return nil, chain.Errorf(chain.ReasonProtocol, "the bytes would change when they are sent")
	}
	if tx.Type() != types.DynamicFeeTxType || tx.To() == nil {
		return nil, chain.Errorf(chain.ReasonProtocol, "the bytes hold no transfer of type %d", types.DynamicFeeTxType)
	}
	return tx, nil
}
