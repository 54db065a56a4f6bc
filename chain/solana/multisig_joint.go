package solana

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
)

// joint is the part of a payment that its sender's owners sign. The message of a transaction lists all who must sign it. So
// it is made for as many owners as the threshold, and another choice of owners is another message.
type joint struct {
	quorum
	signers []sdk.PublicKey // in the order of their addresses
}

// jointOf checks a draft before any network call.
func (c *Client) jointOf(d chain.JointDraft) (intent, error) {
	from, err := c.holder(d.Account)
	if err != nil {
		return intent{}, chain.Errorf(chain.ReasonAddress, "the account's %s", err)
	}
	refuse := func(r chain.Reason, format string, args ...any) (intent, error) {
		return intent{}, chain.Errorf(r, format, args...)
	}
	switch {
	case d.Owners != nil:
		return refuse(chain.ReasonUnsupported, "the owners of %s can't be changed: the Token program has no instruction for that. Open another account, and pay all tokens to it", from)
	case d.Transfer == nil:
		return refuse(chain.ReasonUnsupported, "the owners don't sign a cancellation: the fee payer advances the nonce account, which ends all that was signed with its value")
	case d.Transfer.Amount.Asset() == c.Network().NativeCoin():
		return refuse(chain.ReasonUnsupported, "SOL can't be moved by an account of several owners, only tokens")
	case d.Sequence != 0 || d.Quorum.Sequence != 0 || d.Quorum.Control != nil || d.Quorum.Permission != 0:
		return refuse(chain.ReasonUnsupported, "Solana has no sequence numbers, no permissions and no second quorum")
	case d.Transfer.From != d.Account:
		return refuse(chain.ReasonAddress, "the transfer is from %s and not from the account", quote(d.Transfer.From))
	case d.FeePayer == "" || d.NonceAccount == "":
		return refuse(chain.ReasonUnsupported, "a joint transaction needs a fee payer and a nonce account")
	}
	in, err := c.intentFrom(from, *d.Transfer, d.FeePayer)
	if err != nil {
		return in, err
	}
	in.joint, err = jointFor(d)
	if err == nil && slices.Contains(in.joint.owners, in.payer) {
		err = chain.Errorf(chain.ReasonUnsupported, "the fee payer %s is an owner, and its signature for the fee would count as an owner's", in.payer)
	}
	return in, err
}

// jointFor checks the owners of a draft and the choice of those who sign. Where all owners must sign, there is no choice.
func jointFor(d chain.JointDraft) (*joint, error) {
	q, err := quorumFrom(d.Quorum.Owners, d.Quorum.Threshold)
	if err != nil {
		return nil, chain.Errorf(chain.ReasonForeign, "the quorum %s", err)
	}
	j := &joint{quorum: q}
	if len(d.Signers) == 0 && len(q.owners) == int(q.threshold) {
		j.signers = q.owners
		return j, nil
	}
	if len(d.Signers) != int(q.threshold) {
		return nil, chain.Errorf(chain.ReasonUnsupported, "the transaction names %d signers, and exactly %d of the owners sign it", len(d.Signers), q.threshold)
	}
	for i, s := range d.Signers {
		key, err := parse(s)
		if err != nil || !slices.Contains(q.owners, key) {
			return nil, chain.Errorf(chain.ReasonForeign, "the signer %q is not an owner", quote(s))
		}
		if slices.Contains(d.Signers[:i], s) {
			return nil, chain.Errorf(chain.ReasonForeign, "the signer %s is named twice", key)
		}
		j.signers = append(j.signers, key)
	}
	sortByAddress(j.signers)
	return j, nil
}

// routeJoint compares the account's owners with the approved ones.
func (p *plan) routeJoint(s snapshot) error {
	q, err := s.accounts[p.from].shared()
	if err != nil {
		return chain.Errorf(chain.ReasonForeign, "the account %s %s", p.from, err)
	}
	if !q.equal(p.joint.quorum) {
		return chain.Errorf(chain.ReasonForeign, "the account %s has other owners, or needs another number of them, than was approved", p.from)
	}
	return nil
}

// PrepareJoint implements chain.Multisig. The message uses the value of a nonce account, so it doesn't expire. It ends when
// the account's authority, the fee payer, advances it.
func (c *Client) PrepareJoint(ctx context.Context, d chain.JointDraft) (chain.Joint, error) {
	in, err := c.jointOf(d)
	if err != nil {
		return chain.Joint{}, err
	}
	d.Signers = nil
	for _, key := range in.joint.signers {
		d.Signers = append(d.Signers, key.String())
	}
	return ask(ctx, c.nodes, func(ctx context.Context, n *node) (chain.Joint, error) {
		u, err := c.prepareAt(ctx, n, chain.Draft{Transfer: *d.Transfer, FeePayer: d.FeePayer, NonceAccount: d.NonceAccount}, in)
		if err != nil {
			return chain.Joint{}, err
		}
		at, err := headerAt(ctx, n, u.NonceBlock, finalized)
		if err != nil {
			return chain.Joint{}, err
		}
		j := chain.Joint{
			JointDraft: d, Digest: u.Payload, Body: u.Body, ID: jointID(u.Body), RefBlock: u.RefBlock, Block: at, FeeLimit: lamports(0),
		}
		return j, c.CheckJoint(j)
	})
}

// jointID names a message before it has the signature by which the network names its transaction.
func jointID(body []byte) string { return sdk.Hash(sha256.Sum256(body)).String() }

// unsigned is a joint transaction as one that the fee payer signs, at the highest cost that is allowed.
func (c *Client) unsigned(j chain.Joint) chain.Unsigned {
	return chain.Unsigned{
		Transfer: *j.Transfer, FeePayer: j.FeePayer, Payload: j.Digest, Body: j.Body, RefBlock: j.RefBlock,
		NonceAccount: j.NonceAccount, NonceBlock: j.Block.Number, FeeLimit: c.config.Fees.Cap,
	}
}

// CheckJoint implements chain.Multisig.
func (c *Client) CheckJoint(j chain.Joint) error {
	_, err := c.checked(j)
	return err
}

func (c *Client) checked(j chain.Joint) (intent, error) {
	in, err := c.jointOf(j.JointDraft)
	if err != nil {
		return in, err
	}
	if _, err := c.says(c.unsigned(j), in); err != nil {
		return in, err
	}
	if j.ID != jointID(j.Body) || !j.ExpiresAt.IsZero() || !j.FeeLimit.Equal(lamports(0)) {
		return in, chain.Errorf(chain.ReasonProtocol, "the joint transaction has another id than its message, an expiry, or a fee that its account pays")
	}
	return in, nil
}

// Signature implements chain.Multisig. A signature is good only for the owners whom the message names: it lists them.
func (c *Client) Signature(j chain.Joint, signature []byte) (chain.OwnerSignature, error) {
	in, err := c.checked(j)
	if err != nil {
		return chain.OwnerSignature{}, err
	}
	if len(signature) != sdk.SignatureLength {
		return chain.OwnerSignature{}, chain.Errorf(chain.ReasonForeign, "a signature has %d bytes, this one has %d", sdk.SignatureLength, len(signature))
	}
	for _, owner := range in.joint.owners {
		if !verifies(owner, j.Body, signature) {
			continue
		}
		if !slices.Contains(in.joint.signers, owner) {
			return chain.OwnerSignature{}, chain.Errorf(chain.ReasonForeign, "the signature is of %s, who is an owner but not one of the %d whom the message names", owner, len(in.joint.signers))
		}
		return chain.OwnerSignature{Owner: owner.String(), Signature: bytes.Clone(signature)}, nil
	}
	return chain.OwnerSignature{}, chain.Errorf(chain.ReasonForeign, "the signature is not of an owner over this message")
}
