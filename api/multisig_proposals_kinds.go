package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// openUnmoved proposes what moves nothing: other owners, or the end of another proposal.
func (s *server) openUnmoved(c *call, f *form, r exchange.ProposalRequest) error {
	r.Reference = f.line("reference", false, exchange.MaxProposalReference)
	if r.Kind == exchange.ProposeCancel {
		r.Supersedes = f.id("supersedes", true)
		if err := f.done(); err != nil {
			return err
		}
		account, err := s.proposable(c, r.WalletID)
		if err != nil {
			return err
		}
		return s.askProposal(c, r, account)
	}
	network := exchange.Network("") // of the wallet: what is at fault is refused below
	if r.WalletID != uuid.Nil {
		account, err := s.proposable(c, r.WalletID)
		if err != nil {
			return err
		}
		network = account.Network
	}
	change := s.ownersChange(f, network)
	if err := f.done(); err != nil {
		return err
	}
	account, err := s.proposable(c, r.WalletID)
	if err != nil {
		return err
	}
	r.Change = change.Complete(account)
	if err := r.Change.Check(account); err != nil {
		return err
	}
	return s.askProposal(c, r, account)
}

// ownersChange reads who shall own an account. What they have to be together is the rule of exchange.OwnersChange.
func (s *server) ownersChange(f *form, n exchange.Network) exchange.OwnersChange {
	c := exchange.OwnersChange{Threshold: f.number("threshold", true, mostThreshold), ControlThreshold: f.number("control_threshold", false, mostThreshold)}
	for _, in := range f.objects("owners", true, "owners", mostOwners) {
		c.Owners = append(c.Owners, exchange.MultisigOwner{
			Address: in.addressOn(n, s.Addresses), UserID: in.id("user_id", false), Weight: in.number("weight", false, exchange.MaxMultisigWeight),
			Label: in.line("label", false, exchange.MaxMultisigName),
		})
	}
	return c
}

// nothing reads the amount of what moves nothing, whose format decimalText has checked.
func (f *form) nothing(name string, asset money.Asset) money.Amount {
	if text, ok := f.values[name].(string); ok {
		m, err := money.Parse(asset, text)
		if err == nil && !m.IsZero() {
			f.fail(name, "mismatch", "must be zero: the proposal moves nothing")
		}
		f.failDecimal(name, err)
	}
	return money.Zero(asset)
}

// wireNewOwner is an owner of an account after a change.
type wireNewOwner struct {
	Address *string    `json:"address"`
	UserID  *uuid.UUID `json:"user_id"`
	Weight  int        `json:"weight"`
	Label   string     `json:"label"`
}

// addKind shows what a proposal does that moves nothing.
func (w *wireProposal) addKind(p exchange.Proposal, f store.ProposalFacts, reader exchange.Principal) {
	if !p.Kind.Moves() {
		w.RequiredApprovals = f.Needed
	}
	staff := forStaff(reader)
	w.Supersedes, w.SignableAt = optID(p.Supersedes), optTime(p.SignableAt)
	change, err := exchange.OwnersChangeOf(p.After)
	if err != nil || len(change.Owners) == 0 {
		return
	}
	w.Threshold = &change.Threshold
	if change.ControlThreshold > 0 {
		w.ControlThreshold = &change.ControlThreshold
	}
	w.Owners = each(change.Owners, func(o exchange.MultisigOwner) wireNewOwner {
		return wireNewOwner{Address: optText(o.Address), UserID: staff(o.UserID), Weight: o.Weight, Label: o.Label}
	})
}

// shows reports whether what owners sign, as it was read out of its bytes, is just what a proposal does.
func (v JointView) shows(p exchange.Proposal) bool {
	change, err := exchange.OwnersChangeOf(p.After)
	if err != nil || v.Kind.Moves() != p.Kind.Moves() || !p.Kind.Moves() && v.Kind != p.Kind || v.Account != p.Address || v.To != p.Destination || !v.Amount.Equal(p.Amount) {
		return false
	}
	return p.Kind != exchange.ProposeOwners || change.SameQuorum(v.Owners)
}

// saidOf is what signing a payload does, without what belongs to its network.
func saidOf(p exchange.Proposal, y exchange.MultisigPayload, v JointView) string {
	switch p.Kind {
	case exchange.ProposeOwners:
		return changeSaid(p, v)
	case exchange.ProposeCancel:
		return fmt.Sprintf("Uses up number %d of %s and moves nothing, so that proposal %s can never be executed.", y.Sequence, v.Account, p.Supersedes)
	case exchange.ProposePayment:
	}
	return fmt.Sprintf("Pay %s %s on %s from %s to %s.", v.Amount, v.Amount.Asset(), p.Network, v.Account, v.To)
}

func changeSaid(p exchange.Proposal, v JointView) string {
	var owners []string
	weighs := slices.ContainsFunc(v.Owners.Owners, func(o exchange.MultisigOwner) bool { return o.Weight != 1 })
	for _, o := range v.Owners.Owners {
		text := o.Address
		if weighs {
			text += fmt.Sprintf(" (weight %d)", o.Weight)
		}
		owners = append(owners, text)
	}
	of := fmt.Sprintf("%d of", v.Owners.Threshold)
	if weighs {
		of = fmt.Sprintf("a weight of %d of", v.Owners.Threshold)
	}
	text := fmt.Sprintf("Changes the owners of %s on %s to %s: %s.", v.Account, p.Network, of, strings.Join(owners, ", "))
	if v.Owners.ControlThreshold > 0 {
		text += fmt.Sprintf(" Further changes then need a weight of %d.", v.Owners.ControlThreshold)
	}
	return text
}
