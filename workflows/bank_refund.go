package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// BankRefundInput starts the flow, whose id names the refund.
type BankRefundInput struct{}

// BankRefundResult is how the refund ended.
type BankRefundResult struct {
	Status exchange.RefundStatus `json:"status"`
}

// BankRefundAck answers the updates of the flow with the state of its refund.
type BankRefundAck struct {
	Status exchange.RefundStatus `json:"status"`
	Detail string                `json:"detail,omitempty"`
}

// BankRefund has the money of a payment exception paid back at a bank: it reserves the money, and waits until officers have confirmed the
// payment, or two of them that there is none. The row decides what is done, so the flow may be started again.
func BankRefund(ctx workflow.Context, _ BankRefundInput) (BankRefundResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &bankRefund{}
	if err := f.handlers(ctx); err != nil {
		return BankRefundResult{}, err
	}
	return attended(ctx, f.commands, func(ctx workflow.Context) (BankRefundResult, error) {
		f.run(ctx)
		return BankRefundResult{Status: f.row.Status}, lastHandlers(ctx)
	})
}

type bankRefund struct {
	flow
	refund uuid.UUID
	row    activities.BankRefundState
	short  time.Time // since when its money could not be reserved; zero while it is
	banked time.Time // since when an officer could pay it
}

func (f *bankRefund) handlers(ctx workflow.Context) error {
	id, err := bankRefundForm.object(ctx)
	if err != nil {
		return err
	}
	f.refund = id
	f.flow.mark = f.markRow
	f.arrived, f.attend = func() bool { return f.resumed }, f.lookAgain
	h := &handlers{ctx: ctx}
	h.err = f.reach(ctx, BankRefundID(id), "refund "+id.String(), of(activities.ObjectRefund, id))
	h.update(UpdateStep, "Keeps what an officer says of the payment, as the officer asked.", apart(f.onStep), nil)
	return h.err
}

// onStep asks the database: only the row shows whether it waits for a payment.
func (f *bankRefund) onStep(ctx workflow.Context, ref IntentRef) (BankRefundAck, error) {
	in := activities.ConfirmBankRefundInput{RefundID: f.refund, IntentID: ref.IntentID}
	s, err := step(ctx, database, "Keep what the officer says of the payment", bankRefunds.ConfirmBankRefund, in)
	if err != nil {
		return BankRefundAck{}, passOn(err)
	}
	f.learn(s)
	return BankRefundAck{Status: s.Status, Detail: s.Detail}, nil
}

func (f *bankRefund) named() activities.BankRefundInput {
	return activities.BankRefundInput{RefundID: f.refund}
}

// learn stores the state unless it is older. Answers of two steps may come in any order.
func (f *bankRefund) learn(s activities.BankRefundState) {
	if s.Version >= f.row.Version {
		f.row = s
	}
}

func (f *bankRefund) look(ctx workflow.Context) {
	f.learn(mustStep(ctx, &f.flow, database, "Look at the refund", bankRefunds.LookAtBankRefund, f.named()))
}

// lookAgain reads the row after a signal to do so, which comes when two officers ended the refund. A flow that is parked about one that is
// over goes on.
func (f *bankRefund) lookAgain(ctx workflow.Context) {
	f.resumed = false
	f.look(ctx)
	if f.over() && f.commands.reason != "" && !f.commands.hasDecision() {
		f.commands.decide(decision{verb: activities.VerbRetry})
	}
}

func (f *bankRefund) over() bool {
	return f.row.Status == exchange.RefundCompleted || f.row.Status == exchange.RefundFailed
}

func (f *bankRefund) run(ctx workflow.Context) {
	f.commands.describe(ctx, f.card())
	f.look(ctx)
	for !f.over() {
		if f.row.Status == exchange.RefundPending {
			f.reserve(ctx)
		} else {
			f.await(ctx)
		}
	}
	f.commands.unpark(ctx, WaitsForNothing)
	show(ctx, AttrStage.ValueSet(StageDone), AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(WaitsForNothing))
}

// reserve reserves the money, or waits until it can be. A freeze, and payouts that are suspended, end by themselves.
func (f *bankRefund) reserve(ctx workflow.Context) {
	s := mustStep(ctx, &f.flow, database, "Reserve the money at a bank", bankRefunds.ReserveBankRefund, f.named())
	f.learn(s)
	if s.State == "" {
		f.short = time.Time{}
		f.commands.unpark(ctx, WaitsForBank)
		return
	}
	f.short = since(ctx, f.short, true)
	patience := floatQuestions
	switch s.State {
	case activities.PayoutFrozen:
		f.note(ctx, exchange.WaitFrozen)
		patience = 0
	case activities.PayoutSuspended:
		f.note(ctx, exchange.WaitSuspended)
		patience = 0
	case activities.PayoutOfficers:
		f.note(ctx, string(exchange.RefundWaitsOfficer))
	default:
		f.note(ctx, exchange.WaitFunds)
	}
	if patience > 0 && workflow.Now(ctx).Sub(f.short) >= patience {
		f.commands.park(ctx, ReasonBankRefundReserve, nil)
	}
	f.pause(ctx, slower(ctx, floatPause, f.short), "Look whether the money can be reserved")
}

// await waits until enough officers have confirmed the payment, or two of them that there is none.
func (f *bankRefund) await(ctx workflow.Context) {
	f.banked = since(ctx, f.banked, true)
	if workflow.Now(ctx).Sub(f.banked) >= bankTimeout {
		f.commands.park(ctx, ReasonBankRefundConfirm, nil)
	}
	if f.pause(ctx, slower(ctx, bankTimeout, f.banked), "Wait for an officer at the bank") {
		f.banked = time.Time{}
	}
	f.look(ctx)
}

// pause waits until the row changes, for a while at most. It reports whether an operator sent a command.
func (f *bankRefund) pause(ctx workflow.Context, most time.Duration, what string) bool {
	was := f.row.Version
	f.commands.only = []string{activities.VerbRetry}
	defer func() { f.commands.only = nil }()
	waiting(f.until).pause(ctx, most, what, func() bool { return f.row.Version != was || f.commands.hasDecision() })
	if !f.commands.hasDecision() {
		return false
	}
	f.commands.take()
	f.commands.unpark(ctx, WaitsForBank)
	return true
}

// markRow writes what the refund waits for. The detail is only for readers, so a failure does not stop the flow.
func (f *bankRefund) markRow(ctx workflow.Context, detail string) {
	if f.row.Detail == detail || f.row.Status != exchange.RefundPending {
		return
	}
	s, err := step(ctx, database, "Set the refund's detail: "+detail, bankRefunds.MarkBankRefund, activities.MarkBankRefundInput{RefundID: f.refund, Detail: detail})
	if err != nil {
		workflow.GetLogger(ctx).Error("the refund's detail could not be written", "error", err)
		return
	}
	f.learn(s)
}

func (f *bankRefund) card() card {
	c := card{title: "Refund by bank"}
	c.add("Refund", f.refund.String())
	c.add("Waits for", "an officer at the bank")
	return c
}

// BankRefundSummary is the summary of the flow in the Web UI.
const BankRefundSummary = "Pay money of a payment exception back at a bank"

// BankRefundAttributes are the search attributes with which the flow starts.
func BankRefundAttributes() temporal.SearchAttributes {
	return attributes(StageBank, WaitsForBank)
}
