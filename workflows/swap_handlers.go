package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// handlers registers every handler before the first wait.
func (f *swap) handlers(ctx workflow.Context) error {
	id, err := swapForm.object(ctx)
	if err != nil {
		return err
	}
	f.swapID = id
	f.arrived, f.attend = func() bool { return f.resumed }, f.lookAgain
	h := &handlers{ctx: ctx}
	h.err = f.reach(ctx, SwapID(id), "swap "+id.String(), of(activities.ObjectSwap, id))
	h.update(UpdateOpen, "Answers when the swap is stored, or refused.", apartOpen(f.onOpen), nil)
	h.update(UpdateCancel, "Cancels the swap before anything is signed.", apart(f.onCancel), f.admitCancel)
	(&approvalHandler[SwapAck]{
		commands: f.commands, about: func() decidable[SwapAck] { return f },
		admit: func(ApprovalRef) error { return f.admitDecision() },
	}).open(h)
	return h.err
}

func (f *swap) ack() SwapAck { return SwapAck{Status: f.row.Status, Detail: f.row.Detail} }

func (f *swap) onOpen(ctx workflow.Context) (SwapAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return SwapAck{}, err
	}
	return f.ack(), nil
}

func (f *swap) admitCancel(IntentRef) error {
	if f.refusal != nil || f.opened && f.over() {
		return refuse(exchange.CodeStateConflict, "The swap can't be cancelled any more.")
	}
	return nil
}

// onCancel asks the database: only its rows show whether something was signed. The flow goes on with the state of the row.
func (f *swap) onCancel(ctx workflow.Context, ref IntentRef) (SwapAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return SwapAck{}, err
	}
	in := activities.CancelSwapInput{SwapID: f.swapID, IntentID: ref.IntentID}
	s, err := step(ctx, database, "Cancel the swap", swaps.CancelSwap, in)
	if err != nil {
		return SwapAck{}, passOn(err)
	}
	f.learn(ctx, s)
	return SwapAck{Status: s.Status, Detail: s.Detail}, nil
}

// admitDecision refuses decisions about a swap that was refused or has begun. Only its row shows whether it waits for one.
func (f *swap) admitDecision() error {
	if f.opened && f.refusal == nil && f.row.Status == exchange.SwapReserved {
		return nil
	}
	return refuse(exchange.CodeStateConflict, "The swap does not wait for a decision.")
}

func (f *swap) prove(ctx workflow.Context, action exchange.ApprovalAction, token string) (SwapAck, error) {
	in := activities.DecideSwapInput{SwapID: f.swapID, Action: action, Token: token}
	s, err := step(ctx, database, "Prove the officer's decision", swaps.DecideSwap, in)
	if err != nil {
		return SwapAck{}, err
	}
	f.learn(ctx, s)
	return SwapAck{Status: s.Status, Detail: s.Detail}, nil
}

func (f *swap) note(ctx workflow.Context, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code) error {
	return do(ctx, database, "Record a decision without proof", swaps.RecordRefusedSwapDecision,
		activities.RefusedSwapDecisionInput{SwapID: f.swapID, Action: action, Channel: channel, Code: code})
}

// stage and waitsFor are what operators search by.
func (f *swap) stage() string {
	switch f.row.Status {
	case exchange.SwapReserved:
		if f.row.Detail == exchange.WaitApproval || f.row.Detail == exchange.WaitSecond {
			return StageApproval
		}
		return StageCollect
	case exchange.SwapCollecting:
		return StageCollect
	case exchange.SwapCollected, exchange.SwapPayingOut:
		return StagePayout
	case exchange.SwapSyncing:
		return StageSync
	case exchange.SwapReview:
		if f.row.Detail == exchange.DetailDiffers {
			return StageSync
		}
		return StagePayout
	case exchange.SwapRefunding:
		return StageRefund
	case exchange.SwapCompleted, exchange.SwapRefunded, exchange.SwapCancelled, exchange.SwapExpired, exchange.SwapFailed:
	}
	return StageDone
}

func (f *swap) waitsFor() string {
	switch f.stage() {
	case StageApproval:
		return WaitsForOfficer
	case StageDone:
		return WaitsForNothing
	}
	return WaitsForChain
}

// showState shows the state of the swap, unless the flow is parked: then the details show the park reason.
func (f *swap) showState(ctx workflow.Context) {
	if f.row.Status == "" {
		return
	}
	show(ctx, AttrStatus.ValueSet(string(f.row.Status)), AttrStage.ValueSet(f.stage()))
	if f.commands.reason != "" {
		return
	}
	show(ctx, AttrWaitingFor.ValueSet(f.waitsFor()))
	until := f.waitsUntil()
	if !until.IsZero() {
		show(ctx, AttrDeadline.ValueSet(until))
	}
	f.commands.describe(ctx, f.stateCard(until))
}

// waitsUntil is when something is due for the swap by time; zero for never.
func (f *swap) waitsUntil() time.Time {
	switch f.row.Status {
	case exchange.SwapReserved:
		return f.row.Expires
	case exchange.SwapCollected, exchange.SwapPayingOut:
		return f.payoutDue()
	default:
		return time.Time{}
	}
}

// stateCard describes the state of the swap.
func (f *swap) stateCard(until time.Time) card {
	s := f.row
	c := card{title: "Swap " + string(s.Status)}
	c.add("Swap", f.swapID.String())
	if s.MerchantID != uuid.Nil {
		c.add("Merchant", s.MerchantID.String())
	}
	c.add("Gives", s.From.String()+" "+string(s.From.Asset())+" on "+string(s.Network))
	c.add("Gets", s.To.String()+" "+string(s.To.Asset()))
	if f.stage() == StageApproval {
		c.add("To decide", "an officer gets a token from POST /approvals/tokens and sends it with the signal "+
			SignalApprove+" or "+SignalReject+` as {"token": "…"}`)
	}
	c.add("Waits for", s.Detail)
	if !until.IsZero() {
		c.add("Until", moment(until))
	}
	return c
}
