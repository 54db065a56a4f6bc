package solana

import (
	"bytes"

	bin "github.com/gagliardetto/binary"
	sdk "github.com/gagliardetto/solana-go"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"kivuko/chain"
)

// Sign completes a prepared transaction with the sender's key and then, if another account pays the fee, with that account's
// key. Before signing, the bytes are decoded and must match the transfer exactly; afterwards every signature must verify.
// The first signature, the fee payer's, is the transaction's id.
func (c *Client) Sign(u chain.Unsigned, keys ...chain.Key) (chain.Signed, error) {
	in, err := c.intentOf(u)
	if err != nil {
		return chain.Signed{}, err
	}
	m, err := c.says(u, in)
	if err != nil {
		return chain.Signed{}, err
	}
	want := 1
	if u.FeePayer != "" {
		want = 2 // even if the sender is named as the payer: then both keys are the same
	}
	if len(keys) != want {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the transaction is signed with %d keys, not with %d", want, len(keys))
	}
	if err := owns(keys[0], in.from, "sender"); err != nil {
		return chain.Signed{}, err
	}
	if err := owns(keys[len(keys)-1], in.payer, "fee payer"); err != nil {
		return chain.Signed{}, err
	}
	// A message lists the fee payer first; the keys come in the opposite order.
	signers := m.Signers()
	signatures := make([]sdk.Signature, len(signers))
	for i, signer := range signers {
		made, err := keys[len(keys)-1-i].Sign(u.Payload)
		if err != nil {
			return chain.Signed{}, err
		}
		if len(made) != sdk.SignatureLength || !signer.Verify(u.Payload, sdk.Signature(made)) {
			return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "a signature is not of %s", signer)
		}
		signatures[i] = sdk.Signature(made)
	}
	raw := wire(signatures, u.Body)
	id, err := decodeSigned(raw)
	if err != nil {
		return chain.Signed{}, err
	}
	return chain.Signed{Unsigned: u, TxID: id, Raw: raw}, nil
}

func owns(k chain.Key, want sdk.PublicKey, who string) error {
	if !bytes.Equal(k.PublicKey(), want[:]) {
		return chain.Errorf(chain.ReasonAddress, "the key is not of the %s %s", who, want)
	}
	return nil
}

// says checks that a message does what was intended and nothing else, and costs no more than is allowed.
func (c *Client) says(u chain.Unsigned, in intent) (*sdk.Message, error) {
	m, p, err := reads(u, in)
	if err != nil {
		return nil, err
	}
	if p.limit > maxUnits || p.price > c.config.Fees.PriceCeiling {
		return nil, chain.Errorf(chain.ReasonFeeTooHigh, "the prepared bytes bid %d for each of %d units of computation", p.price, p.limit)
	}
	if most := lamports(mostFee(in.signatures(), p.limit, p.price).Uint64()); most.Cmp(u.FeeLimit) > 0 {
		return nil, chain.Errorf(chain.ReasonFeeTooHigh, "the prepared bytes may cost %s SOL, their limit is %s", most, u.FeeLimit)
	}
	return m, c.withinCap(u.FeeLimit)
}

// reads reads the parts of a message that the intent does not fix. The message built from both must be the same bytes.
func reads(u chain.Unsigned, in intent) (*sdk.Message, plan, error) {
	refuse := func(err error) (*sdk.Message, plan, error) { return nil, plan{}, err }
	if !bytes.Equal(u.Body, u.Payload) {
		return refuse(chain.Errorf(chain.ReasonProtocol, "the payload is not the prepared message"))
	}
	m, err := readMessage(u.Body)
	if err != nil {
		return refuse(err)
	}
	nonce, err := nonceOf(u, in)
	if err != nil {
		return refuse(err)
	}
	p, err := planOf(in, nonce, m)
	if err != nil {
		return refuse(err)
	}
	again, err := p.message()
	if err != nil {
		return refuse(err)
	}
	if !bytes.Equal(again, u.Body) {
		return refuse(chain.Errorf(chain.ReasonProtocol, "the prepared bytes differ from the transfer: sender, recipient, amount, token or fee payer"))
	}
	if durable := !nonce.IsZero(); p.blockhash.String() != u.RefBlock || (u.LastValidHeight == 0) != durable || (u.NonceBlock == 0) == durable {
		return refuse(chain.Errorf(chain.ReasonProtocol, "the prepared bytes refer to a block other than the prepared one"))
	}
	return m, p, nil
}

// strict are the rules by which the network verifies a signature (ed25519-dalek verify_strict). Those of Go's standard library
// also accept points of a small order, and the network would silently drop such a transaction.
var strict = &ed25519.Options{Verify: &ed25519.VerifyOptions{CofactorlessVerify: true}}

func verifies(key sdk.PublicKey, message, signature []byte) bool {
	return ed25519.VerifyWithOptions(key[:], message, signature, strict)
}

// decodeSigned reads stored bytes, refuses any that would be sent differently or whose signatures do not verify, and returns
// the transaction's id.
func decodeSigned(raw []byte) (string, error) {
	wrong := chain.Errorf(chain.ReasonProtocol, "the bytes are not a signed transaction")
	if len(raw) == 0 || len(raw) > maxTransactionBytes {
		return "", wrong
	}
	decoder := bin.NewBinDecoder(raw)
	tx := &sdk.Transaction{}
	if err := tx.UnmarshalWithDecoder(decoder); err != nil || decoder.Remaining() != 0 || tx.Sanitize() != nil {
		return "", wrong
	}
	if again, err := tx.MarshalBinary(); err != nil || !bytes.Equal(again, raw) {
		return "", wrong
	}
	if err := tx.VerifySignatures(); err != nil {
		return "", chain.Errorf(chain.ReasonProtocol, "a signature of the transaction does not verify")
	}
	return tx.Signatures[0].String(), nil
}
