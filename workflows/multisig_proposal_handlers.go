package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// handlers registers every handler before the first wait.
func (f *proposal) handlers(ctx workflow.Context) error {
	id, err := proposalForm.object(ctx)
	if err != nil {
		return err
	}
	f.proposalID = id
	f.arrived, f.attend = func() bool { return f.resumed }, f.lookAgain
	h := &handlers{ctx: ctx}
	h.err = f.reach(ctx, MultisigProposalID(id), "proposal "+id.String(), of(activities.ObjectProposal, id))
	h.update(UpdateOpen, "Answers when the proposal is stored, or refused.", apartOpen(f.onOpen), nil)
	h.update(UpdateCancel, "Cancels the proposal, or has it end as soon as nothing that was signed can be executed.", apart(f.onCancel), f.admitAsk)
	h.update(UpdateStep, "Adds the signature of an owner outside, or has the proposal executed.", apart(f.onStep), f.admitAsk)
	h.update(UpdateConfirm, "Has the key of an officer sign, which our key store has, with a token that the API issued for it.", apart(f.onConfirm), f.admitConfirm)
	(&approvalHandler[ProposalAck]{
		commands: f.commands, about: func() decidable[ProposalAck] { return f },
		admit: func(ApprovalRef) error { return f.admit() },
	}).open(h)
	return h.err
}

func (f *proposal) ack() ProposalAck { return ProposalAck{Status: f.row.Status, Detail: f.row.Detail} }

// knows stores the state that a handler's step answered with, and acknowledges it.
func (f *proposal) knows(ctx workflow.Context, s activities.ProposalState) ProposalAck {
	f.learn(ctx, s)
	return ProposalAck{Status: s.Status, Detail: s.Detail}
}

func (f *proposal) onOpen(ctx workflow.Context) (ProposalAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return ProposalAck{}, err
	}
	return f.ack(), nil
}

// admit refuses what comes after the proposal was refused or has ended. Only its row shows what it waits for.
func (f *proposal) admit() error {
	if f.refusal != nil || f.opened && f.over() {
		return refuse(exchange.CodeStateConflict, "The proposal has ended.")
	}
	return nil
}

func (f *proposal) admitAsk(IntentRef) error { return f.admit() }

func (f *proposal) admitConfirm(PayloadConfirmation) error { return f.admit() }

// onCancel asks the database: only its rows show whether something was signed. The flow goes on with the state of the row.
func (f *proposal) onCancel(ctx workflow.Context, ref IntentRef) (ProposalAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return ProposalAck{}, err
	}
	in := activities.ProposalStepInput{ProposalID: f.proposalID, IntentID: ref.IntentID}
	s, err := step(ctx, database, "Cancel the proposal", proposals.CancelProposal, in)
	if err != nil {
		return ProposalAck{}, passOn(err)
	}
	return f.knows(ctx, s), nil
}

// onStep carries out what an intent asks, whose row says which verb it is.
func (f *proposal) onStep(ctx workflow.Context, ref IntentRef) (ProposalAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return ProposalAck{}, err
	}
	if ref.Verb == exchange.IntendProposalSign {
		in := activities.OutsideSignatureInput{ProposalID: f.proposalID, Behalf: activities.Behalf{IntentID: ref.IntentID}}
		if _, err := step(ctx, offline(f.row.Network), ref.summary(), multisigPayloads.StoreOutsideSignature, in); err != nil {
			return ProposalAck{}, passOn(err)
		}
		return f.counted(ctx), nil
	}
	in := activities.ProposalStepInput{ProposalID: f.proposalID, IntentID: ref.IntentID}
	s, err := step(ctx, database, ref.summary(), proposals.ExecuteProposal, in)
	if err != nil {
		return ProposalAck{}, passOn(err)
	}
	return f.knows(ctx, s), nil
}

// counted counts the signatures after one was stored. The flow counts them again if that fails.
func (f *proposal) counted(ctx workflow.Context) ProposalAck {
	s, err := step(ctx, database, "Count the owners' signatures", proposals.SignProposal, f.named())
	if err != nil {
		workflow.GetLogger(ctx).Error("the signatures could not be counted", "error", err)
		return f.ack()
	}
	return f.knows(ctx, s)
}

// confirmPatience is how long an officer waits for the signature of the own key, while something withholds it.
const confirmPatience = time.Minute

// onConfirm proves the officer's token, and has the officer's key sign exactly that payload. It answers when the signature is stored.
func (f *proposal) onConfirm(ctx workflow.Context, c PayloadConfirmation) (ProposalAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return ProposalAck{}, err
	}
	sign, err := step(ctx, database, "Prove the officer's decision", proposals.ConfirmPayload, activities.ConfirmPayloadInput{PayloadID: c.PayloadID, Token: c.Token})
	if err != nil {
		f.refusedConfirmation(ctx, c, err)
		return ProposalAck{}, passOn(err)
	}
	began := workflow.Now(ctx)
	for {
		signed, err := step(ctx, cosigner(f.row.Network), "Sign with the officer's key", multisigSigning.SignPayload, sign)
		switch {
		case err != nil:
			return ProposalAck{}, passOn(err)
		case signed.Waits == "":
			return f.counted(ctx), nil
		case workflow.Now(ctx).Sub(began) > confirmPatience:
			return ProposalAck{}, refuse(exchange.CodeUnavailable, "Nothing is signed now ("+signed.Waits+"). Confirm again in a while.")
		}
		await(ctx, watchPause, "Check whether the payment may be signed", func() bool { return false })
	}
}

// refusedConfirmation records a confirmation without proof for the auditor.
func (f *proposal) refusedConfirmation(ctx workflow.Context, c PayloadConfirmation, cause error) {
	in := activities.RefusedProposalDecisionInput{
		PayloadID: c.PayloadID, Action: exchange.Approve, Channel: exchange.ChannelAPI, Code: exchange.CodeOf(AsExchangeError(cause)),
	}
	if err := do(ctx, database, "Record a decision without proof", proposals.RecordRefusedProposalDecision, in); err != nil {
		workflow.GetLogger(ctx).Error("a confirmation without proof could not be recorded", "error", err)
	}
}

func (f *proposal) prove(ctx workflow.Context, action exchange.ApprovalAction, token string) (ProposalAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return ProposalAck{}, err
	}
	in := activities.DecideProposalInput{ProposalID: f.proposalID, Action: action, Token: token}
	s, err := step(ctx, database, "Prove the officer's decision", proposals.DecideProposal, in)
	if err != nil {
		return ProposalAck{}, err
	}
	return f.knows(ctx, s), nil
}

func (f *proposal) note(ctx workflow.Context, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code) error {
	return do(ctx, database, "Record a decision without proof", proposals.RecordRefusedProposalDecision,
		activities.RefusedProposalDecisionInput{ProposalID: f.proposalID, Action: action, Channel: channel, Code: code})
}

// stage and waitsFor are what operators search by.
func (f *proposal) stage() string {
	switch f.row.Status {
	case exchange.ProposalProposed, exchange.ProposalApproving:
		return StageApproval
	case exchange.ProposalSigning, exchange.ProposalReady:
		return StageSigning
	case exchange.ProposalBroadcasting, exchange.ProposalConfirming:
		return StagePayout
	case exchange.ProposalExecuted, exchange.ProposalRejected, exchange.ProposalCancelled, exchange.ProposalExpired, exchange.ProposalSuperseded, exchange.ProposalFailed:
	}
	return StageDone
}

func (f *proposal) waitsFor() string {
	switch {
	case f.stage() == StageDone:
		return WaitsForNothing
	case f.stage() == StagePayout, f.row.Ending != "", f.row.Executes, f.row.Status == exchange.ProposalApproving && f.row.PaymentID != uuid.Nil:
		return WaitsForChain
	case f.row.Status == exchange.ProposalSigning:
		return WaitsForOwners
	}
	return WaitsForOfficer
}

// showState shows the state of the proposal, unless the flow is parked: then the details show the park reason.
func (f *proposal) showState(ctx workflow.Context) {
	if f.row.Status == "" {
		return
	}
	show(ctx, AttrStatus.ValueSet(string(f.row.Status)), AttrStage.ValueSet(f.stage()))
	if f.commands.reason != "" {
		return
	}
	show(ctx, AttrWaitingFor.ValueSet(f.waitsFor()))
	if f.stage() == StageApproval || f.stage() == StageSigning {
		show(ctx, AttrDeadline.ValueSet(f.row.Expires))
	}
	f.commands.describe(ctx, f.stateCard())
}

// stateCard describes the state of the proposal.
func (f *proposal) stateCard() card {
	p := f.row
	c := card{title: "Proposal " + string(p.Status)}
	c.add("Proposal", f.proposalID.String())
	c.add("Wallet", p.WalletID.String()+" on "+string(p.Network))
	if p.MerchantID != uuid.Nil {
		c.add("Merchant", p.MerchantID.String())
	}
	c.add("Does", f.does())
	if p.Detail == exchange.WaitPause {
		c.add("Rests until", moment(p.SignableAt))
	}
	c.add("Is to end as", string(p.Ending))
	if f.waitsFor() == WaitsForOfficer && f.stage() == StageApproval {
		c.add("To decide", "an officer gets a token from POST /approvals/tokens and sends it with the signal "+
			SignalApprove+" or "+SignalReject+` as {"token": "…"}`)
	}
	c.add("Waits for", p.Detail)
	if f.stage() == StageApproval || f.stage() == StageSigning {
		c.add("Until", moment(p.Expires))
	}
	return c
}
