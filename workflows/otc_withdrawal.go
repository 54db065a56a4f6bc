package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// OTCWithdrawal is the flow of a withdrawal: screen where it goes, wait for the officers who approve and execute it, sell or buy its
// crypto, and have it paid once.
func OTCWithdrawal(ctx workflow.Context, in WithdrawalInput) (WithdrawalResult, error) {
	// Money is held, so a cancellation of the execution is ignored. Merchants cancel withdrawals by a verb.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &withdrawal{in: in}
	if err := f.handlers(ctx); err != nil {
		return WithdrawalResult{}, err
	}
	return attended(ctx, f.commands, f.run)
}

// withdrawal is the state of one withdrawal. Its database row decides the next step, because people and the rails change it meanwhile.
type withdrawal struct {
	flow
	in           WithdrawalInput
	withdrawalID uuid.UUID
	row          activities.OpenedWithdrawal
	short        time.Time // since when the house has had too little; zero while it has enough
	source       string    // where more crypto can be brought from meanwhile, in words
	lacking      time.Time // since when another officer has been missing; zero while none is
	banked       time.Time // since when an officer could pay at a bank
}

func (f *withdrawal) run(ctx workflow.Context) (WithdrawalResult, error) {
	f.open(ctx)
	for f.refusal == nil && !f.over() {
		switch f.row.Status {
		case exchange.WithdrawalRequested:
			f.screen(ctx)
		case exchange.WithdrawalPending, exchange.WithdrawalApproved, exchange.WithdrawalHold:
			f.await(ctx)
		case exchange.WithdrawalExecuting, exchange.WithdrawalConfirming, exchange.WithdrawalReview:
			f.carryOut(ctx)
		case exchange.WithdrawalCompleted, exchange.WithdrawalRejected, exchange.WithdrawalCancelled, exchange.WithdrawalFailed: // ended
		}
	}
	return f.finish(ctx)
}

func (f *withdrawal) over() bool { return exchange.WithdrawalMachine.Terminal(f.row.Status) }

func (f *withdrawal) named() activities.WithdrawalInput {
	return activities.WithdrawalInput{WithdrawalID: f.withdrawalID}
}

// open writes the withdrawal and shows it.
func (f *withdrawal) open(ctx workflow.Context) {
	f.row = open(ctx, &f.flow, "Open the withdrawal", withdrawals.OpenWithdrawal, activities.IntentInput{IntentID: f.in.IntentID}, nil)
	if f.refusal != nil {
		return
	}
	show(ctx, AttrMerchantID.ValueSet(f.row.MerchantID.String()), AttrAsset.ValueSet(string(f.row.Payout.Asset())), AttrNeedsAttention.ValueSet(false))
	f.showState(ctx)
}

// learn stores the withdrawal's state unless it is older. Answers of two steps may come in any order.
func (f *withdrawal) learn(ctx workflow.Context, s activities.WithdrawalState) {
	newer := s.Version > f.row.Version
	if newer || s.Version == f.row.Version {
		f.row.WithdrawalState = s
	}
	if newer {
		f.showState(ctx)
	}
}

// look brings a withdrawal that was not executed to where it belongs, and reads the state of any.
func (f *withdrawal) look(ctx workflow.Context) {
	f.learn(ctx, mustStep(ctx, &f.flow, database, "Look at the withdrawal", withdrawals.LookAtWithdrawal, f.named()))
}

// lookAgain reads the row after a signal to do so, which comes when officers changed it without this flow. A flow that is parked about a
// withdrawal that has ended goes on.
func (f *withdrawal) lookAgain(ctx workflow.Context) {
	f.resumed = false
	f.look(ctx)
	if f.over() && f.commands.reason != "" && !f.commands.hasDecision() {
		f.commands.decide(decision{verb: activities.VerbRetry})
	}
}

// changed reports whether the row is another one than now, once it is.
func (f *withdrawal) changed() func() bool {
	was := f.row.Version
	return func() bool { return f.row.Version != was }
}

// screen screens an address outside of our custody. Without an answer the flow parks; only a clear screening lets the withdrawal go on.
func (f *withdrawal) screen(ctx workflow.Context) {
	s, err := step(ctx, question, "Screen the destination", withdrawals.ScreenWithdrawal, f.named())
	if err == nil {
		f.learn(ctx, s)
	}
	if f.row.Status == exchange.WithdrawalRequested {
		f.parkedOrMoved(ctx, ReasonScreening, err)
		f.mark(ctx, exchange.WaitScreening)
	}
}

// await waits for people, or until something is due by time: a destination has rested, or nobody executed the withdrawal.
func (f *withdrawal) await(ctx workflow.Context) {
	f.look(ctx)
	switch f.row.Status {
	case exchange.WithdrawalPending, exchange.WithdrawalApproved, exchange.WithdrawalHold:
	default:
		return
	}
	changed := f.changed()
	if f.row.Due.IsZero() {
		patiently(ctx, changed)
		return
	}
	await(ctx, max(f.row.Due.Sub(workflow.Now(ctx)), 0)+dueMargin, "Wait for officers, or for the time", changed)
}

// carryOut does the next step of an executed withdrawal.
func (f *withdrawal) carryOut(ctx workflow.Context) {
	switch {
	case f.row.Method == exchange.WithdrawByChain:
		f.transfer(ctx)
	case !f.row.Sold:
		f.sell(ctx)
	case f.row.Method == exchange.WithdrawByBank:
		f.payByBank(ctx)
	default:
		f.payOut(ctx)
	}
}

// parkedOrMoved waits for an operator's retry, or until the status changes, for example because the merchant cancelled. Two officers end
// a withdrawal that can't go on; no command does. It reports whether there is a decision.
func (f *withdrawal) parkedOrMoved(ctx workflow.Context, r Reason, cause error) (decision, bool) {
	was := f.row.Status // before the detail is written, which takes time in which the merchant may cancel
	f.mark(ctx, exchange.WaitOperator)
	f.commands.only = []string{activities.VerbRetry}
	defer func() { f.commands.only = nil }()
	f.commands.park(ctx, r, cause)
	f.until(ctx, func() bool { return f.commands.hasDecision() || f.row.Status != was })
	var d decision
	decided := f.commands.hasDecision()
	if decided {
		d = f.commands.take()
	}
	f.commands.unpark(ctx, f.waitsFor())
	return d, decided
}

// markRow writes what the withdrawal waits for. The detail is only for readers, so a failure does not stop the flow.
func (f *withdrawal) markRow(ctx workflow.Context, detail string) {
	if f.row.Detail == detail || f.row.Status == "" || f.over() {
		return
	}
	in := activities.MarkWithdrawalInput{WithdrawalID: f.withdrawalID, Detail: detail}
	s, err := step(ctx, database, "Set the withdrawal's detail: "+detail, withdrawals.MarkWithdrawal, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the withdrawal's detail could not be written", "error", err)
		return
	}
	f.learn(ctx, s)
}

// finish waits for the handlers and ends the flow.
func (f *withdrawal) finish(ctx workflow.Context) (WithdrawalResult, error) {
	if err := lastHandlers(ctx); err != nil {
		return WithdrawalResult{}, err
	}
	if f.row.Status == "" { // refused
		return WithdrawalResult{WithdrawalID: f.withdrawalID, Detail: words(f.refusal)}, nil
	}
	f.showState(ctx)
	return WithdrawalResult{WithdrawalID: f.withdrawalID, Status: f.row.Status, Detail: f.row.Detail}, nil
}
