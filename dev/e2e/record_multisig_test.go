package e2e

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/workflows"
)

// shared records the ways of an account of several owners, on Ethereum: opened, adopted, refused; and on Solana one whose opening fails
// and is retried or given up; and on TRON one that is given to its owners.
func (r *recorder) shared(t *testing.T) {
	w := r.harness
	o := w.outsidersOn(t, w.ethereum())
	keep := func(id uuid.UUID, status exchange.MultisigStatus, name string) {
		w.sharedIs(t, id, status)
		r.keep(t, workflows.OpenMultisigID(id), name)
	}
	people := o.people(t, 3)
	keep(w.shares(t, o.Network(), exchange.MultisigSelf, "", 2, owner(people[0]), w.officerOwner(t, demo.TreasuryEmail)), exchange.MultisigActive, "open_multisig")
	address := o.opens(t, newSeed(), quorumOf(people, 2))
	keep(w.shares(t, o.Network(), exchange.MultisigSelf, address, 3, owner(people[0]), owner(people[1]), owner(people[2])), exchange.MultisigRefused, "open_multisig_refused")
	keep(w.shares(t, o.Network(), exchange.MultisigSelf, address, 2, owner(people[0]), owner(people[1]), owner(people[2])), exchange.MultisigActive, "open_multisig_adopted")
	tron := w.outsidersOn(t, w.tronNode())
	people = tron.people(t, 2)
	keep(w.shares(t, exchange.Tron, exchange.MultisigSelf, "", 2, owner(people[0]), w.officerOwner(t, demo.TreasuryEmail), owner(people[1])), exchange.MultisigActive, "open_multisig_tron")
	heal(t, w.solana())
	for _, story := range []struct {
		verb, name string
		status     exchange.MultisigStatus
	}{{"retry", "open_multisig_retried", exchange.MultisigActive}, {"refund", "open_multisig_given_up", exchange.MultisigRefused}} {
		s := w.failsToOpen(t)
		w.operates(t.Context(), t, s.ID, story.verb)
		keep(s.ID, story.status, story.name)
	}
}

// proposed records the ways of a payment from a wallet of several owners: executed, by us on each network and by another tool, rejected, and
// cancelled after owners signed.
func (r *recorder) proposed(t *testing.T) {
	w := r.harness
	keep := func(id uuid.UUID, name string) { r.keep(t, workflows.MultisigProposalID(id), name) }
	for _, n := range w.seed().Nodes() {
		c := w.committeeOn(t, n)
		id, _ := w.signedProposal(t, c)
		w.executesProposal(t, id)
		w.paidByOwners(t, c, id)
		keep(id, "multisig_proposal_"+string(n.Network))
	}
	keep(w.executedElsewhere(t, w.ethereum()), "multisig_proposal_elsewhere")
	keep(w.rejectsProposal(t, w.ethereum()), "multisig_proposal_rejected")
	keep(w.cancelsSigned(t, w.solana()), "multisig_proposal_cancelled")
}
