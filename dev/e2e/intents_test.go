package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/workflows"
)

// TestD2_WritersToTemporalMoveNothing plays somebody with all rights on Temporal and without a payload key: it starts,
// updates, signals, resets, terminates and cancels by hand, with payloads of its own and with copies of those that are
// there. Nothing moves that nobody asked for, and nothing is lost.
func TestD2_WritersToTemporalMoveNothing(t *testing.T) {
	w := open(t)
	w.approvalRule(t, "300", "2000")
	defer w.approvalRule(t, seededOne, ruleTwo)
	vendor, officer := w.as(t, demo.VendorEmail), w.operator(t)
	a := intruder{w, w.webUI(t), vendor}
	mine := w.arrives(t, officer, w.send(t, vendor, "5", map[string]any{"address": newAddress(t)}).ID, "pending_approval")
	theirs := w.arrives(t, officer, w.send(t, vendor, "6", map[string]any{"address": newAddress(t)}).ID, "pending_approval")
	before := a.objects(t)

	t.Run("clear starts", func(t *testing.T) { a.clearStarts(t) })
	t.Run("copied starts", func(t *testing.T) { a.copiedStarts(t, mine.ID) })
	t.Run("clear updates", func(t *testing.T) { a.clearUpdates(t, mine.ID) })
	a.unchanged(t, before)
	w.stays(t, officer, mine, 0)

	t.Run("terminated and started again", func(t *testing.T) {
		flow := workflows.TransferID(mine.ID)
		input := a.started(t, flow)
		if err := a.ui.TerminateWorkflow(t.Context(), flow, "", "an attack"); err != nil {
			t.Fatal(err)
		}
		a.start(t, flow, workflows.TypeTransfer, input)
		w.stays(t, officer, mine, 0)
		a.unchanged(t, before)
	})
	t.Run("reset", func(t *testing.T) {
		a.reset(t, workflows.TransferID(mine.ID))
		w.stays(t, officer, mine, 0)
		a.unchanged(t, before)
	})
	t.Run("cancelled execution", func(t *testing.T) {
		if err := a.ui.CancelWorkflow(t.Context(), workflows.TransferID(mine.ID), ""); err != nil {
			t.Fatal(err)
		}
		w.stays(t, officer, mine, 0)
	})
	t.Run("copied updates", func(t *testing.T) {
		if err := insist(t.Context(), vendor, ofTransfer(mine.ID, "cancel"), uuid.NewString(), nil, nil); err != nil {
			t.Fatal(err)
		}
		w.arrives(t, vendor, mine.ID, "cancelled")
		cancel := a.updated(t, workflows.TransferID(mine.ID), workflows.UpdateCancel)
		for _, name := range []string{workflows.UpdateCancel, workflows.UpdatePayload, workflows.UpdateImport, workflows.UpdateApprove, workflows.UpdateCommand} {
			if err := a.update(t, workflows.TransferID(theirs.ID), name, cancel); err == nil {
				t.Errorf("a copied cancellation was accepted as %s", name)
			}
		}
		w.stays(t, officer, theirs, 0)
		a.start(t, workflows.TransferID(mine.ID), workflows.TypeTransfer, a.started(t, workflows.TransferID(mine.ID)))
		w.arrives(t, vendor, mine.ID, "cancelled")
	})
	if err := insist(t.Context(), vendor, ofTransfer(theirs.ID, "cancel"), uuid.NewString(), nil, nil); err != nil {
		t.Fatal(err)
	}
	w.arrives(t, vendor, theirs.ID, "cancelled")
	w.invariants(t)
}

// TestD2_WhatWasRefusedIsNotOpenedLater restarts the flow of a transfer that was refused, with a copy of its input, when
// there is money after all.
func TestD2_WhatWasRefusedIsNotOpenedLater(t *testing.T) {
	w := open(t)
	vendor := w.as(t, demo.VendorEmail)
	a := intruder{w, w.webUI(t), vendor}
	before := a.objects(t)
	in := map[string]any{"network": "tron", "asset": "USDT", "amount": "900000000", "recipient": map[string]any{"address": newAddress(t)}}
	if err := vendor.Post(t.Context(), "/api/v1/auth/transfers", uuid.NewString(), in, nil); err == nil || is(err, http.StatusInternalServerError) {
		t.Fatalf("the request was answered with %v", err)
	}
	var object uuid.UUID
	var refusal string
	err := w.db.QueryRowContext(t.Context(), `SELECT object_id, refusal FROM intents WHERE user_id = $1 AND refused_at IS NOT NULL ORDER BY refused_at DESC LIMIT 1`, w.vendor).
		Scan(&object, &refusal)
	if err != nil {
		t.Fatal(err)
	}
	flow := workflows.TransferID(object)
	a.start(t, flow, workflows.TypeTransfer, a.started(t, flow))
	eventually(t, "the second run has ended", func() error {
		d, err := a.ui.DescribeWorkflowExecution(t.Context(), flow, "")
		if err == nil && d.WorkflowExecutionInfo.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			err = errors.New("it runs")
		}
		return err
	})
	a.unchanged(t, before)
	w.invariants(t)
}

// intruder has all rights on Temporal and no key.
type intruder struct {
	w      *harness
	ui     temporal.Client
	victim *client.Client
}

// objects counts what flows open and pay.
func (a intruder) objects(t *testing.T) string {
	t.Helper()
	var n string
	err := a.w.db.QueryRowContext(t.Context(), `SELECT concat_ws(' ', (SELECT count(*) FROM transfers), (SELECT count(*) FROM orders), (SELECT count(*) FROM wallets WHERE owner_id IS NOT NULL),
		(SELECT count(*) FROM chain_payments WHERE purpose <> 'gas'), (SELECT count(*) FROM refunds), (SELECT count(*) FROM holds WHERE status = 'held'))`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (a intruder) unchanged(t *testing.T, before string) {
	t.Helper()
	if now := a.objects(t); now != before {
		t.Errorf("transfers, orders, wallets, payments, refunds and holds were %s and are %s", before, now)
	}
}

// start starts a flow with a payload as it is, and waits until the flow has taken or refused it.
func (a intruder) start(t *testing.T, id, flow string, input *commonpb.Payload) {
	t.Helper()
	_, err := a.ui.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.QueueFlows, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, flow, converter.NewRawValue(input))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the flow "+id+" has had a task", func() error {
		for _, e := range a.history(t, id) {
			if e.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
				return nil
			}
		}
		return errors.New("it has not")
	})
}

// failed waits until a flow has failed.
func (a intruder) failed(t *testing.T, id string) {
	t.Helper()
	eventually(t, "the flow "+id+" has failed", func() error {
		d, err := a.ui.DescribeWorkflowExecution(t.Context(), id, "")
		if err == nil && d.WorkflowExecutionInfo.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_FAILED {
			err = fmt.Errorf("it is %s", d.WorkflowExecutionInfo.GetStatus())
		}
		return err
	})
}

func (a intruder) clear(t *testing.T, value any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(value)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// clearStarts starts every flow that takes an input with a clear one, which names everything that it could need.
func (a intruder) clearStarts(t *testing.T) {
	id := uuid.New()
	typed := a.clear(t, map[string]any{
		"intent_id": id, "payment_id": id, "order_id": id, "attempt_id": id, "request_id": id, "exception_id": id, "network": "tron",
		"request": map[string]any{"id": id, "requested_by": a.w.vendor, "network": "tron", "amount": "10 USDT", "recipient": map[string]any{"address": newAddress(t)}},
		"actor":   map[string]any{"user_id": a.w.vendor, "role": "vendor"}, "object": map[string]any{"type": "order", "id": id},
	})
	for flow, form := range map[string]string{
		workflows.TypeTransfer: workflows.TransferID(id), workflows.TypeOnRamp: workflows.OnRampID(id), workflows.TypeOffRamp: workflows.OffRampID(id),
		workflows.TypeCreateWallet: workflows.WalletID(id), workflows.TypeReturnDeposit: workflows.ReturnDepositID(id),
		workflows.TypeCryptoPayout: workflows.CryptoPayoutID(id), workflows.TypeMomoPayout: workflows.MomoPayoutID(exchange.OrderObject(id)),
		workflows.TypeLatePayment: workflows.LatePaymentID(id), workflows.TypeLatePayout: workflows.LatePayoutID(uuid.New()), workflows.TypeMoveFloat: workflows.MoveFloatID(id),
	} {
		a.start(t, form, flow, typed)
		a.failed(t, form)
	}
}

// copiedStarts starts other flows with the encrypted input of one.
func (a intruder) copiedStarts(t *testing.T, transfer uuid.UUID) {
	input := a.started(t, workflows.TransferID(transfer))
	for id, flow := range map[string]string{
		workflows.TransferID(uuid.New()): workflows.TypeTransfer, workflows.OffRampID(transfer): workflows.TypeOffRamp, workflows.OnRampID(transfer): workflows.TypeOnRamp,
		workflows.WalletID(transfer): workflows.TypeCreateWallet, "transfer:" + transfer.String() + " ": workflows.TypeTransfer,
	} {
		a.start(t, id, flow, input)
		a.failed(t, id)
	}
}

// clearUpdates sends a transfer's flow every update with names and ids that are typed in.
func (a intruder) clearUpdates(t *testing.T, transfer uuid.UUID) {
	typed := a.clear(t, map[string]any{"user_id": a.w.vendor, "role": "admin", "intent_id": transfer, "command_id": transfer, "token": "t", "raw": "00"})
	for _, name := range []string{workflows.UpdateCancel, workflows.UpdatePayload, workflows.UpdateImport, workflows.UpdateApprove, workflows.UpdateReject, workflows.UpdateCommand} {
		if err := a.update(t, workflows.TransferID(transfer), name, typed); err == nil {
			t.Errorf("a clear %s was accepted", name)
		}
	}
}

func (a intruder) update(t *testing.T, flow, name string, payload *commonpb.Payload) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	handle, err := a.ui.UpdateWorkflow(ctx, temporal.UpdateWorkflowOptions{
		WorkflowID: flow, UpdateName: name, Args: []any{converter.NewRawValue(payload)}, WaitForStage: temporal.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, nil)
}

func (a intruder) history(t *testing.T, flow string) []*historypb.HistoryEvent {
	t.Helper()
	var all []*historypb.HistoryEvent
	for events := a.ui.GetWorkflowHistory(t.Context(), flow, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// started copies the input of a flow.
func (a intruder) started(t *testing.T, flow string) *commonpb.Payload {
	t.Helper()
	return a.history(t, flow)[0].GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()[0]
}

// updated copies the argument of an update.
func (a intruder) updated(t *testing.T, flow, name string) *commonpb.Payload {
	t.Helper()
	for _, e := range a.history(t, flow) {
		if r := e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest(); r.GetInput().GetName() == name {
			return r.GetInput().GetArgs().GetPayloads()[0]
		}
	}
	t.Fatalf("%s had no update %s", flow, name)
	return nil
}

// reset sets a flow back to its first task.
func (a intruder) reset(t *testing.T, flow string) {
	t.Helper()
	for _, e := range a.history(t, flow) {
		if e.EventType != enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			continue
		}
		_, err := a.ui.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: "kivuko", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: flow}, Reason: "an attack", RequestId: uuid.NewString(),
			WorkflowTaskFinishEventId: e.EventId,
		})
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}
