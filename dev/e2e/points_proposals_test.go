package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/testbed"
	"kivuko/exchange"
)

// proposalRows are those with payments from wallets of several owners. Those on Solana open a nonce account, and end what owners have signed, which
// needs no time there. On Ethereum other tools send what owners signed, or use its number.
func proposalRows() []row {
	executed := func(begin transferScene) func() scenario {
		return always(proposalScenario{begin: begin, ends: exchange.ProposalExecuted})
	}
	nonce := always(proposalScenario{on: exchange.Solana, begin: proposalDecided, ends: exchange.ProposalExecuted})
	cancelled := always(proposalScenario{on: exchange.Solana, begin: proposalCancelled, ends: exchange.ProposalCancelled})
	return []row{
		{"OpenProposal/*/*", "flows", executed(proposalOpened)},
		{"AdvanceProposal/*/*", "flows", executed(proposalOpened)},
		{"DecideProposal/*/*", "flows", executed(proposalDecided)},
		{"ClearRecipient/*/*", "signer-ethereum", executed(proposalDecided)},
		{"PreparePayload/*/*", "chain-ethereum", executed(proposalDecided)},
		{"PreparePayload/ApproveProposalNonce#?/*", "chain-solana", nonce},
		{"StoreOutsideSignature/*/*", "chain-ethereum", executed(proposalSigned)},
		{"ConfirmPayload/*/*", "flows", executed(proposalConfirmed)},
		{"SignPayload/*/*", "signer-ethereum", executed(proposalConfirmed)},
		{"SignProposal/*/*", "flows", executed(proposalConfirmed)},
		{"ExecuteProposal/*/*", "flows", executed(proposalExecuted)},
		{"MakeComingKeys/*/*", "signer-ethereum", always(proposalScenario{begin: ownersApproved, ends: exchange.ProposalSigning})},
		{"CancelProposal/*/*", "flows", cancelled},
		{"LookAtPayload/*/*", "chain-solana", cancelled},
		{"LookAtPayload/AdoptExecution#?/*", "chain-ethereum", executed(proposalSentElsewhere)},
		{"LookAtPayload/SupersedeProposal#?/*", "chain-ethereum", always(proposalScenario{begin: proposalOvertaken, ends: exchange.ProposalSuperseded})},
	}
}

// proposalScenario is the scenario of a proposal, on Ethereum by default. What the process left undone when it died is done by who judges.
type proposalScenario struct {
	on    exchange.Network
	begin transferScene
	ends  exchange.ProposalStatus
}

func (b proposalScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	n := w.ethereum()
	if b.on == exchange.Solana {
		n = w.solana()
	}
	tr.committee = w.committeeOn(t, n)
	b.begin(t, w, tr, arm)
}

func (b proposalScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	tr.answered(t)
	c, id := tr.committee, tr.proposal.ID
	if b.ends == exchange.ProposalSigning { // the key of a new owner was made once
		w.proposalIs(t, id, exchange.ProposalSigning)
		w.cameWithOneKey(t, id)
		return
	}
	if b.ends != exchange.ProposalExecuted {
		w.proposalIs(t, id, b.ends)
		w.freed(t, id)
		return
	}
	w.completesProposal(t, c, id)
	w.paidByOwners(t, c, id)
}

// completesProposal does what is left to do for a proposal.
func (w *harness) completesProposal(t *testing.T, c *committee, id uuid.UUID) {
	t.Helper()
	p, err := w.readProposal(t, id)
	if err != nil {
		t.Fatal(err)
	}
	if p.PaymentID == uuid.Nil {
		w.approvedProposal(t, id)
	}
	if !slices.Contains([]string{"ready", "broadcasting", "confirming", "executed"}, p.Status) {
		y, _ := w.payloadFor(t, id, w.signersOf(t, c)...)
		if err := w.signsProposal(t, c, id, y, c.people[0]); err != nil {
			t.Fatal(err)
		}
		w.signedBySecond(t, c, id, y)
	}
	eventually(t, "an officer has proposal "+id.String()+" executed", func() error {
		p, err := w.readProposal(t, id)
		switch {
		case err != nil || p.ExecutedBy != uuid.Nil || p.Status == string(exchange.ProposalExecuted):
			return err
		case p.Status != string(exchange.ProposalReady):
			return fmt.Errorf("it is %s", p.Status)
		}
		return w.operator(t).Post(t.Context(), ofProposal(id, "execute"), testbed.Key(), map[string]any{}, nil)
	})
}

// proposalOpened proposes a payment while the process dies.
func proposalOpened(t *testing.T, w *harness, tr *trial, arm func()) {
	arm()
	tr.background(t, w.as(t, secondOfficer), proposalsPath, "proposal-"+tr.point, tr.committee.asked(), &tr.proposal)
}

// proposalDecided has an officer approve while the process dies.
func proposalDecided(t *testing.T, w *harness, tr *trial, arm func()) {
	tr.proposal.ID = w.proposes(t, tr.committee)
	w.proposalIs(t, tr.proposal.ID, exchange.ProposalApproving)
	path := ofProposal(tr.proposal.ID, "approve")
	asSeen := seenWith(seen(t, w.operator(t), path), "looked at it")
	arm()
	tr.background(t, w.operator(t), path, testbed.Key(), asSeen, nil)
}

// proposalSigned brings a signature while the process dies.
func proposalSigned(t *testing.T, w *harness, tr *trial, arm func()) {
	tr.proposal.ID = w.proposes(t, tr.committee)
	w.approvedProposal(t, tr.proposal.ID)
	y, _ := w.payloadFor(t, tr.proposal.ID)
	in := map[string]any{"payload_id": y.ID, "signature": tr.committee.signatureOf(t, y, tr.committee.people[0])}
	arm()
	tr.background(t, w.as(t, secondOfficer), ofProposal(tr.proposal.ID, "confirm"), testbed.Key(), in, nil)
}

// proposalConfirmed has the key of an officer sign while the process dies, as the second owner.
func proposalConfirmed(t *testing.T, w *harness, tr *trial, arm func()) {
	tr.proposal.ID = w.proposes(t, tr.committee)
	w.approvedProposal(t, tr.proposal.ID)
	y, _ := w.payloadFor(t, tr.proposal.ID)
	if err := w.signsProposal(t, tr.committee, tr.proposal.ID, y, tr.committee.people[0]); err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"payload_id": y.ID, "digest": y.Confirmation}
	arm()
	tr.background(t, w.operator(t), ofProposal(tr.proposal.ID, "confirm"), testbed.Key(), in, nil)
}

// proposalExecuted has an officer have it executed while the process dies.
func proposalExecuted(t *testing.T, w *harness, tr *trial, arm func()) {
	tr.proposal.ID, _ = w.signedProposal(t, tr.committee)
	arm()
	tr.background(t, w.operator(t), ofProposal(tr.proposal.ID, "execute"), testbed.Key(), map[string]any{}, nil)
}

// proposalCancelled cancels what owners have signed while the process dies.
func proposalCancelled(t *testing.T, w *harness, tr *trial, arm func()) {
	tr.proposal.ID, _ = w.signedProposal(t, tr.committee)
	arm()
	tr.background(t, w.as(t, secondOfficer), ofProposal(tr.proposal.ID, "cancel"), testbed.Key(), map[string]any{}, nil)
}

// proposalSentElsewhere has the owners send their signatures with another tool. The process dies when it finds that out.
func proposalSentElsewhere(t *testing.T, w *harness, tr *trial, arm func()) {
	id, j := w.signedProposal(t, tr.committee)
	tr.proposal.ID = id
	w.sends(t, tr.committee, id, j)
	arm()
	tr.background(t, w.operator(t), ofProposal(id, "execute"), testbed.Key(), map[string]any{}, nil)
}

// proposalOvertaken has the owners use its number for something else.
func proposalOvertaken(t *testing.T, w *harness, tr *trial, arm func()) {
	id, j := w.signedProposal(t, tr.committee)
	tr.proposal.ID = id
	tr.committee.usesNumber(t, j)
	arm()
	tr.background(t, w.operator(t), ofProposal(id, "execute"), testbed.Key(), map[string]any{}, nil)
}
