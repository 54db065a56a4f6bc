package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// Transfer is the flow of a transfer: screen the recipient, wait for the officers' approvals that its value requires, and
// pay it out. A transfer within our custody is paid out at once.
func Transfer(ctx workflow.Context, in TransferInput) (TransferResult, error) {
	// Money is held, so a cancellation of the execution is ignored. Senders cancel transfers by the update "cancel",
	// operators by their commands.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &transfer{in: in}
	if err := f.handlers(ctx); err != nil {
		return TransferResult{}, err
	}
	return attended(ctx, f.commands, f.run)
}

// transfer is the state of one transfer. Its database row decides the next step, because the sender, the officers and the
// network change the row meanwhile.
type transfer struct {
	flow
	in         TransferInput
	transferID uuid.UUID
	row        activities.OpenedTransfer
	lapsesAt   time.Time

	imports  int  // imports of a transaction signed offline that are under way
	imported bool // a cold wallet's transaction, signed offline, is stored
}

func (f *transfer) run(ctx workflow.Context) (TransferResult, error) {
	f.open(ctx)
	for f.refusal == nil && !f.over() {
		switch f.row.Status {
		case exchange.TransferCreated:
			advance(ctx, f, "Accept the transfer", transfers.AdvanceTransfer)
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
		case exchange.TransferCompleted, exchange.TransferCancelled, exchange.TransferRejected, exchange.TransferFailed: // ended
		}
	}
	return f.finish(ctx)
}

// over reports whether the transfer has ended. A blocked one ends when its held money is released.
func (f *transfer) over() bool {
	if f.row.Status == exchange.TransferBlocked {
		return f.row.Detail == exchange.DetailReleased
	}
	return exchange.TransferMachine.Terminal(f.row.Status)
}

func (f *transfer) named() activities.TransferInput {
	return activities.TransferInput{TransferID: f.transferID}
}

// open writes the transfer and shows it.
func (f *transfer) open(ctx workflow.Context) {
	in := activities.IntentInput{IntentID: f.in.IntentID}
	f.row = open(ctx, &f.flow, "Open the transfer", transfers.OpenTransfer, in, nil)
	if f.refusal != nil {
		return
	}
	show(ctx, AttrNetwork.ValueSet(string(f.row.Network)), AttrAsset.ValueSet(string(f.row.Amount.Asset())),
		AttrMerchantID.ValueSet(f.row.MerchantID.String()), AttrNeedsAttention.ValueSet(false))
	f.showState(ctx)
}

// learn stores the transfer's state if it is newer. Answers of two steps may come in any order.
func (f *transfer) learn(ctx workflow.Context, s activities.TransferState) {
	if s.Version > f.row.Version {
		f.row.TransferState = s
		f.showState(ctx)
	}
}

// screen screens the recipient. Without an answer the flow parks; only a clear screening lets the transfer go on.
func (f *transfer) screen(ctx workflow.Context) {
	s, err := step(ctx, question, "Screen the recipient", transfers.ScreenTransfer, f.named())
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

// restMargin covers the difference between the server's clock and the database's.
const restMargin = time.Second

// awaitOfficers waits until enough officers approved, one rejected, the sender cancelled the transfer, or the time for a
// decision is over. A missing decision never counts as approval. A destination that rests is asked about again when it has
// rested.
func (f *transfer) awaitOfficers(ctx workflow.Context) {
	if f.lapsesAt.IsZero() {
		f.lapsesAt = workflow.Now(ctx).Add(exchange.ApprovalLife)
		show(ctx, AttrDeadline.ValueSet(f.lapsesAt))
	}
	f.showState(ctx)
	was := f.row.Version
	until, summary := f.lapsesAt, "Wait for the officers' decisions"
	if rests := f.row.RestsUntil; !rests.IsZero() && rests.Before(until) {
		until, summary = rests.Add(restMargin), "Wait until the destination has rested"
	}
	await(ctx, until.Sub(workflow.Now(ctx)), summary, func() bool { return f.row.Version != was })
	if f.row.Version == was && workflow.Now(ctx).Before(f.lapsesAt) {
		advance(ctx, f, "Release the transfer", transfers.AdvanceTransfer)
		return
	}
	if f.row.Version != was || workflow.Now(ctx).Before(f.lapsesAt) {
		return
	}
	advance(ctx, f, "Cancel the transfer: no decision in time", transfers.LapseTransfer)
}

// queued passes the transfer to the signer, unless its wallet is cold.
func (f *transfer) queued(ctx workflow.Context) {
	if f.cold() {
		f.awaitImport(ctx)
		return
	}
	advance(ctx, f, "Pass the transfer to the signer", transfers.HandToSigner)
}

// pay has the chain payment carried out, and waits for an operator when no transaction can be made. The database
// transaction that completes the payment also completes the transfer.
func (f *transfer) pay(ctx workflow.Context) {
	f.showState(ctx)
	f.imported = false // a later import is another transaction
	result, err := f.payout(ctx)
	f.refresh(ctx)
	if f.over() {
		return
	}
	if f.cold() && Reason(result.Reason) == ReasonPayoutSigning {
		return // no transaction is pending any more: another one must be signed offline
	}
	reason := Reason(result.Reason)
	if err != nil || result.Completed { // paid, but the row is not completed
		reason = ReasonStepFailed
	}
	d, decided := f.parkedOrMoved(ctx, reason, err)
	switch {
	case !decided:
	case d.verb == activities.VerbRefund:
		f.giveUp(ctx, d.proof)
	default:
		_ = approveAgain(ctx, &f.row.PaymentID, d.proof) // the row shows whether it was approved
		f.refresh(ctx)
	}
}

// payout runs the child that carries out the chain payment.
func (f *transfer) payout(ctx workflow.Context) (CryptoPayoutResult, error) {
	in := CryptoPayoutInput{PaymentID: f.row.PaymentID, TransferID: f.row.TransferID, Network: f.row.Network}
	c := child{
		summary: "Pay out " + f.row.Amount.String() + " " + string(f.row.Amount.Asset()), priority: fairness(priorityOrder, f.row.MerchantID),
		shown: transferPayoutAttributes(f.row), resumed: &f.resumed,
	}
	return carry(ctx, in, c, patiently)
}

// held waits until an operator releases the money of a blocked transfer. Nothing else releases it.
func (f *transfer) held(ctx workflow.Context) {
	if d, decided := f.parkedOrMoved(ctx, ReasonBlocked, nil); decided {
		f.giveUp(ctx, d.proof)
	}
}

// giveUp returns the money by an operator's command. While a transaction may still move it the store refuses, and the flow
// goes on with the state of the row.
func (f *transfer) giveUp(ctx workflow.Context, proof activities.Proof) {
	if err := f.withdraw(ctx, proof.Behalf()); err != nil {
		workflow.GetLogger(ctx).Error("the transfer's money could not be returned", "error", err)
		f.refresh(ctx)
		return
	}
	in := activities.GiveUpTransferInput{TransferID: f.row.TransferID, Proof: proof}
	var s activities.TransferState
	err := f.commands.carryOut(ctx, func(k kind) (err error) {
		s, err = step(ctx, k, "Return the money", transfers.GiveUpTransfer, in)
		return err
	})
	if err != nil {
		workflow.GetLogger(ctx).Error("the transfer's money could not be returned", "error", err)
		f.refresh(ctx)
		return
	}
	f.learn(ctx, s)
}

// refresh reads the state of the transfer.
func (f *transfer) refresh(ctx workflow.Context) {
	advance(ctx, f, "Read the transfer", transfers.ReadTransfer)
}

// advance runs a step until it succeeds, and stores the resulting state of the transfer. After each failure the flow is
// parked until an operator sends a command.
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

// parkedOrMoved waits for an operator, or until the status changes, for example because the sender cancelled. It reports
// whether there is a decision.
func (f *transfer) parkedOrMoved(ctx workflow.Context, r Reason, cause error) (decision, bool) {
	was := f.row.Status // before the detail is written, which takes time in which the sender may cancel
	if r != ReasonColdWallet && r != ReasonBlocked {
		f.mark(ctx, exchange.WaitOperator)
	}
	f.commands.park(ctx, r, cause)
	_ = workflow.Await(ctx, func() bool {
		return f.commands.hasDecision() || f.row.Status != was || (r == ReasonColdWallet && f.imported)
	}) // never cancelled
	var d decision
	decided := f.commands.hasDecision()
	if decided {
		d = f.commands.take()
	}
	f.commands.unpark(ctx, f.waitsFor())
	return d, decided
}

// mark writes what the transfer waits for. The detail is only for readers, so a failure does not stop the flow.
func (f *transfer) mark(ctx workflow.Context, detail string) {
	if f.row.Detail == detail || f.row.TransferID == uuid.Nil || f.over() {
		return
	}
	in := activities.MarkTransferInput{TransferID: f.row.TransferID, Detail: detail}
	s, err := step(ctx, database, "Set the transfer's detail: "+detail, transfers.MarkTransfer, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the transfer's detail could not be written", "error", err)
		return
	}
	f.learn(ctx, s)
}
