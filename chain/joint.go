package chain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"kivuko/exchange"
)

// Encode is the form in which a joint transaction is stored until enough owners have signed it.
func (j Joint) Encode() ([]byte, error) { return json.Marshal(j) }

// DecodeJoint reads what Encode wrote and refuses anything else: a part that this program does not know, no rule of it would check.
func DecodeJoint(stored []byte) (Joint, error) {
	var j Joint
	d := json.NewDecoder(bytes.NewReader(stored))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		return Joint{}, fmt.Errorf("chain: the stored joint transaction can't be read: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Joint{}, errors.New("chain: the stored joint transaction is followed by something else")
	}
	return j, nil
}

// ChangeOf is what a change of the owners does on the network. Each owner must have an address.
func ChangeOf(c exchange.OwnersChange) *OwnersChange {
	out := &OwnersChange{Threshold: uint32(c.Threshold)}
	for _, o := range c.Owners {
		out.Owners = append(out.Owners, Owner{Address: o.Address, Weight: uint32(o.Weight)})
	}
	slices.SortFunc(out.Owners, func(a, b Owner) int { return cmp.Compare(a.Address, b.Address) })
	if c.ControlThreshold > c.Threshold {
		out.Control = &OwnersChange{Owners: out.Owners, Threshold: uint32(c.ControlThreshold)}
	}
	return out
}

// Agreed is a change of the owners in the form in which officers approve one.
func (c OwnersChange) Agreed() exchange.OwnersChange {
	out := exchange.OwnersChange{Threshold: int(c.Threshold)}
	for _, o := range c.Owners {
		out.Owners = append(out.Owners, exchange.MultisigOwner{Address: o.Address, Weight: int(o.Weight)})
	}
	if c.Control != nil {
		out.ControlThreshold = int(c.Control.Threshold)
	}
	return out
}

// Carries says in what way a joint transaction is not what a proposal is to do; empty when it is. A payment's transfer is that of its chain payment.
func (j Joint) Carries(p exchange.Proposal, paid exchange.ChainPayment) string {
	change, err := exchange.OwnersChangeOf(p.After)
	switch {
	case err != nil:
		return err.Error()
	case j.Account != paid.FromAddress || p.Kind.Moves() != paid.Amount.Positive():
		return "account, or whether it moves something"
	case p.Kind == exchange.ProposeOwners:
		if j.Transfer != nil || !change.Resolved() || !j.Owners.Equal(ChangeOf(change)) {
			return "owners, weights or thresholds"
		}
	case p.Kind == exchange.ProposeCancel:
		if j.Transfer != nil || j.Owners != nil {
			return "that it does nothing"
		}
	case j.Owners != nil || j.Transfer == nil || !j.Transfer.Equal(Transfer{From: paid.FromAddress, To: paid.ToAddress, Amount: paid.Amount}):
		return "account, recipient, asset or amount"
	}
	return ""
}

// Read is a quorum in the form in which officers agreed to that of an account. Only owners who also make payments may have a part in changes
// of the owners, with the same weight.
func (q Quorum) Read(a exchange.MultisigAccount) exchange.MultisigQuorum {
	out := exchange.MultisigQuorum{Address: a.Address, Threshold: int(q.Threshold), Block: q.Head.Final.Number, BlockID: q.Head.Final.ID}
	for _, o := range q.Owners {
		out.Owners = append(out.Owners, exchange.MultisigOwner{Address: o.Address, Weight: int(o.Weight)})
	}
	if a.Kind == exchange.MultisigTron {
		if out.ControlThreshold = out.Threshold; q.Control != nil {
			out.ControlThreshold, out.Foreign = int(q.Control.Threshold), q.strangeControl()
		}
	}
	return out
}

// strangeControl names a key that has a part in changes of the owners and none in payments.
func (q Quorum) strangeControl() string {
	for _, o := range q.Control.Owners {
		if !slices.Contains(q.Owners, o) {
			return fmt.Sprintf("changes of the owners may be signed by %s with the weight %d, and payments not", o.Address, o.Weight)
		}
	}
	return ""
}
