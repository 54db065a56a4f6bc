package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

var transfers *activities.Transfers

// Transfer is the flow of a transfer: screen who gets it, wait for the officers whom its value asks
// for, and pay it out. One within our custody is paid out at once.
func Transfer(ctx workflow.Context, in TransferInput) (TransferResult, error) {
	// Money is held, so a cancellation of the execution is not obeyed. Senders cancel transfers by the
	// update "cancel", operators by their commands.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &transfer{in: in, id: TransferID(in.Request.ID)}
	if err := f.handlers(ctx); err != nil {
		return TransferResult{}, err
	}
	return attended(ctx, f.desk, f.run)
}

// transfer is one transfer on its way. What its row says decides what comes next, because the sender,
// the officers and the network change it meanwhile.
type transfer struct {
	in   TransferInput
	id   string
	row  activities.OpenedTransfer
	desk *desk

	opened   bool  // the transfer is there, or refused
	refusal  error // why it was refused
	lapsesAt time.Time

	imported bool // a cold wallet's transaction was signed elsewhere and is stored
}

func (f *transfer) run(ctx workflow.Context) (TransferResult, error) {
	f.open(ctx)
	for f.refusal == nil && !f.over() {
		switch f.row.Status {
		case exchange.TransferCreated:
			f.must(ctx, "Take the transfer on", func(ctx workflow.Context, what string) workflow.Future {
				return workflow.ExecuteActivity(record(ctx, what), transfers.AdvanceTransfer, f.named())
			})
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

// open writes the transfer. The update "open" answers with what came of it; see the on-ramp's.
func (f *transfer) open(ctx workflow.Context) {
	in := activities.OpenTransferInput{Request: f.in.Request, Actor: f.in.Actor}
	err := workflow.ExecuteLocalActivity(local(ctx, "Open the transfer"), transfers.OpenTransfer, in).Get(ctx, &f.row)
	if err != nil && passing(err) {
		err = workflow.ExecuteActivity(record(ctx, "Open the transfer"), transfers.OpenTransfer, in).Get(ctx, &f.row)
	}
	for unforeseen(err) {
		f.desk.park(ctx, ReasonStepFailed, err)
		_ = workflow.Await(ctx, f.desk.hasDecision) // the context is never cancelled
		f.desk.take()
		f.desk.unpark(ctx, WaitsForNobody)
		err = workflow.ExecuteActivity(record(ctx, "Open the transfer"), transfers.OpenTransfer, in).Get(ctx, &f.row)
	}
	f.opened, f.refusal = true, err
	if err != nil {
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
	var s activities.TransferState
	err := workflow.ExecuteActivity(question(ctx, "Screen who is to be paid"), transfers.ScreenTransfer, f.named()).Get(ctx, &s)
	if err == nil {
		f.learn(ctx, s)
	}
	if f.row.Status != exchange.TransferScreening {
		return
	}
	d, decided := f.parked(ctx, ReasonScreening, err)
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
	f.must(ctx, "Give up waiting for officers", func(ctx workflow.Context, what string) workflow.Future {
		return workflow.ExecuteActivity(record(ctx, what), transfers.LapseTransfer, f.named())
	})
}

// queued hands the transfer to the signer, unless its wallet is cold.
func (f *transfer) queued(ctx workflow.Context) {
	if f.cold() {
		f.awaitImport(ctx)
		return
	}
	f.must(ctx, "Hand the transfer to the signer", func(ctx workflow.Context, what string) workflow.Future {
		return workflow.ExecuteActivity(record(ctx, what), transfers.HandToSigner, f.named())
	})
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
	d, decided := f.parked(ctx, reason, err)
	switch {
	case !decided:
	case d.verb == activities.VerbRefund:
		f.giveUp(ctx, d.proof)
	default:
		in := activities.RetryPayoutInput{PaymentID: f.row.PaymentID, Proof: d.proof}
		err := workflow.ExecuteActivity(record(ctx, "Approve the payment again"), orders.RetryPayout, in).Get(ctx, nil)
		if err != nil {
			workflow.GetLogger(ctx).Error("the payment was not approved again", "error", err)
		}
		f.refresh(ctx)
	}
}

// payout runs the child that carries the chain payment out.
func (f *transfer) payout(ctx workflow.Context) (CryptoPayoutResult, error) {
	in := CryptoPayoutInput{PaymentID: f.row.PaymentID, TransferID: f.row.TransferID, Network: f.row.Network}
	o := workflow.ChildWorkflowOptions{
		WorkflowID: CryptoPayoutID(in.PaymentID), TaskQueue: QueueFlows, WorkflowIDReusePolicy: reuseAfterEnd,
		ParentClosePolicy: leaveAlone, StaticSummary: "Pay " + f.row.Amount.String() + " " + string(f.row.Amount.Asset()) + " out",
		Priority: fairness(priorityOrder, f.row.MerchantID), TypedSearchAttributes: transferPayoutAttributes(f.row),
	}
	var result CryptoPayoutResult
	err := runChild(ctx, o, CryptoPayout, in, &result, func(ctx workflow.Context, ready func() bool) {
		_ = workflow.Await(ctx, ready) // the context is never cancelled
	})
	return result, err
}

// held waits with the money of a blocked transfer until an operator frees it. Nothing else ever does.
func (f *transfer) held(ctx workflow.Context) {
	if d, decided := f.parked(ctx, ReasonBlocked, nil); decided {
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
	var s activities.TransferState
	in := activities.GiveUpTransferInput{TransferID: f.row.TransferID, Proof: proof}
	err := workflow.ExecuteActivity(record(ctx, "Give the money back"), transfers.GiveUpTransfer, in).Get(ctx, &s)
	if err != nil {
		workflow.GetLogger(ctx).Error("the transfer was not given up", "error", err)
		f.refresh(ctx)
		return
	}
	f.learn(ctx, s)
}

// refresh reads where the transfer stands.
func (f *transfer) refresh(ctx workflow.Context) {
	f.must(ctx, "Look at the transfer", func(ctx workflow.Context, what string) workflow.Future {
		return workflow.ExecuteActivity(record(ctx, what), transfers.ReadTransfer, f.named())
	})
}

// must runs a step until it succeeds. Between tries that a person has to clear, the flow is parked.
func (f *transfer) must(ctx workflow.Context, what string, step func(workflow.Context, string) workflow.Future) {
	for {
		var s activities.TransferState
		err := step(ctx, what).Get(ctx, &s)
		if err == nil {
			f.learn(ctx, s)
			return
		}
		workflow.GetLogger(ctx).Error("a step failed", "step", what, "error", err)
		f.parked(ctx, ReasonStepFailed, err)
	}
}

// parked waits for an operator, or until the transfer moves by itself, because its sender gave it up. It
// tells whether there is a decision.
func (f *transfer) parked(ctx workflow.Context, r Reason, cause error) (decision, bool) {
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
	var s activities.TransferState
	in := activities.MarkTransferInput{TransferID: f.row.TransferID, Detail: detail}
	if err := workflow.ExecuteActivity(record(ctx, "Say that the transfer waits for "+detail), transfers.MarkTransfer, in).Get(ctx, &s); err != nil {
		workflow.GetLogger(ctx).Error("the transfer's detail was not written", "error", err)
		return
	}
	f.learn(ctx, s)
}
