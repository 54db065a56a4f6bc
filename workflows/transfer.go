package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// Transfer is the flow of a transfer: screen who gets it, wait for the officers whom its value asks
// for, and pay it out. One within our custody is paid out at once.
func Transfer(ctx workflow.Context, in TransferInput) (TransferResult, error) {
	// Money is held, so a cancellation of the execution is not obeyed. Senders cancel transfers by the
	// update "cancel", operators by their commands.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &transfer{in: in}
	if err := f.handlers(ctx); err != nil {
		return TransferResult{}, err
	}
	return attended(ctx, f.desk, f.run)
}

// transfer is one transfer on its way. What its row says decides what comes next, because the sender,
// the officers and the network change it meanwhile.
type transfer struct {
	flow
	in       TransferInput
	row      activities.OpenedTransfer
	lapsesAt time.Time

	imported bool // a cold wallet's transaction was signed elsewhere and is stored
}

func (f *transfer) run(ctx workflow.Context) (TransferResult, error) {
	f.open(ctx)
	for f.refusal == nil && !f.over() {
		switch f.row.Status {
		case exchange.TransferCreated:
			advance(ctx, f, "Take the transfer on", transfers.AdvanceTransfer)
		case exchange.TransferScreening:
			f.screen(ctx)
		case exchange.TransferPending:
			f.awaitOfficers(ctx)
		case exchange.TransferQueued:
			f.queued(ctx)
		case exchange.TransferSigning, exchange.TransferBroadcasting, exchange.TransferConfirming:
			if f.cold() && !f.imported && f.row.Status == exchange.TransferSigning {
				f.awaitImport(ctx)
				continue
			}
			f.pay(ctx)
		case exchange.TransferBlocked:
			f.held(ctx)
		case exchange.TransferCompleted, exchange.TransferCancelled, exchange.TransferRejected, exchange.TransferFailed: // over
		}
	}
	return f.finish(ctx)
}

// over tells whether nothing more happens. Of a blocked transfer the held money is still to be decided about.
func (f *transfer) over() bool {
	if f.row.Status == exchange.TransferBlocked {
		return f.row.Detail == exchange.DetailReleased
	}
	return exchange.TransferMachine.Terminal(f.row.Status)
}

func (f *transfer) named() activities.TransferInput {
	return activities.TransferInput{TransferID: f.in.Request.ID}
}

// open writes the transfer and shows it.
func (f *transfer) open(ctx workflow.Context) {
	in := activities.OpenTransferInput{Request: f.in.Request, Actor: f.in.Actor}
	f.row = open(ctx, &f.flow, "Open the transfer", transfers.OpenTransfer, in, nil)
	if f.refusal != nil {
		return
	}
	show(ctx, AttrNetwork.ValueSet(string(f.row.Network)), AttrAsset.ValueSet(string(f.row.Amount.Asset())),
		AttrMerchantID.ValueSet(f.row.MerchantID.String()), AttrNeedsAttention.ValueSet(false))
	f.tell(ctx)
}

// learn takes a newer answer about the transfer over. Answers of two steps may come in any order.
func (f *transfer) learn(ctx workflow.Context, s activities.TransferState) {
	if s.Version > f.row.Version {
		f.row.TransferState = s
		f.tell(ctx)
	}
}

// screen asks about who is to be paid. Without an answer a person is asked to see to it; nobody but the
// screening itself lets the transfer go on.
func (f *transfer) screen(ctx workflow.Context) {
	s, err := step(ctx, question, "Screen who is to be paid", transfers.ScreenTransfer, f.named())
	if err == nil {
		f.learn(ctx, s)
	}
	if f.row.Status != exchange.TransferScreening {
		return
	}
	d, decided := f.parkedOrMoved(ctx, ReasonScreening, err)
	if decided && d.verb == activities.VerbRefund {
		f.giveUp(ctx, d.proof)
		return
	}
	f.mark(ctx, exchange.WaitScreening)
}

// awaitOfficers waits until enough of them agreed, one said no, the sender gave the transfer up, or the
// time for a decision is over. Silence is never consent.
func (f *transfer) awaitOfficers(ctx workflow.Context) {
	if f.lapsesAt.IsZero() {
		f.lapsesAt = workflow.Now(ctx).Add(exchange.ApprovalLife)
		show(ctx, AttrDeadline.ValueSet(f.lapsesAt))
	}
	f.tell(ctx)
	was := f.row.Version
	await(ctx, f.lapsesAt.Sub(workflow.Now(ctx)), "Nobody decided in time", func() bool { return f.row.Version != was })
	if f.row.Version != was || workflow.Now(ctx).Before(f.lapsesAt) {
		return
	}
	advance(ctx, f, "Give up waiting for officers", transfers.LapseTransfer)
}

// queued hands the transfer to the signer, unless its wallet is cold.
func (f *transfer) queued(ctx workflow.Context) {
	if f.cold() {
		f.awaitImport(ctx)
		return
	}
	advance(ctx, f, "Hand the transfer to the signer", transfers.HandToSigner)
}

// pay has the chain payment carried out, and waits for a person when no transaction of it can be made. The
// transfer is completed in the transaction that completes its payment.
func (f *transfer) pay(ctx workflow.Context) {
	f.tell(ctx)
	f.imported = false // what comes in from now on is another one
	result, err := f.payout(ctx)
	f.refresh(ctx)
	if f.over() {
		return
	}
	if f.cold() && Reason(result.Reason) == ReasonPayoutSigning {
		return // nothing of it is alive any more: another transaction has to be signed elsewhere
	}
	reason := Reason(result.Reason)
	if err != nil || result.Completed { // paid, and the row does not say so
		reason = ReasonStepFailed
	}
	d, decided := f.parkedOrMoved(ctx, reason, err)
	switch {
	case !decided:
	case d.verb == activities.VerbRefund:
		f.giveUp(ctx, d.proof)
	default:
		_ = approveAgain(ctx, f.row.PaymentID, d.proof) // the row says whether it is
		f.refresh(ctx)
	}
}

// payout runs the child that carries the chain payment out.
func (f *transfer) payout(ctx workflow.Context) (CryptoPayoutResult, error) {
	in := CryptoPayoutInput{PaymentID: f.row.PaymentID, TransferID: f.row.TransferID, Network: f.row.Network}
	c := child{
		summary: "Pay " + f.row.Amount.String() + " " + string(f.row.Amount.Asset()) + " out", priority: fairness(priorityOrder, f.row.MerchantID),
		shown: transferPayoutAttributes(f.row),
	}
	return carry(ctx, in, c, patiently)
}

// held waits with the money of a blocked transfer until an operator frees it. Nothing else ever does.
func (f *transfer) held(ctx workflow.Context) {
	if d, decided := f.parkedOrMoved(ctx, ReasonBlocked, nil); decided {
		f.giveUp(ctx, d.proof)
	}
}

// giveUp gives the money back by command. Where a transaction may still move it the store refuses, and the
// flow goes on with what the row says.
func (f *transfer) giveUp(ctx workflow.Context, proof activities.Proof) {
	if err := f.withdraw(ctx, proof.Actor()); err != nil {
		workflow.GetLogger(ctx).Error("the transfer was not given up", "error", err)
		f.refresh(ctx)
		return
	}
	in := activities.GiveUpTransferInput{TransferID: f.row.TransferID, Proof: proof}
	s, err := step(ctx, database, "Give the money back", transfers.GiveUpTransfer, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the transfer was not given up", "error", err)
		f.refresh(ctx)
		return
	}
	f.learn(ctx, s)
}

// refresh reads where the transfer stands.
func (f *transfer) refresh(ctx workflow.Context) {
	advance(ctx, f, "Look at the transfer", transfers.ReadTransfer)
}

// advance runs a step until it succeeds, and learns from it where the transfer stands. Between tries that an operator has to
// clear, the flow is parked.
func advance[C any](ctx workflow.Context, f *transfer, what string, activity func(C, activities.TransferInput) (activities.TransferState, error)) {
	for {
		s, err := step(ctx, database, what, activity, f.named())
		if err == nil {
			f.learn(ctx, s)
			return
		}
		workflow.GetLogger(ctx).Error("a step failed", "step", what, "error", err)
		f.parkedOrMoved(ctx, ReasonStepFailed, err)
	}
}

// parkedOrMoved waits for an operator, or until the transfer moves by itself, because its sender gave it up. It
// reports whether there is a decision.
func (f *transfer) parkedOrMoved(ctx workflow.Context, r Reason, cause error) (decision, bool) {
	if r != ReasonColdWallet && r != ReasonBlocked {
		f.mark(ctx, exchange.WaitOperator)
	}
	was := f.row.Status
	f.desk.park(ctx, r, cause)
	_ = workflow.Await(ctx, func() bool {
		return f.desk.hasDecision() || f.row.Status != was || (r == ReasonColdWallet && f.imported)
	}) // never cancelled
	var d decision
	decided := f.desk.hasDecision()
	if decided {
		d = f.desk.take()
	}
	f.desk.unpark(ctx, f.waitsFor())
	return d, decided
}

// mark writes what the transfer waits for. The rows tell it to readers only, so that a failure is no
// reason to stop.
func (f *transfer) mark(ctx workflow.Context, detail string) {
	if f.row.Detail == detail || f.row.TransferID == uuid.Nil || f.over() {
		return
	}
	in := activities.MarkTransferInput{TransferID: f.row.TransferID, Detail: detail}
	s, err := step(ctx, database, "Say that the transfer waits for "+detail, transfers.MarkTransfer, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the transfer's detail was not written", "error", err)
		return
	}
	f.learn(ctx, s)
}
