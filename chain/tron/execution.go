package tron

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"slices"

	"kivuko/chain"
	"kivuko/exchange"
)

// PrepareExecution implements chain.Multisig. On TRON the joint transaction itself is sent, with the signatures that it needs
// and no more: each further one costs bandwidth. The account pays. A missing fee is ReasonGas, as for an ordinary payment.
func (c *Client) PrepareExecution(ctx context.Context, j chain.Joint, signatures []chain.OwnerSignature, d chain.ExecutionDraft) (chain.Execution, error) {
	if d.Payer != "" || d.Nonce != 0 || !d.Bump.IsZero() {
		return chain.Execution{}, chain.Errorf(chain.ReasonUnsupported, "TRON has no fee payer, no sequence numbers and no bids")
	}
	p, _, err := c.checked(j)
	if err != nil {
		return chain.Execution{}, err
	}
	all, err := p.verified(j, signatures)
	if err != nil {
		return chain.Execution{}, err
	}
	before, err := c.Locate(ctx, j.ID)
	if err != nil {
		return chain.Execution{}, err
	}
	switch before.Stage {
	case chain.StageIncluded, chain.StageFinal:
		return chain.Execution{}, chain.Errorf(chain.ReasonReverts, "the transaction is in block %d already, and no block takes it twice", before.Block.Number)
	case chain.StagePending: // someone has sent it, and nodes count what it will pay as gone
		return chain.Execution{}, chain.Errorf(chain.ReasonUnavailable, "the transaction waits for a block already")
	case chain.StageAbsent:
	}
	return build(ctx, c, p.in.from, func(ctx context.Context, b basis) (chain.Execution, error) {
		if !b.latest.Time.Before(j.ExpiresAt) {
			return chain.Execution{}, chain.Errorf(chain.ReasonReverts, "the transaction has expired: no block takes it after %s", j.ExpiresAt)
		}
		now, err := p.standing(b.sender)
		if err != nil {
			return chain.Execution{}, err
		}
		enough, err := p.enough(now, all)
		if err != nil {
			return chain.Execution{}, err
		}
		u, err := c.prepareAgain(ctx, b, j, p, len(enough))
		return chain.Execution{Unsigned: u, Joint: j, Signatures: enough}, err
	})
}

// prepareAgain builds the same bytes again, with the checks of now.
func (c *Client) prepareAgain(ctx context.Context, b basis, j chain.Joint, p plan, signatures int) (chain.Unsigned, error) {
	_, raw, err := c.checked(j)
	if err != nil {
		return chain.Unsigned{}, err
	}
	raw.Contract, p.in.signatures = nil, signatures
	u, err := c.prepareJoint(ctx, b, j.JointDraft, p, raw)
	if err == nil && !bytes.Equal(u.Body, j.Body) {
		err = chain.Errorf(chain.ReasonProtocol, "the transaction that was signed can't be built again")
	}
	return u, err
}

// verified checks signatures and returns them in their canonical form. One that is wrong spoils the others on the chain.
func (p plan) verified(j chain.Joint, signatures []chain.OwnerSignature) ([]chain.OwnerSignature, error) {
	var all []chain.OwnerSignature
	for _, s := range signatures {
		good, err := p.signature(j, s.Signature)
		switch {
		case err != nil:
			return nil, err
		case good.Owner != s.Owner:
			return nil, chain.Errorf(chain.ReasonForeign, "the signature of %s is of %s", s.Owner, good.Owner)
		case slices.ContainsFunc(all, func(o chain.OwnerSignature) bool { return o.Owner == good.Owner }):
			return nil, chain.Errorf(chain.ReasonForeign, "%s has signed twice", good.Owner)
		}
		all = append(all, good)
	}
	return all, nil
}

// enough takes the fewest signatures that suffice, both by the quorum for which the transaction was approved and by the
// present one, and orders them by owner.
func (p plan) enough(now chain.Quorum, signatures []chain.OwnerSignature) ([]chain.OwnerSignature, error) {
	present := now
	if !p.pays {
		present = controlling(now)
	} else if now.Permission != p.in.permission {
		return nil, chain.Errorf(chain.ReasonForeign, "payments now use permission %d, and the transaction was signed for %d", now.Permission, p.in.permission)
	}
	for _, s := range signatures {
		if weight(present, s.Owner) == 0 {
			return nil, chain.Errorf(chain.ReasonForeign, "%s has signed and is no owner any more", s.Owner)
		}
	}
	heaviest := slices.SortedStableFunc(slices.Values(signatures), func(a, b chain.OwnerSignature) int {
		return cmp.Or(cmp.Compare(weight(present, b.Owner), weight(present, a.Owner)), cmp.Compare(a.Owner, b.Owner))
	})
	for i := range heaviest {
		if some := heaviest[:i+1]; reached(present, some) && reached(p.signers, some) {
			return slices.SortedFunc(slices.Values(some), func(a, b chain.OwnerSignature) int { return cmp.Compare(a.Owner, b.Owner) }), nil
		}
	}
	return nil, chain.Errorf(chain.ReasonForeign, "%d signatures with a weight of %d don't suffice: %d is wanted now, and %d when it was approved",
		len(signatures), sum(present, signatures), present.Threshold, p.signers.Threshold)
}

func weight(q chain.Quorum, owner string) uint32 {
	for _, o := range q.Owners {
		if o.Address == owner {
			return o.Weight
		}
	}
	return 0
}

func sum(q chain.Quorum, signatures []chain.OwnerSignature) uint64 {
	var n uint64
	for _, s := range signatures {
		n += uint64(weight(q, s.Owner))
	}
	return n
}

func reached(q chain.Quorum, signatures []chain.OwnerSignature) bool {
	return sum(q, signatures) >= uint64(q.Threshold)
}

// SignExecution implements chain.Multisig. No key is needed: the owners have signed.
func (c *Client) SignExecution(x chain.Execution, payer ...chain.Key) (chain.Signed, error) {
	if len(payer) != 0 {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "an execution on TRON is signed by the owners alone")
	}
	p, raw, err := c.checked(x.Joint)
	if err != nil {
		return chain.Signed{}, err
	}
	all, err := p.verified(x.Joint, x.Signatures)
	if err != nil {
		return chain.Signed{}, err
	}
	if !reached(p.signers, all) {
		return chain.Signed{}, chain.Errorf(chain.ReasonForeign, "%d signatures don't suffice", len(all))
	}
	var pays chain.Transfer
	if x.Joint.Transfer != nil {
		pays = *x.Joint.Transfer
	}
	digest := sha256.Sum256(x.Body)
	if !bytes.Equal(x.Body, x.Joint.Body) || !bytes.Equal(digest[:], x.Payload) || !x.ExpiresAt.Equal(x.Joint.ExpiresAt) ||
		!x.Transfer.Equal(pays) || x.RefBlock != x.Joint.RefBlock {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the execution is not of the joint transaction")
	}
	encoded := make([][]byte, len(all))
	for i, s := range all {
		encoded[i] = s.Signature
	}
	return finish(x.Unsigned, raw, encoded...)
}

// Outcome implements chain.Multisig. The id of a joint transaction is that of its execution, whoever sends it, and it expires
// like any other, so its end is proven in the same way.
func (c *Client) Outcome(ctx context.Context, j chain.Joint, _ ...string) (chain.JointOutcome, error) {
	var want chain.Transfer
	if j.Transfer != nil {
		want = *j.Transfer
	}
	f, err := chain.Inquire(ctx, c, exchange.ChainAttempt{TxID: j.ID, ExpiresAt: j.ExpiresAt}, want)
	if err != nil {
		return chain.JointOutcome{}, err
	}
	out := chain.JointOutcome{Location: f.Location}
	if f.Location.Stage == chain.StageIncluded || f.Location.Stage == chain.StageFinal {
		out.TxID = j.ID
	}
	switch verdict := chain.Judge(f); {
	case verdict == chain.VerdictSucceeded, f.Location.Stage == chain.StageFinal && f.Location.OK && j.Owners != nil:
		out.State = chain.JointExecuted
	case verdict == chain.VerdictFailed:
		out.State = chain.JointFailed
	case verdict == chain.VerdictWait:
		out.State = chain.JointIncluded
	case verdict == chain.VerdictRebuild:
		out.State = chain.JointExpired
	case f.Location.Head.Final.Number < j.Block.Number:
		return chain.JointOutcome{}, chain.Errorf(chain.ReasonUnavailable, "the final block is %d, and the transaction was prepared at %d",
			f.Location.Head.Final.Number, j.Block.Number)
	default:
		out.State = chain.JointOpen
	}
	return out, nil
}
