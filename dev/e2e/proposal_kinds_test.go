package e2e

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
)

// TestProposalKinds changes the owners of wallets where the network can, and uses up a number of a Safe.
func TestProposalKinds(t *testing.T) {
	w := openBeside(t)
	w.pausesNot(t)
	t.Run("all", func(t *testing.T) {
		for _, n := range w.seed().Nodes() {
			if n.Network == exchange.Solana {
				continue
			}
			t.Run(string(n.Network), func(t *testing.T) {
				t.Parallel()
				t.Run("its owners change", func(t *testing.T) { w.changesOwners(t, n) })
				if n.Network == exchange.Ethereum {
					t.Run("its number is used up", func(t *testing.T) { w.usesUp(t, n) })
				}
			})
		}
	})
	w.invariants(t)
	w.booksAgree(t)
}

// pausesNot has changes of owners rest no time. The service itself can't change that.
func (w *harness) pausesNot(t *testing.T) {
	t.Helper()
	if _, err := w.db.ExecContext(t.Context(), `UPDATE multisig_policy SET pause_seconds = 0`); err != nil {
		t.Fatal(err)
	}
}

// otherOwners asks for a new owner outside in place of the second one; on Ethereum an officer comes too, whose key is made.
func (w *harness) otherOwners(t *testing.T, c *committee, comes outsider) map[string]any {
	t.Helper()
	s, err := w.readShared(t, c.id)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"kind": "owners", "wallet_id": c.id, "threshold": 2}
	owners := []map[string]any{owner(comes)}
	for i, o := range s.Owners {
		if i != 1 {
			owners = append(owners, map[string]any{"address": o.Address})
		}
	}
	if in["owners"] = owners; c.Network() == exchange.Tron {
		in["control_threshold"] = 3
	} else {
		in["owners"] = append(owners, w.officerOwner(t, secondOfficer))
	}
	return in
}

// proposesOther has an officer propose something that moves nothing.
func (w *harness) proposesOther(t *testing.T, in map[string]any) uuid.UUID {
	t.Helper()
	var p proposed
	if err := insist(t.Context(), w.as(t, secondOfficer), proposalsPath, testbed.Key(), in, &p); err != nil {
		t.Fatal(err)
	}
	return p.ID
}

// approvesTwice has two officers approve a change.
func (w *harness) approvesTwice(t *testing.T, id uuid.UUID) {
	t.Helper()
	w.approvedProposal(t, id)
	path, admin := ofProposal(id, "approve"), w.admin(t)
	if err := insist(t.Context(), admin, path, testbed.Key(), seenWith(seen(t, admin, path), "looked at it"), nil); err != nil {
		t.Fatal(err)
	}
}

// signedByAll has every owner sign.
func (w *harness) signedByAll(t *testing.T, c *committee, id uuid.UUID) {
	t.Helper()
	y, _ := w.payloadFor(t, id)
	for _, p := range c.people {
		if err := w.signsProposal(t, c, id, y, p); err != nil {
			t.Fatal(err)
		}
	}
	if c.Network() != exchange.Tron {
		w.signedBySecond(t, c, id, y) // the officer
	}
	w.proposalIs(t, id, exchange.ProposalReady)
}

func (w *harness) changesOwners(t *testing.T, n demo.Node) {
	c := w.committeeOn(t, n)
	comes := c.person(t, "")
	id := w.proposesOther(t, w.otherOwners(t, c, comes))
	w.approvesTwice(t, id)
	w.signedByAll(t, c, id)
	w.executesProposal(t, id)
	w.proposalIs(t, id, exchange.ProposalExecuted)
	now := w.sharedIs(t, c.id, exchange.MultisigActive)
	q, err := c.Quorum(t.Context(), now.Address)
	if err != nil || len(q.Owners) != len(now.Owners) || q.Threshold != 2 {
		t.Fatalf("the chain has %+v, and %+v is agreed: %v", q, now, err)
	}
	agreed := map[string]bool{}
	for _, o := range now.Owners {
		agreed[o.Address] = true
	}
	for _, o := range q.Owners {
		if !agreed[o.Address] {
			t.Errorf("%s is an owner and is not agreed", o.Address)
		}
	}
	if !agreed[comes.address] || agreed[c.people[1].address] {
		t.Errorf("the agreed owners are %+v", now.Owners)
	}
}

// usesUp makes what owners signed impossible: another transaction of the Safe takes its number.
func (w *harness) usesUp(t *testing.T, n demo.Node) {
	c := w.committeeOn(t, n)
	id, j := w.signedProposal(t, c)
	if err := insist(t.Context(), w.as(t, secondOfficer), ofProposal(id, "cancel"), testbed.Key(), map[string]any{}, nil); err != nil {
		t.Fatal(err)
	}
	cancel := w.proposesOther(t, map[string]any{"kind": "cancel", "wallet_id": c.id, "supersedes": id})
	y, _ := w.payloadFor(t, cancel)
	if err := w.signsProposal(t, c, cancel, y, c.people[0]); err != nil {
		t.Fatal(err)
	}
	w.signedBySecond(t, c, cancel, y)
	w.proposalIs(t, cancel, exchange.ProposalReady)
	w.executesProposal(t, cancel)
	w.proposalIs(t, cancel, exchange.ProposalExecuted)
	w.proposalIs(t, id, exchange.ProposalCancelled)
	w.freed(t, id)
	if o, err := c.Outcome(t.Context(), j); err != nil || o.State != chain.JointSuperseded {
		t.Errorf("what owners signed is %s: %v", o.State, err)
	}
}

// ownersApproved has the last officer approve a change while the process dies that makes the key of a new owner.
func ownersApproved(t *testing.T, w *harness, tr *trial, arm func()) {
	w.pausesNot(t)
	tr.proposal.ID = w.proposesOther(t, w.otherOwners(t, tr.committee, tr.committee.person(t, "")))
	w.approvedProposal(t, tr.proposal.ID)
	path, admin := ofProposal(tr.proposal.ID, "approve"), w.admin(t)
	asSeen := seenWith(seen(t, admin, path), "looked at it")
	arm()
	tr.background(t, admin, path, testbed.Key(), asSeen, nil)
}

// cameWithOneKey checks that each officer who comes by a change has one key.
func (w *harness) cameWithOneKey(t *testing.T, id uuid.UUID) {
	t.Helper()
	var owners, keys int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(DISTINCT o.n), count(k.n) FROM multisig_owners o LEFT JOIN multisig_owner_keys k ON (k.account_id, k.n) = (o.account_id, o.n)
		WHERE o.brought_by = $1 AND o.held`, id).Scan(&owners, &keys)
	if err != nil || owners != 1 || keys != 1 {
		t.Errorf("%d officers come with %d keys: %v", owners, keys, err)
	}
}
