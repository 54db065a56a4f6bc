package solana

import (
	"bytes"
	"context"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// signaturesOf are the signatures of a message in its order, the fee payer's empty. All that the message names must be there,
// once. Those of other owners, who signed another choice, don't count.
func (c *Client) signaturesOf(j chain.Joint, in intent, given []chain.OwnerSignature) ([]sdk.Signature, error) {
	by := map[string]sdk.Signature{}
	for _, s := range given {
		checked, err := c.Signature(j, s.Signature)
		if err != nil {
			return nil, err
		}
		if checked.Owner != s.Owner {
			return nil, chain.Errorf(chain.ReasonForeign, "a signature of %s is given as one of %q", checked.Owner, quote(s.Owner))
		}
		if _, twice := by[s.Owner]; twice {
			return nil, chain.Errorf(chain.ReasonForeign, "the owner %s signed twice", s.Owner)
		}
		by[s.Owner] = sdk.Signature(checked.Signature)
	}
	all := make([]sdk.Signature, 1, in.signatures())
	for _, signer := range in.joint.signers {
		signature, signed := by[signer.String()]
		if !signed {
			return nil, chain.Errorf(chain.ReasonForeign, "the signature of %s is missing: %d of %d are there", signer, len(by), len(in.joint.signers))
		}
		all = append(all, signature)
	}
	return all, nil
}

// PrepareExecution implements chain.Multisig. The message was made by PrepareJoint; only the fee payer's signature is missing.
func (c *Client) PrepareExecution(ctx context.Context, j chain.Joint, signatures []chain.OwnerSignature, d chain.ExecutionDraft) (chain.Execution, error) {
	in, err := c.checked(j)
	if err != nil {
		return chain.Execution{}, err
	}
	signed, err := c.signaturesOf(j, in, signatures)
	if err != nil {
		return chain.Execution{}, err
	}
	if d.Payer != "" && d.Payer != j.FeePayer || d.Nonce != 0 || !d.Bump.IsZero() {
		return chain.Execution{}, chain.Errorf(chain.ReasonUnsupported, "the message names the fee payer %s, and there are no sequence numbers and no bids", j.FeePayer)
	}
	return ask(ctx, c.nodes, func(ctx context.Context, n *node) (chain.Execution, error) {
		x := chain.Execution{Unsigned: c.unsigned(j), Joint: j, Signatures: signatures}
		var err error
		x.FeeLimit, err = c.executable(ctx, n, j, in, signed)
		return x, err
	})
}

// executable checks with the facts of one node that a message can be included now, and returns what it can cost.
func (c *Client) executable(ctx context.Context, n *node, j chain.Joint, in intent, signatures []sdk.Signature) (none money.Amount, err error) {
	_, p, err := reads(c.unsigned(j), in)
	if err != nil {
		return none, err
	}
	ref, err := c.reference(ctx, n)
	if err != nil {
		return none, err
	}
	state, found, err := readNonce(ctx, n, confirmed, p.nonce, ref.slot)
	if err != nil {
		return none, err
	}
	if !found || state.value != p.blockhash || state.authority != p.payer {
		return none, chain.Errorf(chain.ReasonReverts, "the nonce account %s has another value than the one that was signed", p.nonce)
	}
	s, err := readEnds(ctx, n, in, ref.slot)
	if err != nil {
		return none, err
	}
	routed := p // the message is fixed: only the refusals matter
	if err := routed.route(s); err != nil {
		return none, err
	}
	r, err := readRents(ctx, n)
	if err != nil {
		return none, err
	}
	limit, err := c.feeLimit(ctx, n, p, s, r, j.Body, ref.slot) // says what the fee payer lacks, as a simulation would not
	if err != nil {
		return none, err
	}
	_, err = simulateSigned(ctx, n, signatures, j.Body, ref.slot)
	return limit, err
}

// SignExecution implements chain.Multisig, with the key of the fee payer.
func (c *Client) SignExecution(x chain.Execution, payer ...chain.Key) (chain.Signed, error) {
	in, err := c.checked(x.Joint)
	if err != nil {
		return chain.Signed{}, err
	}
	signatures, err := c.signaturesOf(x.Joint, in, x.Signatures)
	if err != nil {
		return chain.Signed{}, err
	}
	// The message of the execution must say the same, within its own limit of cost, and must be the one that was signed.
	if !x.Transfer.Equal(*x.Joint.Transfer) || x.FeePayer != x.Joint.FeePayer || x.NonceBlock != x.Joint.Block.Number || !bytes.Equal(x.Body, x.Joint.Body) {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the execution is not of its joint transaction")
	}
	if _, err := c.says(x.Unsigned, in); err != nil {
		return chain.Signed{}, err
	}
	if len(payer) != 1 {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "an execution is signed with the fee payer's key, not with %d keys", len(payer))
	}
	if err := owns(payer[0], in.payer, "fee payer"); err != nil {
		return chain.Signed{}, err
	}
	made, err := payer[0].Sign(x.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	if len(made) != sdk.SignatureLength {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "a signature is not of %s", in.payer)
	}
	signatures[0] = sdk.Signature(made)
	raw := wire(signatures, x.Body)
	id, err := decodeSigned(raw) // verifies all signatures
	if err != nil {
		return chain.Signed{}, err
	}
	return chain.Signed{Unsigned: x.Unsigned, TxID: id, Raw: raw}, nil
}
