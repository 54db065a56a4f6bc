package keys

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// A change of the owners needs one owner of a Safe more than a payment, if there is one, and on TRON the weight of the owner permission.
func TestOwnersThatAreNeeded(t *testing.T) {
	t.Parallel()
	three := []exchange.MultisigOwner{{Weight: 1}, {Weight: 1}, {Weight: 1}}
	for name, c := range map[string]struct {
		kind             exchange.ProposalKind
		on               exchange.MultisigKind
		threshold, owner int
		want             int
	}{
		"a payment of a Safe":        {exchange.ProposePayment, exchange.MultisigSafe, 2, 0, 2},
		"a cancel of a Safe":         {exchange.ProposeCancel, exchange.MultisigSafe, 2, 0, 2},
		"a change of a Safe":         {exchange.ProposeOwners, exchange.MultisigSafe, 2, 0, 3},
		"a change that all sign":     {exchange.ProposeOwners, exchange.MultisigSafe, 3, 0, 3},
		"a payment on TRON":          {exchange.ProposePayment, exchange.MultisigTron, 2, 3, 2},
		"a change on TRON":           {exchange.ProposeOwners, exchange.MultisigTron, 2, 3, 3},
		"a change without its limit": {exchange.ProposeOwners, exchange.MultisigTron, 2, 0, 2},
	} {
		a := exchange.MultisigAccount{MultisigRequest: exchange.MultisigRequest{Owners: three, Threshold: c.threshold}, Kind: c.on, ControlThreshold: c.owner}
		if got := (&joint{proposal: exchange.Proposal{Kind: c.kind}, account: a}).needed(); got != c.want {
			t.Errorf("%s needs %d, want %d", name, got, c.want)
		}
	}
}

// noJoints has no joint transactions.
type noJoints struct{ JointStore }

// several is a network on which several owners sign.
type several struct{ chain.Multisig }

func (several) Network() exchange.Network { return exchange.Ethereum }

// The signer signs a change of the owners only when its digest is that of the change which officers approved.
func TestAnotherChangeIsNotSigned(t *testing.T) {
	t.Parallel()
	change := exchange.OwnersChange{Threshold: 2, Owners: []exchange.MultisigOwner{{Address: "anna", Weight: 1}, {Address: "bob", Weight: 1}}}
	p := exchange.Proposal{ID: uuid.New(), Kind: exchange.ProposeOwners, Network: exchange.Ethereum, Amount: money.Zero(money.ETH), Change: change.Encode(), After: change.Encode()}
	p.Digest = p.Intent()
	paid := exchange.ChainPayment{ID: uuid.New(), ObjectID: p.ID, Purpose: exchange.ForProposal, Network: exchange.Ethereum}
	s := &PaymentSigner{joint: noJoints{}}
	y := exchange.MultisigPayload{PaymentID: paid.ID, ProposalID: p.ID, Network: exchange.Ethereum, Status: exchange.PayloadOpen}
	refusal := func(p exchange.Proposal) string {
		_, err := s.jointOf(t.Context(), order{payment: paid, client: several{}}, p, y)
		return err.Error()
	}
	const differs = "its proposal differs from what officers approved"
	if got := refusal(p); got == "" || strings.Contains(got, differs) {
		t.Errorf("what officers approved is refused: %s", got)
	}
	other, another, unlike := p, p, p
	change.Owners[1].Address = "mallory"
	other.Change = change.Encode()
	another.ID, unlike.After = uuid.New(), change.Encode()
	for name, q := range map[string]exchange.Proposal{"other owners": other, "another proposal": another, "other owners than were asked for": unlike} {
		if got := refusal(q); !strings.Contains(got, differs) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
