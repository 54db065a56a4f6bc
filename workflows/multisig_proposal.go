package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// MultisigProposal is the flow of what is proposed for a wallet of several owners, a payment or other owners: officers approve it, owners sign what the chain will do, and
// an officer has their signatures sent. Signatures are authority, and anyone who has enough of them can send them. So the chain is looked
// at as long as something is signed, and a proposal ends only when the chain proves that nothing of it can be executed.
func MultisigProposal(ctx workflow.Context, in ProposalInput) (ProposalResult, error) {
	// Money is held, so a cancellation of the execution is ignored. Proposers cancel by the update "cancel".
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &proposal{in: in}
	if err := f.handlers(ctx); err != nil {
		return ProposalResult{}, err
	}
	return attended(ctx, f.commands, f.run)
}

// proposal is the state of one proposal. Its database row decides the next step, because people and the network change it meanwhile.
type proposal struct {
	flow
	in         ProposalInput
	proposalID uuid.UUID
	row        activities.OpenedProposal
	troubled   time.Time // since when a step fails; zero when none does
	withheld   time.Time // since when something withholds what owners sign; zero when nothing does
	ending     time.Time // since when it is to end; zero when it is not
	nonceReady time.Time // since when the nonce account is as it has to be, and the nodes are asked whether they show it; zero before
	seen       int64     // the row's version that the next step was chosen by
	asked      bool      // a signal came to look again, and no wait has ended for it yet
}

// Pauses of proposals.
const (
	ownersPause   = 5 * time.Minute  // until the chain is asked again whether owners had it executed by another tool
	proposalPause = 10 * time.Minute // until a step is tried again that could not be done
	endingPause   = time.Minute      // until the chain is asked again whether what was signed can be executed
	outcomePause  = 30 * time.Minute // the longest of both, for as long as proposals live
)

// glance is the pause until the chain is asked again: longer and longer, but never so long that an execution by another tool stays unseen. What
// is to end may wait for months until its number is used. So the pause grows again after a proposal's life, slowly, up to a day: a history takes
// only so many events.
func glance(ctx workflow.Context, pause time.Duration, since time.Time) time.Duration {
	const share = 96
	later := max(0, workflow.Now(ctx).Sub(since)-exchange.ProposalLife) / share
	return min(min(slower(ctx, pause, since), outcomePause)+later, longestPause)
}

func (f *proposal) run(ctx workflow.Context) (ProposalResult, error) {
	f.open(ctx)
	for f.refusal == nil && !f.over() {
		f.advance(ctx)
		switch {
		case f.over():
		case f.row.Status == exchange.ProposalBroadcasting, f.row.Status == exchange.ProposalConfirming:
			f.deliver(ctx)
		case f.row.Ending != "":
			f.close(ctx)
		case f.row.Status.Signable():
			f.collect(ctx)
		case f.row.PaymentID == uuid.Nil:
			f.awaitOfficers(ctx)
		default:
			f.prepare(ctx)
		}
	}
	return f.finish(ctx)
}

func (f *proposal) over() bool { return exchange.ProposalMachine.Terminal(f.row.Status) }

func (f *proposal) named() activities.ProposalInput {
	return activities.ProposalInput{ProposalID: f.proposalID}
}

// open writes the proposal and shows it.
func (f *proposal) open(ctx workflow.Context) {
	f.row = open(ctx, &f.flow, "Open the proposal", proposals.OpenProposal, activities.IntentInput{IntentID: f.in.IntentID}, nil)
	if f.refusal == nil {
		f.showState(ctx)
	}
}

// learn stores the proposal's state unless it is older. Answers of two steps may come in any order.
func (f *proposal) learn(ctx workflow.Context, s activities.ProposalState) {
	newer := s.Version > f.row.Version
	if newer || s.Version == f.row.Version {
		f.row.ProposalState = s
	}
	if newer {
		f.showState(ctx)
	}
}

// advance has the row go on where the rules allow it. The row is taken as it is: a database that was put back has an earlier one.
// What people did meanwhile may have a newer one than the answer, so that the database is asked again.
func (f *proposal) advance(ctx workflow.Context) {
	for {
		f.seen = f.row.Version
		s := mustStep(ctx, &f.flow, database, "Move the proposal on", proposals.AdvanceProposal, f.named())
		if f.changed() {
			continue
		}
		f.take(ctx, s)
		f.seen = s.Version
		return
	}
}

// take stores the proposal's state, older or not.
func (f *proposal) take(ctx workflow.Context, s activities.ProposalState) {
	other := s.Version != f.row.Version
	if f.row.ProposalState = s; other {
		f.showState(ctx)
	}
}

// lookAgain reads the row after a signal to do so, and takes it as it is: that signal also comes after a database was put back. What people did
// meanwhile is newer than the answer. The wait ends, so that the flow looks at the chain too.
func (f *proposal) lookAgain(ctx workflow.Context) {
	f.resumed, f.asked = false, true
	was := f.row.Version
	s := mustStep(ctx, &f.flow, database, "Look at the proposal", proposals.ReadProposal, f.named())
	if f.row.Version == was {
		f.take(ctx, s)
		return
	}
	f.learn(ctx, s)
}

// changed reports whether the row is another one than that by which the next step was chosen. It may have changed during that step.
func (f *proposal) changed() bool { return f.row.Version != f.seen }

// wait waits until the row changes, for a time at most, and no longer than the proposal lives.
func (f *proposal) wait(ctx workflow.Context, pause time.Duration, summary string) {
	left := f.row.Expires.Sub(workflow.Now(ctx)) + dueMargin
	if f.row.Ending == "" && left > 0 {
		pause = min(pause, left)
	}
	f.pause(ctx, pause, summary, f.changed)
}

// pause waits for a time, until ready, or until a signal asks for another look. A row that changed comes before that look.
func (f *proposal) pause(ctx workflow.Context, d time.Duration, summary string, ready func() bool) {
	waiting(f.until).pause(ctx, d, summary, func() bool { return f.asked || ready() })
	f.asked = f.asked && f.changed()
}

// awaitOfficers waits for decisions. A recipient who rests is asked about again.
func (f *proposal) awaitOfficers(ctx workflow.Context) {
	pause := exchange.ProposalLife
	summary := "Wait for the officers' decisions"
	switch f.row.Detail {
	case exchange.WaitRest:
		pause = proposalPause
	case exchange.WaitPause: // any officer may still reject it
		left := f.row.SignableAt.Sub(workflow.Now(ctx)) + dueMargin // when it is over, the wallet differs from what was agreed
		pause, summary = max(left, min(slower(ctx, dueMargin, f.row.SignableAt), outcomePause)), "Wait until a change of the owners has rested"
	}
	f.wait(ctx, pause, summary)
}

// prepare has what owners sign prepared, for each choice of owners where the network wants their names. Only an accepted recipient is paid.
func (f *proposal) prepare(ctx workflow.Context) {
	if f.row.Kind == exchange.ProposeOwners {
		if err := do(ctx, signer(f.row.Network), "Make the keys of new owners", multisigKeys.MakeComingKeys, f.named()); err != nil {
			f.attention(ctx, ReasonStepFailed, err)
			return
		}
	}
	cleared, err := step(ctx, signer(f.row.Network), "Screen the recipient", multisigSigning.ClearRecipient, activities.SignInput{PaymentID: f.row.PaymentID})
	switch {
	case err != nil:
		f.attention(ctx, ReasonStepFailed, err)
		return
	case cleared.Obstacle == activities.RecipientDenied:
		if f.advance(ctx); !f.over() { // the rules end it
			f.wait(ctx, endingPause, "Wait for the end of a proposal whose recipient is denied")
		}
		return
	case cleared.Obstacle != "":
		f.attention(ctx, ReasonProposalScreening, nil)
		return
	}
	if f.payload(ctx, nil) {
		f.calm(ctx)
		f.restOfChoices(ctx)
	}
}

// restOfChoices prepares what other owners sign than the first choice. It serves those who can't sign otherwise, so a failure is no reason
// to wait: the first choice is there.
func (f *proposal) restOfChoices(ctx workflow.Context) {
	for _, signers := range f.row.Choices {
		in := activities.PayloadInput{ProposalID: f.proposalID, Signers: signers}
		if _, err := step(ctx, offline(f.row.Network), "Prepare what other owners sign", multisigPayloads.PreparePayload, in); err != nil {
			workflow.GetLogger(ctx).Warn("what other owners sign could not be prepared", "error", err)
		}
	}
}

// payload has one thing to sign prepared, after what it needs, and reports whether it is.
func (f *proposal) payload(ctx workflow.Context, signers []string) bool {
	in := activities.PayloadInput{ProposalID: f.proposalID, Signers: signers}
	out, err := step(ctx, watch(f.row.Network), "Prepare what the owners sign", multisigPayloads.PreparePayload, in)
	switch {
	case err != nil:
		f.attention(ctx, ReasonProposalPayload, err)
	case out.Refused != "":
		f.attention(ctx, ReasonProposalPayload, refuse(exchange.Code(out.Refused), out.Detail))
	case out.Waits != "":
		if f.withheld.IsZero() {
			f.withheld = workflow.Now(ctx)
		}
		f.wait(ctx, slower(ctx, watchPause, f.withheld), "Check whether the payment may be signed")
	case out.Gas != nil:
		f.fuel(ctx, *out.Gas)
	case out.NoncePaymentID != uuid.Nil:
		if f.nonce(ctx, out.NoncePaymentID) {
			f.awaitNodes(ctx, "Wait until every node shows the nonce account")
		}
	default:
		f.nonceReady = time.Time{}
		return true
	}
	return false
}

// fuel brings native coin to a wallet that pays its fees itself and lacks it, as before the signature of any payment.
func (f *proposal) fuel(ctx workflow.Context, need activities.NeedGas) {
	in := activities.TopUpInput{PaymentID: f.row.PaymentID, Missing: need.Missing}
	gas, err := step(ctx, topUp(f.row.Network), "Approve gas for the wallet", chains.ApproveTopUp, in)
	switch {
	case err != nil:
		f.attention(ctx, ReasonStepFailed, err)
		return
	case gas.Refused != "":
		f.attention(ctx, ReasonProposalPayload, refuse(exchange.Code(gas.Refused), "The wallet lacks native coin for the fee and can get none."))
		return
	case gas.PaymentID != uuid.Nil:
		brings := CryptoPayoutInput{PaymentID: gas.PaymentID, GasFor: f.row.PaymentID, ProposalID: f.proposalID, Network: f.row.Network}
		brought := &gasTopUp{}
		brought.result, brought.err = carry(ctx, brings, child{summary: "Gas for the proposal " + f.proposalID.String(), resumed: &f.resumed}, f.until)
		if reason := brought.reason(ctx); reason != "" {
			f.attention(ctx, ReasonProposalPayload, refuse(exchange.Code(reason), "The wallet lacks native coin for the fee, and the top-up brought none."))
			return
		}
	}
	f.wait(ctx, watchPause, "Wait until the wallet has its gas")
}

// nonce has the gas wallet open or advance the nonce account that keeps what was signed valid, and waits until that is final.
func (f *proposal) nonce(ctx workflow.Context, payment uuid.UUID) bool {
	in := CryptoPayoutInput{PaymentID: payment, ProposalID: f.proposalID, Network: f.row.Network}
	result, err := carry(ctx, in, child{summary: "Nonce account for the proposal " + f.proposalID.String(), resumed: &f.resumed}, f.until)
	if err == nil && result.Completed {
		f.calm(ctx)
		return true
	}
	reason := Reason(result.Reason)
	if err != nil {
		reason = ReasonStepFailed
	}
	if d, decided := f.attention(ctx, reason, err); decided {
		_ = approveAgain(ctx, &payment, d.proof) // the next try finds the payment as it is
	}
	return false
}

// collect waits until enough owners have signed and an officer has it executed, and carries that out. Meanwhile it looks from time to time
// whether owners had it executed by another tool.
func (f *proposal) collect(ctx workflow.Context) {
	if f.row.Executes && f.row.Status == exchange.ProposalReady {
		f.deliver(ctx)
		return
	}
	f.learn(ctx, mustStep(ctx, &f.flow, database, "Count the owners' signatures", proposals.SignProposal, f.named()))
	f.wait(ctx, glance(ctx, ownersPause, workflow.GetInfo(ctx).WorkflowStartTime), "Wait for the owners' signatures")
	if !f.changed() {
		f.look(ctx)
	}
}

// look asks the chain what became of what was signed, and follows what another tool sent. It reports whether the chain answered.
func (f *proposal) look(ctx workflow.Context) (activities.ProposalLook, bool) {
	l, err := f.ask(ctx)
	if err != nil {
		f.attention(ctx, ReasonProposalOutcome, err)
		return l, false
	}
	f.calm(ctx)
	if isSent(l) {
		f.deliver(ctx)
	}
	return l, true
}

func (f *proposal) ask(ctx workflow.Context) (activities.ProposalLook, error) {
	in := activities.PayloadInput{ProposalID: f.proposalID}
	return step(ctx, watch(f.row.Network), "Look what became of what the owners signed", multisigPayloads.LookAtPayload, in)
}

// isSent reports whether the payment has a transaction that its delivery has to follow: ours, or the one of another tool.
func isSent(l activities.ProposalLook) bool {
	return l.State == activities.LookSent || l.State == activities.LookExecuted
}

// close waits until nothing that was signed can be executed any more. Only the chain's final state proves that: the nonce account was
// advanced, the payload has expired, or another transaction took its number.
func (f *proposal) close(ctx workflow.Context) {
	if f.ending.IsZero() {
		f.ending = workflow.Now(ctx)
	}
	const summary = "Wait until nothing that was signed can be executed"
	l, answered := f.look(ctx)
	switch {
	case !answered, l.Ended:
	case l.NoncePaymentID != uuid.Nil && f.nonce(ctx, l.NoncePaymentID):
		f.awaitNodes(ctx, summary)
	default:
		f.wait(ctx, glance(ctx, endingPause, f.ending), summary)
	}
}

// awaitNodes waits until the nodes show what was done to the nonce account. At first they are asked at once, because that is final.
func (f *proposal) awaitNodes(ctx workflow.Context, summary string) {
	if f.nonceReady.IsZero() {
		f.nonceReady = workflow.Now(ctx)
		return
	}
	f.wait(ctx, glance(ctx, watchPause, f.nonceReady), summary)
}

// deliver has the owners' signatures sent, or follows the transaction that another tool sent. The transaction of the database that completes
// the payment also completes the proposal.
func (f *proposal) deliver(ctx workflow.Context) {
	was := f.row.Status
	result, err := f.carry(ctx)
	if err != nil || !result.Completed && !result.Superseded { // perhaps because another tool was faster, or nothing may be signed now
		if l, unknown := f.ask(ctx); unknown == nil && isSent(l) {
			result, err = f.carry(ctx)
		}
	}
	f.advance(ctx)
	switch {
	case f.over(), f.row.Status != was, result.Superseded, err == nil && result.Completed:
		f.calm(ctx)
		return
	case err == nil && result.Waits != "":
		if f.withheld.IsZero() {
			f.withheld = workflow.Now(ctx)
		}
		f.wait(ctx, min(slower(ctx, watchPause, f.withheld), outcomePause), "Check whether the payment may be signed")
		return
	}
	reason := ReasonProposalExecution
	if err != nil {
		reason = ReasonStepFailed
	} else if result.Reason != "" {
		err = refuse(exchange.Code(result.Reason), "The transaction with the owners' signatures can't be made or sent.")
	}
	if d, decided := f.attention(ctx, reason, err); decided {
		payment := f.row.PaymentID
		_ = approveAgain(ctx, &payment, d.proof) // the next try finds the payment as it is
	}
}

// carry has the payment carried out.
func (f *proposal) carry(ctx workflow.Context) (CryptoPayoutResult, error) {
	in := CryptoPayoutInput{PaymentID: f.row.PaymentID, ProposalID: f.proposalID, Network: f.row.Network, Watched: true}
	c := child{
		summary: f.does(), priority: fairness(priorityOrder, f.row.MerchantID),
		shown: attributes(StagePayout, WaitsForChain, AttrNetwork.ValueSet(string(f.row.Network)), AttrAsset.ValueSet(string(f.row.Amount.Asset()))), resumed: &f.resumed,
	}
	return carry(ctx, in, c, f.until)
}

// does says what the proposal does.
func (f *proposal) does() string {
	switch f.row.Kind {
	case exchange.ProposeOwners:
		return "Change the owners of a wallet"
	case exchange.ProposeCancel:
		return "Make another proposal impossible"
	case exchange.ProposePayment:
	}
	return "Pay " + f.row.Amount.String() + " " + string(f.row.Amount.Asset())
}

// attention shows that a step fails, and waits for an operator's retry, until the row changes, or for a time: then the step is tried again by
// itself, less and less often. The flow stays parked until a step succeeds.
func (f *proposal) attention(ctx workflow.Context, r Reason, cause error) (decision, bool) {
	if f.troubled.IsZero() {
		f.troubled = workflow.Now(ctx)
	}
	f.commands.only = []string{activities.VerbRetry}
	f.commands.park(ctx, r, cause)
	pause := slower(ctx, proposalPause, f.troubled)
	f.pause(ctx, pause, "Wait for an operator before the next try", func() bool { return f.commands.hasDecision() || f.changed() })
	if f.commands.hasDecision() {
		return f.commands.take(), true
	}
	return decision{}, false
}

// calm shows that the proposal goes on.
func (f *proposal) calm(ctx workflow.Context) {
	f.troubled, f.withheld, f.commands.only = time.Time{}, time.Time{}, nil
	f.commands.unpark(ctx, f.waitsFor())
}

// finish waits for the handlers and ends the flow.
func (f *proposal) finish(ctx workflow.Context) (ProposalResult, error) {
	if err := lastHandlers(ctx); err != nil {
		return ProposalResult{}, err
	}
	if f.row.Status == "" { // refused
		return ProposalResult{ProposalID: f.proposalID, Detail: words(f.refusal)}, nil
	}
	f.showState(ctx)
	return ProposalResult{ProposalID: f.proposalID, Status: f.row.Status, Detail: f.row.Detail}, nil
}
