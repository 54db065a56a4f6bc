package api

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// Flows is what the API does with Temporal. Commands are updates, which are validated and answered. External
// events are signals, which are accepted even while no worker runs. Errors are *exchange.Error: CodeNotFound
// when the flow has ended, CodeUnavailable when the outcome is not known yet and the call may be repeated.
type Flows interface {
	// OpenOrder starts the flow of an on-ramp order for an intent and returns when its row is stored. The flow gets only
	// the id of the intent; the request labels it for operators. A request id opens at most one order.
	OpenOrder(ctx context.Context, r exchange.OrderRequest, intent uuid.UUID) error
	// CancelOrder and RetryPayment send the order's flow an intent, which it applies once.
	CancelOrder(ctx context.Context, order, intent uuid.UUID) error
	RetryPayment(ctx context.Context, order, intent uuid.UUID) error
	// Command sends the order's flow the id of an operator's recorded decision.
	Command(ctx context.Context, order, command uuid.UUID) error
	// CommandFlow sends it to the parked flow with the id.
	CommandFlow(ctx context.Context, flow string, command uuid.UUID) error
	// CommandLate sends it to the flow that watches for late money of a payment attempt.
	CommandLate(ctx context.Context, attempt, command uuid.UUID) error
	// Callback wakes the flow that waits for a payment attempt. When that flow has ended, it wakes or starts one
	// that watches for late money.
	Callback(ctx context.Context, a exchange.PaymentAttempt, callback uuid.UUID) error
	// OpenTransfer starts the flow of a transfer for an intent and returns when its row is stored. A request id opens at
	// most one transfer.
	OpenTransfer(ctx context.Context, r exchange.TransferRequest, intent uuid.UUID) error
	// CancelTransfer sends the transfer's flow an intent to cancel it.
	CancelTransfer(ctx context.Context, transfer, intent uuid.UUID) error
	// DecideTransfer sends the transfer's flow an officer's decision. The token authorises it; the id is that of
	// the request.
	DecideTransfer(ctx context.Context, transfer, id uuid.UUID, action exchange.ApprovalAction, token string) error
	// CommandTransfer sends the transfer's flow the id of an operator's recorded decision.
	CommandTransfer(ctx context.Context, transfer, command uuid.UUID) error
	// HandOutTransfer has the unsigned transaction of a cold wallet's transfer prepared and stored, for an intent.
	HandOutTransfer(ctx context.Context, transfer, intent uuid.UUID) error
	// ImportTransfer sends the flow the intent that has that transaction, signed on the cold machine.
	ImportTransfer(ctx context.Context, transfer, intent uuid.UUID) error
	// CreateWallet has the signer make the key of the wallet that an intent asks for, and returns when its row is stored.
	CreateWallet(ctx context.Context, wallet, intent uuid.UUID) error
	// BringGas has the wallets looked at that will soon pay, now and not at the next minute. However often it is called, one look follows
	// another.
	BringGas(ctx context.Context) error

	// OpenOTC starts the flow of an OTC deposit for an intent and returns when its row is stored. A request id opens at most one deposit.
	OpenOTC(ctx context.Context, r exchange.OTCRequest, intent uuid.UUID) error
	// StepOTC sends the deposit's flow an intent of a verb, which it carries out once.
	StepOTC(ctx context.Context, deposit, intent uuid.UUID, verb exchange.IntentKind) error

	OffRampFlows
	RefundFlows
	FloatFlows
	WithdrawalFlows
	SwapFlows
	FeeFlows
	MultisigFlows
	ProposalFlows
	BankRefundFlows
}

// NewFlows returns Flows that use a Temporal server.
func NewFlows(c client.Client) Flows { return temporalFlows{c} }

type temporalFlows struct{ client client.Client }

func (t temporalFlows) OpenOrder(ctx context.Context, r exchange.OrderRequest, intent uuid.UUID) error {
	return t.open(ctx, intent, client.StartWorkflowOptions{
		ID: workflows.OnRampID(r.ID), WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary: workflows.OnRampSummary(r), TypedSearchAttributes: workflows.OnRampAttributes(r),
	}, workflows.TypeOnRamp, workflows.OnRampInput{IntentID: intent})
}

func (t temporalFlows) BringGas(ctx context.Context) error {
	handle := t.client.ScheduleClient().GetHandle(ctx, workflows.ScheduleGasAhead)
	return fromTemporal(handle.Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE}))
}

// open starts a flow, unless it runs already, and returns when it has stored its row. A flow that has ended is left as
// it is: its row has the outcome. The update is the id under which the flow knows a repetition.
func (t temporalFlows) open(ctx context.Context, update uuid.UUID, o client.StartWorkflowOptions, flow string, in any) error {
	o.TaskQueue, o.WorkflowIDConflictPolicy = workflows.QueueFlows, enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	handle, err := t.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: t.client.NewWithStartWorkflowOperation(o, flow, in),
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID: update.String(), UpdateName: workflows.UpdateOpen, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if _, ended := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ended {
		return nil
	}
	if err != nil {
		return fromTemporal(err)
	}
	var done struct{} // the row has the answer
	return fromTemporal(handle.Get(ctx, &done))
}

// startRow starts the flow of a stored row, unless it runs. It may be started again at any time: it finds in its rows what was done.
func (t temporalFlows) startRow(ctx context.Context, r exchange.LiveRow) error {
	flow := workflows.LiveFlowOf(r)
	_, err := t.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: flow.ID, TaskQueue: workflows.QueueFlows, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true, StaticSummary: flow.Summary, TypedSearchAttributes: flow.Shown,
	}, flow.Type, flow.Input)
	if _, runs := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); runs {
		return nil
	}
	return fromTemporal(err)
}

func (t temporalFlows) CancelOrder(ctx context.Context, order, intent uuid.UUID) error {
	return t.intend(ctx, workflows.OnRampID(order), workflows.UpdateCancel, intent)
}

func (t temporalFlows) RetryPayment(ctx context.Context, order, intent uuid.UUID) error {
	return t.intend(ctx, workflows.OnRampID(order), workflows.UpdateRetryPayment, intent)
}

// intend sends a flow an intent. The update has the intent's id, so that the flow gets it once.
func (t temporalFlows) intend(ctx context.Context, flow, name string, intent uuid.UUID) error {
	return t.update(ctx, flow, intent, name, workflows.IntentRef{IntentID: intent})
}

// step is intend for a verb that the flow's timeline shows.
func (t temporalFlows) step(ctx context.Context, flow string, intent uuid.UUID, verb exchange.IntentKind) error {
	return t.update(ctx, flow, intent, workflows.UpdateStep, workflows.IntentRef{IntentID: intent, Verb: verb})
}

func (t temporalFlows) Command(ctx context.Context, order, command uuid.UUID) error {
	return t.update(ctx, workflows.OnRampID(order), command, workflows.UpdateCommand, workflows.CommandRef{CommandID: command})
}

func (t temporalFlows) CommandFlow(ctx context.Context, flow string, command uuid.UUID) error {
	return t.update(ctx, flow, command, workflows.UpdateCommand, workflows.CommandRef{CommandID: command})
}

func (t temporalFlows) CommandLate(ctx context.Context, attempt, command uuid.UUID) error {
	return t.update(ctx, workflows.LatePaymentID(attempt), command, workflows.UpdateCommand, workflows.CommandRef{CommandID: command})
}

// maxUpdates is how often a request sends its update.
const maxUpdates = 20

// update sends an update and returns its outcome. Temporal keeps an outcome under the update's id, also that a step could not
// be carried out in its time (CodeUnavailable). That decides nothing, so the request tries again under its next id; steps may
// be repeated.
func (t temporalFlows) update(ctx context.Context, flow string, id uuid.UUID, name string, argument any) (err error) {
	for n := range maxUpdates {
		update := id
		if n > 0 {
			update = uuid.NewSHA1(id, []byte{byte(n)})
		}
		err = t.updateOnce(ctx, flow, update, name, argument)
		if err == nil || passing(err) || ctx.Err() != nil || exchange.CodeOf(fromTemporal(err)) != exchange.CodeUnavailable {
			break
		}
	}
	return fromTemporal(err)
}

func (t temporalFlows) updateOnce(ctx context.Context, flow string, id uuid.UUID, name string, argument any) error {
	handle, err := t.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: flow, UpdateID: id.String(), UpdateName: name, Args: []any{argument},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	var ack workflows.Ack
	return handle.Get(ctx, &ack)
}

func (t temporalFlows) Callback(ctx context.Context, a exchange.PaymentAttempt, callback uuid.UUID) error {
	ref := workflows.CallbackRef{CallbackID: callback, AttemptID: a.ID}
	err := t.client.SignalWorkflow(ctx, a.WorkflowID, "", workflows.SignalCallback, ref)
	_, over := errors.AsType[*serviceerror.NotFound](err)
	if a.Direction == exchange.Payout && (over || settled(a.Status)) {
		return t.latePayout(ctx, a, ref)
	}
	if !over || a.Direction != exchange.Collection {
		return fromTemporal(err)
	}
	_, err = t.client.SignalWithStartWorkflow(ctx, workflows.LatePaymentID(a.ID), workflows.SignalCallback, ref,
		client.StartWorkflowOptions{
			TaskQueue: workflows.QueueFlows, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			StaticSummary: workflows.LatePaymentSummary, TypedSearchAttributes: workflows.LatePaymentAttributes(),
		}, workflows.TypeLatePayment, workflows.WatchOf(a))
	return fromTemporal(err)
}

// settled reports whether the flow of a payout ignores all further notices about it.
func settled(s exchange.AttemptStatus) bool {
	return s == exchange.AttemptSucceeded || s == exchange.AttemptFailed || s == exchange.AttemptRefused
}

// latePayout wakes the flow that checks a late notice about a payout whose own flow has ended or has settled it.
func (t temporalFlows) latePayout(ctx context.Context, a exchange.PaymentAttempt, ref workflows.CallbackRef) error {
	_, err := t.client.SignalWithStartWorkflow(ctx, workflows.LatePayoutID(a.ID), workflows.SignalCallback, ref,
		client.StartWorkflowOptions{
			TaskQueue: workflows.QueueFlows, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			StaticSummary: workflows.LatePayoutSummary, TypedSearchAttributes: workflows.LatePayoutAttributes(),
		}, workflows.TypeLatePayout, workflows.LatePayoutOf(a))
	return fromTemporal(err)
}

func (t temporalFlows) OpenTransfer(ctx context.Context, r exchange.TransferRequest, intent uuid.UUID) error {
	return t.open(ctx, intent, client.StartWorkflowOptions{
		ID: workflows.TransferID(r.ID), WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary: workflows.TransferSummary(r), TypedSearchAttributes: workflows.TransferAttributes(r),
	}, workflows.TypeTransfer, workflows.TransferInput{IntentID: intent})
}

func (t temporalFlows) CancelTransfer(ctx context.Context, transfer, intent uuid.UUID) error {
	return t.intend(ctx, workflows.TransferID(transfer), workflows.UpdateCancel, intent)
}

func (t temporalFlows) DecideTransfer(ctx context.Context, transfer, id uuid.UUID, action exchange.ApprovalAction, token string) error {
	name := workflows.UpdateReject
	if action == exchange.Approve {
		name = workflows.UpdateApprove
	}
	return t.update(ctx, workflows.TransferID(transfer), id, name, workflows.ApprovalRef{Token: token})
}

func (t temporalFlows) CommandTransfer(ctx context.Context, transfer, command uuid.UUID) error {
	return t.update(ctx, workflows.TransferID(transfer), command, workflows.UpdateCommand, workflows.CommandRef{CommandID: command})
}

func (t temporalFlows) HandOutTransfer(ctx context.Context, transfer, intent uuid.UUID) error {
	return t.intend(ctx, workflows.TransferID(transfer), workflows.UpdatePayload, intent)
}

func (t temporalFlows) ImportTransfer(ctx context.Context, transfer, intent uuid.UUID) error {
	return t.intend(ctx, workflows.TransferID(transfer), workflows.UpdateImport, intent)
}

func (t temporalFlows) CreateWallet(ctx context.Context, wallet, intent uuid.UUID) error {
	run, err := t.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: workflows.WalletID(wallet), TaskQueue: workflows.QueueFlows,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "Wallet " + wallet.String(),
	}, workflows.TypeCreateWallet, workflows.CreateWalletInput{IntentID: intent})
	if err != nil {
		return fromTemporal(err)
	}
	var created workflows.WalletCreated
	return fromTemporal(run.Get(ctx, &created))
}

func (t temporalFlows) OpenOTC(ctx context.Context, r exchange.OTCRequest, intent uuid.UUID) error {
	return t.open(ctx, intent, client.StartWorkflowOptions{
		ID: workflows.OTCDepositID(r.ID), WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary: workflows.OTCDepositSummary(r), TypedSearchAttributes: workflows.OTCDepositAttributes(),
	}, workflows.TypeOTCDeposit, workflows.OTCDepositInput{IntentID: intent})
}

func (t temporalFlows) StepOTC(ctx context.Context, deposit, intent uuid.UUID, verb exchange.IntentKind) error {
	return t.step(ctx, workflows.OTCDepositID(deposit), intent, verb)
}

// fromTemporal converts errors of the Temporal service. Errors of a flow are converted by
// workflows.AsExchangeError.
func fromTemporal(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return exchange.Wrap(exchange.CodeNotFound, err, "The flow has ended.")
	}
	if passing(err) {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The service did not answer in time. Repeat the request with the same Idempotency-Key.")
	}
	return workflows.AsExchangeError(err)
}

// passing reports whether an error of the Temporal service is temporary. The outcome may then be unknown.
func passing(err error) bool {
	_, unavailable := errors.AsType[*serviceerror.Unavailable](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	_, exhausted := errors.AsType[*serviceerror.ResourceExhausted](err)
	_, canceled := errors.AsType[*serviceerror.Canceled](err)
	_, update := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	return unavailable || late || exhausted || canceled || update ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
