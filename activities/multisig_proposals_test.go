package activities_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
)

// proposalRows has one proposal of one account.
type proposalRows struct {
	activities.ProposalRowStore
	account exchange.MultisigAccount
	row     exchange.Proposal
	noted   []exchange.ApprovalObject
	asked   int // for a decision
}

func (r *proposalRows) OpenProposal(context.Context, exchange.Asked) (exchange.Proposal, error) {
	return r.row, nil
}

func (r *proposalRows) ProposalByID(context.Context, uuid.UUID) (exchange.Proposal, error) {
	return r.row, nil
}

func (r *proposalRows) MultisigAccountByID(context.Context, uuid.UUID) (exchange.MultisigAccount, error) {
	return r.account, nil
}

func (r *proposalRows) DecideProposal(context.Context, uuid.UUID, exchange.ApprovalAction, string) (exchange.ProposalStanding, error) {
	r.asked++
	return exchange.ProposalStanding{Proposal: r.row}, nil
}

func (r *proposalRows) ConfirmPayload(context.Context, uuid.UUID, string) (exchange.MultisigOwner, error) {
	r.asked++
	return exchange.MultisigOwner{Address: "anna"}, nil
}

func (r *proposalRows) RecordRefusedDecision(
	_ context.Context, of exchange.ApprovalObject, _ uuid.UUID, _ exchange.ApprovalAction, _ exchange.ApprovalChannel, _ exchange.Code,
) error {
	r.noted = append(r.noted, of)
	return nil
}

// Where what owners sign names them, there is something for each choice of owners, unless there are too many choices.
func TestChoicesOfOwners(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind      exchange.MultisigKind
		of, needs int
		choices   int
	}{
		{exchange.MultisigSPL, 3, 2, 3},
		{exchange.MultisigSPL, 5, 3, 10},
		{exchange.MultisigSPL, 4, 4, 1},
		{exchange.MultisigSPL, 6, 3, 0},
		{exchange.MultisigSPL, 11, 6, 0},
		{exchange.MultisigSafe, 3, 2, 0},
		{exchange.MultisigTron, 3, 2, 0},
	} {
		r := &proposalRows{account: exchange.MultisigAccount{Kind: c.kind, MultisigRequest: exchange.MultisigRequest{Threshold: c.needs}}}
		for i := range c.of {
			r.account.Owners = append(r.account.Owners, exchange.MultisigOwner{Address: fmt.Sprint(9-i%10, i)})
		}
		out, err := (&activities.Proposals{Store: r}).OpenProposal(t.Context(), activities.IntentInput{})
		if err != nil || len(out.Choices) != c.choices {
			t.Errorf("%d of %d on %s: %d choices, want %d; %v", c.needs, c.of, c.kind, len(out.Choices), c.choices, err)
		}
		seen := map[string]bool{}
		for _, choice := range out.Choices {
			if len(choice) != c.needs || !slices.IsSorted(choice) || len(slices.Compact(slices.Clone(choice))) != c.needs || seen[fmt.Sprint(choice)] {
				t.Errorf("%d of %d: the choice %v", c.needs, c.of, choice)
			}
			seen[fmt.Sprint(choice)] = true
		}
	}
}

// An officer's execution is of what was signed then, and of nothing that is signed anew.
func TestProposalExecutesWhatWasSigned(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]bool{exchange.WaitSignature: true, exchange.WaitFrozen: true, exchange.WaitExecution: false} {
		r := &proposalRows{row: exchange.Proposal{ExecutedBy: uuid.New(), StatusDetail: detail}}
		if s, err := (&activities.Proposals{Store: r}).ReadProposal(t.Context(), activities.ProposalInput{}); err != nil || s.Executes != want {
			t.Errorf("%s: it executes: %t, %v", detail, s.Executes, err)
		}
	}
}

// What can't be a token reaches no row, and an attempt without proof is recorded for what it is about.
func TestProposalDecisionsNeedAToken(t *testing.T) {
	t.Parallel()
	r := &proposalRows{}
	a := &activities.Proposals{Store: r}
	if _, err := a.DecideProposal(t.Context(), activities.DecideProposalInput{Action: exchange.Approve}); err == nil {
		t.Error("a decision without a token was asked for")
	}
	if _, err := a.ConfirmPayload(t.Context(), activities.ConfirmPayloadInput{}); err == nil {
		t.Error("a confirmation without a token was asked for")
	}
	if r.asked != 0 {
		t.Errorf("%d questions reached the rows", r.asked)
	}
	payload := uuid.New()
	if s, err := a.ConfirmPayload(t.Context(), activities.ConfirmPayloadInput{PayloadID: payload, Token: uuid.NewString()}); err != nil || s.PayloadID != payload || s.Owner != "anna" {
		t.Errorf("confirmed: %+v, %v", s, err)
	}
	for _, in := range []activities.RefusedProposalDecisionInput{{ProposalID: uuid.New()}, {PayloadID: payload}} {
		if err := a.RecordRefusedProposalDecision(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(r.noted, []exchange.ApprovalObject{exchange.ApproveProposal, exchange.ApprovePayload}) {
		t.Errorf("recorded about %v", r.noted)
	}
}
