package chaintest

import (
	"slices"
	"testing"
	"time"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// What becomes of joint transactions.

func executedOnce(t *testing.T, c *committee) {
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	c.Fund(t, c.account, amount) // a second execution would have what to pay with
	signed := c.executes(t, j, c.signing...)
	c.broadcast(t, signed, chain.BroadcastKnown, chain.BroadcastRejected)
	c.refusesExecution(t, "a second execution", j, c.signedBy(t, j, c.signing...))
	c.Mine(t, 1)
	c.Finalise(t)
	c.holds(t, to.Address, amount)
	c.outcome(t, j, chain.JointExecuted)
}

// executedElsewhere: what the owners signed is carried out by a stranger while our execution is on its way.
func executedElsewhere(t *testing.T, c *committee) {
	by := can[Elsewhere](t, c.stage)
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	c.Fund(t, c.account, amount)
	signatures := c.signedBy(t, j, c.owners[0], c.owners[1])
	ours := c.executionOf(t, j, signatures)
	theirs := by.ExecuteElsewhere(t, j, signatures)
	c.outcome(t, j, chain.JointIncluded)
	if _, err := c.client.Broadcast(t.Context(), ours.Raw); err != nil {
		t.Fatal(err)
	}
	c.Mine(t, 1)
	c.completesJoint(t, j, theirs)
	c.holds(t, to.Address, amount)
}

func undoneExecution(t *testing.T, c *committee) {
	chainOf := can[Reorganising](t, c.stage)
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	signed := c.executionOf(t, j, c.signedBy(t, j, c.owners[0], c.owners[1]))
	c.broadcast(t, signed, chain.BroadcastAccepted)
	c.Mine(t, 1)
	c.outcome(t, j, chain.JointIncluded)
	chainOf.Reorganise(t, 1, true)
	c.outcome(t, j, chain.JointOpen)
	c.broadcast(t, signed, chain.BroadcastAccepted, chain.BroadcastKnown)
	c.Mine(t, 1)
	c.completesJoint(t, j, signed.TxID)
	c.holds(t, to.Address, amount)
}

// failedExecution: the token refuses in the block. Nothing moves, and the joint transaction stays open or is over, by the rules.
func failedExecution(t *testing.T, c *committee) {
	issuer := can[TokenControls](t, c.stage)
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	signatures := c.signedBy(t, j, c.owners[0], c.owners[1])
	signed := c.executionOf(t, j, signatures)
	issuer.Pause(t, amount.Asset())
	c.refusesExecution(t, "a paused token", j, signatures)
	c.broadcast(t, signed, chain.BroadcastAccepted)
	c.Mine(t, 1)
	c.Finalise(t)
	if l := c.locate(t, signed, chain.StageFinal); l.OK || len(l.Transfers) > 0 {
		t.Errorf("a failed execution looks like a payment: %+v", l)
	}
	want := chain.JointFailed
	if c.harness.Rules().Reverting {
		want = chain.JointOpen
	}
	c.outcome(t, j, want)
	if o, err := c.joint.Outcome(t.Context(), j, signed.TxID); err != nil || o.State != want {
		t.Errorf("with the id of its execution the outcome is %+v, %v", o, err)
	}
	c.holds(t, to.Address, money.Zero(amount.Asset()))
	c.holds(t, c.account, amount)
}

func superseded(t *testing.T, c *committee) {
	if !c.harness.Rules().Exclusive {
		t.Skip("joint transactions don't rule each other out here")
	}
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	c.Fund(t, c.account, amount)
	other := c.NewAccount(t)
	d := j.JointDraft
	d.Transfer = &chain.Transfer{From: c.account, To: other.Address, Amount: amount}
	c.signing = c.owners[1:]
	d.Signers = c.signers()
	rival := c.prepareJoint(t, d)
	signed := c.executionOf(t, rival, c.signedBy(t, rival, c.signing...))
	c.broadcast(t, signed, chain.BroadcastAccepted)
	c.Mine(t, 1)
	c.outcome(t, j, chain.JointOpen) // the block that took its place may be undone
	c.completesJoint(t, rival, signed.TxID)
	if o := c.outcome(t, j, chain.JointSuperseded); o.TxID != signed.TxID {
		t.Errorf("superseded by %s, want %s", o.TxID, signed.TxID)
	}
	c.refusesExecution(t, "a superseded one", j, c.signedBy(t, j, c.owners[0], c.owners[1]))
	c.holds(t, to.Address, money.Zero(amount.Asset()))
	c.holds(t, other.Address, amount)
}

func cancelled(t *testing.T, c *committee) {
	if !c.harness.Rules().Numbered {
		t.Skip("joint transactions have no numbers here")
	}
	amount := c.token("2")
	j, to := c.proposal(t, amount)
	d := j.JointDraft
	d.Transfer = nil
	cancel := c.prepareJoint(t, d)
	signed := c.executes(t, cancel, c.owners[0], c.owners[1])
	if o := c.outcome(t, j, chain.JointSuperseded); o.TxID != signed.TxID {
		t.Errorf("superseded by %s, want %s", o.TxID, signed.TxID)
	}
	c.holds(t, to.Address, money.Zero(amount.Asset()))
	c.holds(t, c.account, amount)
}

// changedOwners: an owner who signed is replaced before the execution.
func changedOwners(t *testing.T, c *committee) {
	network := can[OwnersChanging](t, c.stage)
	amount := c.token("2")
	c.Fund(t, c.account, amount)
	d := c.draftOf(t, c.NewAccount(t).Address, amount)
	change := d
	if c.harness.Rules().Numbered {
		d.Sequence++ // after the change
	}
	payment := c.prepareJoint(t, d)
	signatures := c.signedBy(t, payment, c.owners[0], c.owners[1])
	joined := c.NewAccount(t)
	owners := []Account{c.owners[0], c.owners[2], joined}
	change.Transfer, change.Owners = nil, network.Change(owners, 2)
	j := c.prepareJoint(t, change)
	signed := c.executionOf(t, j, c.signedBy(t, j, c.owners...))
	c.broadcast(t, signed, chain.BroadcastAccepted)
	c.Mine(t, 1)
	if q := c.quorum(t); !q.Moving {
		t.Errorf("the owners change, and the quorum is %+v", q)
	}
	c.refusesExecution(t, "a signature of a former owner", payment, signatures)
	c.completesJoint(t, j, signed.TxID)
	q := c.quorum(t)
	if q.Moving || q.Threshold != 2 || len(q.Owners) != len(owners) {
		t.Errorf("the quorum is %+v", q)
	}
	for _, o := range owners {
		if !slices.ContainsFunc(q.Owners, func(x chain.Owner) bool { return x.Address == o.Address }) {
			t.Errorf("%s is not among the owners %+v", o.Address, q.Owners)
		}
	}
	c.refusesExecution(t, "a signature of a former owner", payment, signatures)
	c.owners = owners
	again, to := c.proposal(t, amount)
	c.executes(t, again, joined, c.owners[1])
	c.holds(t, to.Address, amount)
}

func expiredJoint(t *testing.T, c *committee) {
	if !c.harness.Rules().Expires {
		t.Skip("joint transactions don't expire here")
	}
	network, ok := c.Harness.(Expiring)
	if !ok {
		t.Fatalf("%T can't let time pass", c.Harness)
	}
	c.Fund(t, c.account, c.token("2"))
	const life = time.Hour
	d := c.draftOf(t, c.NewAccount(t).Address, c.token("2"))
	d.Life = life
	j := c.prepareJoint(t, d)
	signatures := c.signedBy(t, j, c.owners[0], c.owners[1])
	signed := c.executionOf(t, j, signatures)
	network.AdvanceTime(t, 2*life)
	c.Mine(t, 1)
	c.outcome(t, j, chain.JointOpen) // another block may still take the place of the newest
	c.Finalise(t)
	c.outcome(t, j, chain.JointExpired)
	c.refusesExecution(t, "an expired one", j, signatures)
	c.broadcast(t, signed, chain.BroadcastRejected)
}
