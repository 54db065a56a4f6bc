package activities_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
)

// changeOf is a change to owners with the weight one.
func changeOf(threshold, control int, names ...string) exchange.OwnersChange {
	c := exchange.OwnersChange{Threshold: threshold, ControlThreshold: control}
	for _, name := range names {
		c.Owners = append(c.Owners, exchange.MultisigOwner{Address: name, Weight: 1})
	}
	return c
}

// shows is a chain that shows such owners at a final block.
func shows(c exchange.OwnersChange, final, sequence uint64) *look {
	q := chain.Quorum{Threshold: uint32(c.Threshold), Sequence: sequence, Head: chain.Head{Final: chain.Block{Number: final, ID: "final"}}}
	for _, o := range c.Owners {
		q.Owners = append(q.Owners, chain.Owner{Address: o.Address, Weight: uint32(o.Weight)})
	}
	if c.ControlThreshold > 0 {
		q.Control = &chain.Quorum{Owners: q.Owners, Threshold: uint32(c.ControlThreshold)}
	}
	return &look{q: q}
}

func moving(l *look) *look {
	l.q.Moving = true
	return l
}

// changed is a change of the owners that was executed in block 85, on a Safe with the number 4.
func changed(t *testing.T, n exchange.Network, c exchange.OwnersChange) *agreement {
	t.Helper()
	a := newAgreement(t, n, 1)
	a.payloads[0].Sequence = 4
	a.proposal.Kind, a.proposal.After = exchange.ProposeOwners, c.Encode()
	a.outcomes["a"] = chain.JointOutcome{State: chain.JointExecuted, TxID: "tx", Location: chain.Location{Block: chain.Block{Number: 85, ID: "executed"}}}
	return a
}

// A change of the owners counts as executed when the final chain shows exactly them, or when others came after them: a Safe has used a later number,
// and TRON has twenty more final blocks. Until then it counts as included, so that the agreed owners are those of the chain.
func TestAChangeCountsWhenTheChainShowsIt(t *testing.T) {
	t.Parallel()
	const safe, tron = exchange.Ethereum, exchange.Tron
	onSafe, onTron := changeOf(2, 0, "anna", "bob", "dora"), changeOf(2, 3, "anna", "bob", "dora")
	were, wereOnTron := changeOf(2, 0, "anna", "bob", "cara"), changeOf(2, 2, "anna", "bob", "cara")
	later, laterOnTron := changeOf(2, 0, "anna", "mallory"), changeOf(2, 3, "anna", "mallory")
	higher := changeOf(3, 0, "anna", "bob", "cara")
	control := changeOf(2, 3, "anna", "bob", "cara")
	for _, c := range []struct {
		name     string
		on       exchange.Network
		change   exchange.OwnersChange
		shows    *look
		executed bool
	}{
		{"the new owners", safe, onSafe, shows(onSafe, 90, 5), true},
		{"the new owners in its own block", safe, onSafe, shows(onSafe, 85, 5), true},
		{"the new owners in another order", safe, onSafe, shows(changeOf(2, 0, "dora", "bob", "anna"), 90, 5), true},
		{"the old owners", safe, onSafe, shows(were, 90, 5), false},
		{"the old owners, much later", safe, onSafe, shows(were, 900, 5), false},
		{"a node that is behind the change", safe, onSafe, shows(onSafe, 84, 5), false},
		{"a node that is behind the change, and a later number", safe, onSafe, shows(were, 84, 6), false},
		{"owners that change", safe, onSafe, moving(shows(onSafe, 90, 5)), false},
		{"owners that change by a later number", safe, onSafe, moving(shows(later, 90, 6)), false},
		{"later owners by a later number", safe, onSafe, shows(later, 90, 6), true},
		{"the old owners again, by a later number", safe, onSafe, shows(were, 90, 6), true},
		{"later owners without a later number", safe, onSafe, shows(later, 90, 5), false},
		{"the new owners, and a later payment", safe, onSafe, shows(onSafe, 90, 6), true},
		{"the old threshold", safe, higher, shows(were, 90, 5), false},
		{"the new threshold", safe, higher, shows(higher, 90, 5), true},
		{"another threshold by a later number", safe, higher, shows(were, 90, 6), true},
		{"owners that can't be agreed to", safe, onSafe, &look{err: chain.Errorf(chain.ReasonForeign, "it has a module")}, true},

		{"the new owners on TRON", tron, onTron, shows(onTron, 90, 0), true},
		{"the old owners on TRON", tron, onTron, shows(wereOnTron, 90, 0), false},
		{"numbers that TRON does not have", tron, onTron, shows(wereOnTron, 90, 9), false},
		{"nineteen blocks later", tron, onTron, shows(laterOnTron, 104, 0), false},
		{"twenty blocks later", tron, onTron, shows(laterOnTron, 105, 0), true},
		{"twenty blocks later, and changing", tron, onTron, moving(shows(laterOnTron, 105, 0)), false},
		{"a node that is behind on TRON", tron, onTron, shows(onTron, 84, 0), false},
		{"the old threshold of the owner permission", tron, control, shows(wereOnTron, 90, 0), false},
		{"the new threshold of the owner permission", tron, control, shows(control, 90, 0), true},
		{"a permission that can't be agreed to", tron, onTron, &look{err: chain.Errorf(chain.ReasonForeign, "it allows too much")}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := changed(t, c.on, c.change)
			a.owners = c.shows
			want, adopted := activities.LookExecuted, exchange.ChainIncluded
			if !c.executed {
				want, adopted = string(chain.JointIncluded), exchange.ChainApproved
			}
			if l, err := a.look(t); err != nil || l.State != want || l.Ended || a.payment.Status != adopted {
				t.Errorf("the look is %+v, %v; its payment is %s", l, err, a.payment.Status)
			}
		})
	}
}

// Of several payloads the number of the one that was executed counts.
func TestTheNumberOfWhatWasExecuted(t *testing.T) {
	t.Parallel()
	a := changed(t, exchange.Ethereum, changeOf(2, 0, "anna", "bob", "dora"))
	first := a.payloads[0]
	first.ID, first.Joint, first.Sequence = uuid.New(), []byte(`{"id": "first"}`), 1
	a.outcomes["first"] = chain.JointOutcome{State: chain.JointSuperseded, TxID: "tx"}
	a.payloads = slices.Insert(a.payloads, 0, first)
	a.owners = shows(changeOf(2, 0, "anna", "bob", "cara"), 90, 5)
	if l, err := a.look(t); err != nil || l.State != string(chain.JointIncluded) {
		t.Errorf("the look is %+v, %v", l, err)
	}
}

// While no node says who the owners are, nothing is recorded. A payment and a cancel ask for no owners.
func TestOwnersThatAreNotRead(t *testing.T) {
	t.Parallel()
	a := changed(t, exchange.Ethereum, changeOf(2, 0, "anna", "bob", "dora"))
	a.owners = &look{err: chain.Errorf(chain.ReasonUnavailable, "no node")}
	if l, err := a.look(t); err == nil || a.payment.Status != exchange.ChainApproved {
		t.Errorf("the look is %+v, its payment is %s", l, a.payment.Status)
	}
	for _, kind := range []exchange.ProposalKind{exchange.ProposePayment, exchange.ProposeCancel} {
		a.proposal.Kind, a.payment.Status = kind, exchange.ChainApproved
		if l, err := a.look(t); err != nil || l.State != activities.LookExecuted {
			t.Errorf("of a %s the look is %+v, %v", kind, l, err)
		}
	}
}
