package ethereum

import (
	"bytes"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"kivuko/chain"
)

// The last byte of a signature, by which a Safe knows its kind (Safe.checkNSignatures).
const (
	typedV  = 27 // and 28: over the typed data
	prefixV = 31 // and 32: over the SafeTx hash as an Ethereum message, made by personal_sign or eth_sign
)

// Signature checks a signature of 65 bytes, r‖s‖v.
//
// v of 27 and 28 is a signature of the typed data. 0 and 1 are the same in the form of our own key store and of some hardware
// wallets, and become 27 and 28. v of 31 and 32 is a signature of the SafeTx hash as a message: for wallets that can't sign
// typed data. It commits its owner no less, because the chain accepts it, so refusing it here would protect from nothing.
//
// A contract's signature, and a hash approved on the chain, are refused: what a contract accepts can change before the
// execution. So is the high half of s, with which anyone could turn a signature into another one.
func (c *Client) Signature(j chain.Joint, signature []byte) (chain.OwnerSignature, error) {
	if err := c.CheckJoint(j); err != nil {
		return chain.OwnerSignature{}, err
	}
	owner, canonical, err := recoverOwner(common.BytesToHash(j.Digest), signature)
	if err != nil {
		return chain.OwnerSignature{}, err
	}
	if !slices.ContainsFunc(j.Quorum.Owners, func(o chain.Owner) bool { return o.Address == owner.Hex() }) {
		return chain.OwnerSignature{}, chain.Errorf(chain.ReasonForeign,
			"the signature is of %s, who is no owner of %s, or of another transaction", owner, j.Account)
	}
	return chain.OwnerSignature{Owner: owner.Hex(), Signature: canonical}, nil
}

// recoverOwner reads whose signature of a SafeTx hash it is, and its canonical form.
func recoverOwner(hash common.Hash, signature []byte) (common.Address, []byte, error) {
	refused := func(format string, args ...any) (common.Address, []byte, error) {
		return common.Address{}, nil, chain.Errorf(chain.ReasonForeign, format, args...)
	}
	if len(signature) != crypto.SignatureLength {
		return refused(
			"a signature has %d bytes, it must have %d: r, s and v; contracts' signatures are not accepted", len(signature), crypto.SignatureLength)
	}
	const addressPadding = wordLength - common.AddressLength
	r, s, v := signature[:wordLength], signature[wordLength:2*wordLength], signature[2*wordLength]
	if v <= 1 && bytes.Equal(r[:addressPadding], make([]byte, addressPadding)) {
		return refused("it is a contract's signature or an approval on the chain, which are not accepted: sign with a key")
	}
	digest, id := hash.Bytes(), v
	switch {
	case v <= 1:
		v += typedV
	case v == typedV || v == typedV+1:
		id -= typedV
	case v == prefixV || v == prefixV+1:
		id -= prefixV
		digest = accounts.TextHash(hash.Bytes())
	default:
		return refused("the last byte of a signature is %d, it must be 27 or 28 (typed data), or 31 or 32 (a message)", v)
	}
	if !crypto.ValidateSignatureValues(id, new(big.Int).SetBytes(r), new(big.Int).SetBytes(s), true) {
		return refused("the signature has values out of range, or s in its high half")
	}
	canonical := append(bytes.Clone(signature[:2*wordLength]), id)
	key, err := crypto.SigToPub(digest, canonical)
	if err != nil {
		return refused("the signature is of no key: %s", err)
	}
	canonical[2*wordLength] = v
	return crypto.PubkeyToAddress(*key), canonical, nil
}

// joined are signatures in the order that the contract demands: by the address of their owners.
func joined(signatures []chain.OwnerSignature) []byte {
	ordered := slices.SortedFunc(slices.Values(signatures), func(a, b chain.OwnerSignature) int {
		return common.HexToAddress(a.Owner).Cmp(common.HexToAddress(b.Owner))
	})
	var all []byte
	for _, s := range ordered {
		all = append(all, s.Signature...)
	}
	return all
}

// verified checks that signatures are canonical, each of another owner of a joint transaction.
func (c *Client) verified(j chain.Joint, signatures []chain.OwnerSignature) error {
	seen := map[string]bool{}
	for _, s := range signatures {
		own, err := c.Signature(j, s.Signature)
		if err != nil {
			return err
		}
		if own.Owner != s.Owner || !bytes.Equal(own.Signature, s.Signature) {
			return chain.Errorf(chain.ReasonForeign,
				"a signature under the name of %s is of %s, or not in its canonical form", quote(s.Owner), own.Owner)
		}
		if seen[own.Owner] {
			return chain.Errorf(chain.ReasonForeign, "%s signed twice, which counts once", own.Owner)
		}
		seen[own.Owner] = true
	}
	return nil
}
