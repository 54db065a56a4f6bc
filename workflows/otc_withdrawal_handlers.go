package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// WithdrawalInput starts the flow of a withdrawal.
type WithdrawalInput struct {
	IntentID uuid.UUID `json:"intent_id"`
}

// WithdrawalResult is how the flow ended.
type WithdrawalResult struct {
	WithdrawalID uuid.UUID                 `json:"withdrawal_id"`
	Status       exchange.WithdrawalStatus `json:"status,omitempty"` // empty when the withdrawal was refused and never existed
	Detail       string                    `json:"detail,omitempty"`
}

// WithdrawalAck answers the updates of a withdrawal with its state.
type WithdrawalAck struct {
	Status exchange.WithdrawalStatus `json:"status,omitempty"`
	Detail string                    `json:"detail,omitempty"`
}

// handlers registers every handler before the first wait.
func (f *withdrawal) handlers(ctx workflow.Context) error {
	id, err := withdrawalForm.object(ctx)
	if err != nil {
		return err
	}
	f.withdrawalID = id
	f.flow.mark = f.markRow
	f.arrived, f.attend = func() bool { return f.resumed }, f.lookAgain
	h := &handlers{ctx: ctx}
	h.err = f.reach(ctx, WithdrawalID(id), "withdrawal "+id.String(), of(activities.ObjectWithdrawal, id))
	f.hearsOfFloat()
	f.hearsOfPayouts()
	h.update(UpdateOpen, "Answers when the withdrawal is stored, or refused.", apartOpen(f.onOpen), nil)
	h.update(UpdateStep, "Carries out a verb on the withdrawal, as somebody asked.", apart(f.onStep), nil)
	(&approvalHandler[WithdrawalAck]{
		commands: f.commands, about: func() decidable[WithdrawalAck] { return f },
		admit: func(ApprovalRef) error { return f.admitDecision() },
	}).open(h)
	return h.err
}

func (f *withdrawal) ack() WithdrawalAck {
	return WithdrawalAck{Status: f.row.Status, Detail: f.row.Detail}
}

func (f *withdrawal) onOpen(ctx workflow.Context) (WithdrawalAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return WithdrawalAck{}, err
	}
	return f.ack(), nil
}

// onStep asks the database: only its row shows what a verb may do now. The flow goes on with the state of the row.
func (f *withdrawal) onStep(ctx workflow.Context, ref IntentRef) (WithdrawalAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return WithdrawalAck{}, err
	}
	in := activities.WithdrawalStepInput{WithdrawalID: f.withdrawalID, IntentID: ref.IntentID}
	s, err := step(ctx, database, ref.summary(), withdrawals.StepWithdrawal, in)
	if err != nil {
		return WithdrawalAck{}, passOn(err)
	}
	f.learn(ctx, s)
	return WithdrawalAck{Status: s.Status, Detail: s.Detail}, nil
}

// admitDecision refuses decisions about a withdrawal that was refused or has ended. Only its row shows whether it waits for one.
func (f *withdrawal) admitDecision() error {
	if f.opened && f.refusal == nil && !f.over() {
		return nil
	}
	return refuse(exchange.CodeStateConflict, "The withdrawal does not wait for a decision.")
}

func (f *withdrawal) prove(ctx workflow.Context, action exchange.ApprovalAction, token string) (WithdrawalAck, error) {
	in := activities.DecideWithdrawalInput{WithdrawalID: f.withdrawalID, Action: action, Token: token}
	s, err := step(ctx, database, "Prove the officer's decision", withdrawals.DecideWithdrawal, in)
	if err != nil {
		return WithdrawalAck{}, err
	}
	f.learn(ctx, s)
	return WithdrawalAck{Status: s.Status, Detail: s.Detail}, nil
}

func (f *withdrawal) note(ctx workflow.Context, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code) error {
	return do(ctx, database, "Record a decision without proof", withdrawals.RecordRefusedWithdrawalDecision,
		activities.RefusedWithdrawalDecisionInput{WithdrawalID: f.withdrawalID, Action: action, Channel: channel, Code: code})
}

// stage and waitsFor are what operators search by.
func (f *withdrawal) stage() string {
	switch f.row.Status {
	case exchange.WithdrawalRequested:
		return StageScreening
	case exchange.WithdrawalPending, exchange.WithdrawalApproved, exchange.WithdrawalHold:
		return StageApproval
	case exchange.WithdrawalExecuting, exchange.WithdrawalConfirming, exchange.WithdrawalReview:
		switch {
		case !f.row.Sold:
			return StageSweep
		case f.row.Method == exchange.WithdrawByBank:
			return StageBank
		}
		return StagePayout
	case exchange.WithdrawalCompleted, exchange.WithdrawalRejected, exchange.WithdrawalCancelled, exchange.WithdrawalFailed:
	}
	return StageDone
}

func (f *withdrawal) waitsFor() string {
	switch f.stage() {
	case StageScreening:
		return WaitsForScreener
	case StageApproval:
		return WaitsForOfficer
	case StageSweep:
		return WaitsForChain
	case StageBank:
		return WaitsForBank
	case StagePayout:
		if f.row.Method == exchange.WithdrawByChain {
			return WaitsForChain
		}
		return WaitsForMomo
	}
	return WaitsForNothing
}

// showState shows the state of the withdrawal, unless the flow is parked: then the details show the park reason.
func (f *withdrawal) showState(ctx workflow.Context) {
	if f.row.Status == "" {
		return
	}
	show(ctx, AttrStatus.ValueSet(string(f.row.Status)), AttrStage.ValueSet(f.stage()))
	if f.commands.reason != "" {
		return
	}
	show(ctx, AttrWaitingFor.ValueSet(f.waitsFor()))
	if !f.row.Due.IsZero() {
		show(ctx, AttrDeadline.ValueSet(f.row.Due))
	}
	f.describe(ctx)
}

func (f *withdrawal) describe(ctx workflow.Context) {
	if f.commands.reason == "" {
		f.commands.describe(ctx, f.stateCard(f.row.Detail, f.row.Due))
	}
}

// payoutCard describes a withdrawal that is paid to a phone.
func (f *withdrawal) payoutCard(waits string, until time.Time) card { return f.stateCard(waits, until) }

// stateCard describes the state of the withdrawal.
func (f *withdrawal) stateCard(waits string, until time.Time) card {
	w := f.row
	c := card{title: "Withdrawal " + string(w.Status)}
	c.add("Withdrawal", f.withdrawalID.String())
	c.add("Merchant", w.MerchantID.String())
	c.add("Takes", w.Source.String()+" "+string(w.Source.Asset())+" as "+w.Payout.String()+" "+string(w.Payout.Asset())+" by "+string(w.Method))
	if w.Status == exchange.WithdrawalPending {
		c.add("To decide", "an officer gets a token from POST /approvals/tokens and sends it with the signal "+
			SignalApprove+" or "+SignalReject+` as {"token": "…"}`)
	}
	c.add("Waits for", waits)
	c.add("To bring more", f.source)
	if !until.IsZero() {
		c.add("Until", moment(until))
	}
	return c
}

// WithdrawalAttributes are the search attributes with which the API starts a withdrawal's flow.
func WithdrawalAttributes(payout money.Asset) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(AttrStatus.ValueSet(string(exchange.WithdrawalRequested)), AttrStage.ValueSet(StageScreening),
		AttrAsset.ValueSet(string(payout)), AttrNeedsAttention.ValueSet(false))
}

// WithdrawalSummary is the summary of a withdrawal's flow in the Web UI.
func WithdrawalSummary(r exchange.WithdrawalRequest) string {
	return "Withdrawal of " + string(r.Source) + " as " + string(r.Payout)
}
