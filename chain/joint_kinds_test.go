package chain_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What owners sign is just what was proposed: the payment, the whole change of the owners, or nothing.
func TestCarries(t *testing.T) {
	t.Parallel()
	change := exchange.OwnersChange{Threshold: 2, ControlThreshold: 3, Owners: []exchange.MultisigOwner{{Address: "cara", Weight: 2}, {Address: "anna", Weight: 1}}}
	nothing := exchange.ChainPayment{FromAddress: "account", ToAddress: "account", Amount: money.Zero(money.TRX)}
	five := exchange.ChainPayment{FromAddress: "account", ToAddress: "bob", Amount: money.Must(money.USDT, "5")}
	payment := exchange.Proposal{Kind: exchange.ProposePayment}
	owners := exchange.Proposal{Kind: exchange.ProposeOwners, After: change.Encode()}
	cancel := exchange.Proposal{Kind: exchange.ProposeCancel, Supersedes: uuid.New()}
	pays := &chain.Transfer{From: "account", To: "bob", Amount: five.Amount}
	with := func(edit func(*chain.OwnersChange)) *chain.OwnersChange {
		c := chain.ChangeOf(change)
		edit(c)
		return c
	}
	unmade := owners
	unmade.After = exchange.OwnersChange{Threshold: 2, Owners: []exchange.MultisigOwner{{Address: "anna", Weight: 1}, {UserID: uuid.New(), Weight: 1}}}.Encode()
	for name, c := range map[string]struct {
		draft    chain.JointDraft
		proposal exchange.Proposal
		paid     exchange.ChainPayment
		carries  bool
	}{
		"a payment":                   {chain.JointDraft{Account: "account", Transfer: pays}, payment, five, true},
		"a payment of more":           {chain.JointDraft{Account: "account", Transfer: &chain.Transfer{From: "account", To: "bob", Amount: money.Must(money.USDT, "6")}}, payment, five, false},
		"a payment of another":        {chain.JointDraft{Account: "other", Transfer: pays}, payment, five, false},
		"owners in place of payment":  {chain.JointDraft{Account: "account", Owners: chain.ChangeOf(change)}, payment, five, false},
		"a payment besides":           {chain.JointDraft{Account: "account", Transfer: pays, Owners: chain.ChangeOf(change)}, payment, five, false},
		"a payment without proposal":  {chain.JointDraft{Account: "account"}, exchange.Proposal{}, nothing, false},
		"owners":                      {chain.JointDraft{Account: "account", Owners: chain.ChangeOf(change)}, owners, nothing, true},
		"other owners":                {chain.JointDraft{Account: "account", Owners: with(func(c *chain.OwnersChange) { c.Owners[0].Address = "mallory" })}, owners, nothing, false},
		"another weight":              {chain.JointDraft{Account: "account", Owners: with(func(c *chain.OwnersChange) { c.Owners[0].Weight = 9 })}, owners, nothing, false},
		"another threshold":           {chain.JointDraft{Account: "account", Owners: with(func(c *chain.OwnersChange) { c.Threshold = 1 })}, owners, nothing, false},
		"another control":             {chain.JointDraft{Account: "account", Owners: with(func(c *chain.OwnersChange) { c.Control.Threshold = 2 })}, owners, nothing, false},
		"no control":                  {chain.JointDraft{Account: "account", Owners: with(func(c *chain.OwnersChange) { c.Control = nil })}, owners, nothing, false},
		"owners that pay":             {chain.JointDraft{Account: "account", Owners: chain.ChangeOf(change)}, owners, five, false},
		"owners without an address":   {chain.JointDraft{Account: "account", Owners: chain.ChangeOf(change)}, unmade, nothing, false},
		"a cancel":                    {chain.JointDraft{Account: "account"}, cancel, nothing, true},
		"a cancel that pays":          {chain.JointDraft{Account: "account", Transfer: pays}, cancel, nothing, false},
		"a cancel that brings owners": {chain.JointDraft{Account: "account", Owners: chain.ChangeOf(change)}, cancel, nothing, false},
	} {
		if got := (chain.Joint{JointDraft: c.draft}).Carries(c.proposal, c.paid); (got == "") != c.carries {
			t.Errorf("%s: %q", name, got)
		}
	}
	if back := chain.ChangeOf(change).Agreed(); !back.SameQuorum(change) || back.SameQuorum(exchange.OwnersChange{Owners: change.Owners, Threshold: 2}) {
		t.Errorf("a change comes back as %+v", back)
	}
}
