package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// handlers registers every handler before the first wait.
func (f *transfer) handlers(ctx workflow.Context) error {
	id, err := transferForm.object(ctx)
	if err != nil {
		return err
	}
	f.transferID = id
	cold := func(IntentRef) error { return f.admitCold() }
	h := &handlers{ctx: ctx}
	h.err = f.reach(ctx, TransferID(id), "transfer "+id.String(), of(activities.ObjectTransfer, id))
	h.update(UpdateOpen, "Answers when the transfer is stored, or refused.", apartOpen(f.onOpen), nil)
	h.update(UpdateCancel, "Cancels the transfer before anything is signed.", apart(f.onCancel), f.admitCancel)
	h.update(UpdatePayload, "An officer requests the transaction of a cold wallet, to sign it offline.", apart(f.onPayload), cold)
	h.update(UpdateImport, "An officer imports the transaction of a cold wallet, signed offline.", apart(f.onImport), cold)
	(&approvalHandler[TransferAck]{
		commands: f.commands, about: func() decidable[TransferAck] { return f },
		admit: func(ApprovalRef) error { return f.admitDecision() },
	}).open(h)
	return h.err
}

// admitDecision refuses decisions while the transfer does not wait for one. Its row may already be pending while the answer of
// the step that made it so is still on its way; whether it is, the step of the decision sees.
func (f *transfer) admitDecision() error {
	undecided := []exchange.TransferStatus{exchange.TransferCreated, exchange.TransferScreening, exchange.TransferPending}
	if f.opened && slices.Contains(undecided, f.row.Status) {
		return nil
	}
	return refuse(exchange.CodeStateConflict, "The transfer does not wait for a decision.")
}

func (f *transfer) prove(ctx workflow.Context, action exchange.ApprovalAction, token string) (TransferAck, error) {
	in := activities.DecideInput{TransferID: f.transferID, Action: action, Token: token}
	s, err := step(ctx, database, "Prove the officer's decision", approvals.DecideTransfer, in)
	if err != nil {
		return TransferAck{}, err
	}
	f.learn(ctx, s)
	return TransferAck{Status: s.Status, Detail: s.Detail}, nil
}

func (f *transfer) note(ctx workflow.Context, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code) error {
	return do(ctx, database, "Record a decision without proof", approvals.RecordRefusedDecision,
		activities.RefusedDecisionInput{TransferID: f.transferID, Action: action, Channel: channel, Code: code})
}

func (f *transfer) onOpen(ctx workflow.Context) (TransferOpened, error) {
	if err := f.hasOpened(ctx); err != nil {
		return TransferOpened{}, err
	}
	return TransferOpened{TransferID: f.row.TransferID}, nil
}

func (f *transfer) admitCancel(IntentRef) error {
	if f.refusal != nil || (f.opened && exchange.TransferMachine.Terminal(f.row.Status)) {
		return refuse(exchange.CodeStateConflict, "The transfer can't be cancelled any more.")
	}
	return nil
}

// onCancel asks the database: only its rows show whether something was signed. The flow goes on with the state of the row.
func (f *transfer) onCancel(ctx workflow.Context, ref IntentRef) (TransferAck, error) {
	if err := f.hasOpened(ctx); err != nil {
		return TransferAck{}, err
	}
	if err := checkIntent(ctx, ref, exchange.IntendTransferCancel); err != nil {
		return TransferAck{}, err
	}
	if err := f.withdraw(ctx, activities.Behalf{IntentID: ref.IntentID}); err != nil {
		return TransferAck{}, err
	}
	in := activities.CancelTransferInput{TransferID: f.transferID, IntentID: ref.IntentID}
	s, err := step(ctx, database, "Cancel the transfer", transfers.CancelTransfer, in)
	if err != nil {
		return TransferAck{}, passOn(err)
	}
	f.learn(ctx, s)
	return TransferAck{Status: s.Status, Detail: s.Detail}, nil
}

// finish waits for the handlers and ends the flow.
func (f *transfer) finish(ctx workflow.Context) (TransferResult, error) {
	if err := lastHandlers(ctx); err != nil {
		return TransferResult{}, err
	}
	if f.row.Status == "" { // refused
		return TransferResult{TransferID: f.transferID, Detail: words(f.refusal)}, nil
	}
	f.showState(ctx)
	return TransferResult{TransferID: f.row.TransferID, Status: f.row.Status, Detail: f.row.Detail}, nil
}

// stage and waitsFor are what operators search by.
func (f *transfer) stage() string {
	switch f.row.Status {
	case exchange.TransferCreated, exchange.TransferScreening:
		return StageScreening
	case exchange.TransferPending:
		return StageApproval
	case exchange.TransferQueued, exchange.TransferSigning, exchange.TransferBroadcasting, exchange.TransferConfirming:
		return StagePayout
	case exchange.TransferBlocked, exchange.TransferCompleted, exchange.TransferCancelled, exchange.TransferRejected, exchange.TransferFailed:
	}
	return StageDone
}

func (f *transfer) waitsFor() string {
	switch f.stage() {
	case StageScreening:
		return WaitsForScreener
	case StageApproval:
		return WaitsForOfficer
	case StagePayout:
		return WaitsForChain
	}
	return WaitsForNothing
}

// showState shows the state of the transfer, unless the flow is parked: then the details show the park reason.
func (f *transfer) showState(ctx workflow.Context) {
	if f.row.Status == "" {
		return
	}
	show(ctx, AttrStatus.ValueSet(string(f.row.Status)), AttrStage.ValueSet(f.stage()))
	if f.commands.reason != "" {
		return
	}
	show(ctx, AttrWaitingFor.ValueSet(f.waitsFor()))
	until := time.Time{}
	if f.row.Status == exchange.TransferPending {
		until = f.lapsesAt
	}
	f.commands.describe(ctx, transferCard(f.row, until))
}

// transferCard describes the state of a transfer.
func transferCard(t activities.OpenedTransfer, until time.Time) card {
	c := card{title: "Transfer " + string(t.Status)}
	c.add("Transfer", t.TransferID.String())
	c.add("Sends", fmt.Sprintf("%s %s on %s, %s", t.Amount, t.Amount.Asset(), t.Network, t.Kind))
	if t.Status == exchange.TransferPending {
		c.add("Approvals", fmt.Sprintf("%d of %d", t.Approvals, t.Required))
		c.add("To decide", "an officer gets a token from POST /approvals/tokens and sends it with the signal "+
			SignalApprove+" or "+SignalReject+` as {"token": "…"}`)
	}
	c.add("Waits for", t.Detail)
	if !until.IsZero() {
		c.add("Until", moment(until))
	}
	return c
}

// TransferAttributes are the search attributes with which the API starts a transfer's flow.
func TransferAttributes(r exchange.TransferRequest) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		AttrStatus.ValueSet(string(exchange.TransferCreated)), AttrStage.ValueSet(StageScreening), AttrNetwork.ValueSet(string(r.Network)),
		AttrAsset.ValueSet(string(r.Amount.Asset())), AttrNeedsAttention.ValueSet(false),
	)
}

// TransferSummary is the summary of a transfer's flow in the Web UI.
func TransferSummary(r exchange.TransferRequest) string {
	return "Transfer " + r.Amount.String() + " " + string(r.Amount.Asset())
}

// transferPayoutAttributes are those of the child that carries out a transfer's payment.
func transferPayoutAttributes(t activities.OpenedTransfer) temporal.SearchAttributes {
	return attributes(StagePayout, WaitsForChain, AttrNetwork.ValueSet(string(t.Network)), AttrAsset.ValueSet(string(t.Amount.Asset())),
		AttrMerchantID.ValueSet(t.MerchantID.String()))
}
