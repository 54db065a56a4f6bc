package e2e

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/workflows"
)

// TestD2_WritersToTemporalMoveNothing plays somebody with all rights on Temporal and without a payload key: it starts,
// updates, signals, resets, terminates and cancels by hand, with payloads of its own and with copies of those that are
// there. Nothing moves that nobody asked for, and nothing is lost.
func TestD2_WritersToTemporalMoveNothing(t *testing.T) {
	w := open(t)
	w.approvalRule(t, "300", "2000")
	defer w.approvalRule(t, usualOne, ruleTwo)
	vendor, officer := w.as(t, demo.VendorEmail), w.operator(t)
	a := intruder{testbed.Intruder{UI: w.webUI(t)}, w, vendor}
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
		input := a.Started(t, flow)
		if err := a.UI.TerminateWorkflow(t.Context(), flow, "", "an attack"); err != nil {
			t.Fatal(err)
		}
		a.Start(t, flow, workflows.TypeTransfer, input)
		w.stays(t, officer, mine, 0)
		a.unchanged(t, before)
	})
	t.Run("reset", func(t *testing.T) {
		a.Reset(t, workflows.TransferID(mine.ID))
		w.stays(t, officer, mine, 0)
		a.unchanged(t, before)
	})
	t.Run("cancelled execution", func(t *testing.T) {
		if err := a.UI.CancelWorkflow(t.Context(), workflows.TransferID(mine.ID), ""); err != nil {
			t.Fatal(err)
		}
		w.stays(t, officer, mine, 0)
	})
	t.Run("copied updates", func(t *testing.T) {
		if err := insist(t.Context(), vendor, ofTransfer(mine.ID, "cancel"), uuid.NewString(), nil, nil); err != nil {
			t.Fatal(err)
		}
		w.arrives(t, vendor, mine.ID, "cancelled")
		cancel := a.Updated(t, workflows.TransferID(mine.ID), workflows.UpdateCancel)
		for _, name := range []string{workflows.UpdateCancel, workflows.UpdatePayload, workflows.UpdateImport, workflows.UpdateApprove, workflows.UpdateCommand} {
			if err := a.Update(t, workflows.TransferID(theirs.ID), name, cancel); err == nil {
				t.Errorf("a copied cancellation was accepted as %s", name)
			}
		}
		w.stays(t, officer, theirs, 0)
		a.Start(t, workflows.TransferID(mine.ID), workflows.TypeTransfer, a.Started(t, workflows.TransferID(mine.ID)))
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
	a := intruder{testbed.Intruder{UI: w.webUI(t)}, w, vendor}
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
	a.Start(t, flow, workflows.TypeTransfer, a.Started(t, flow))
	eventually(t, "the second run has ended", func() error {
		d, err := a.UI.DescribeWorkflowExecution(t.Context(), flow, "")
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
	testbed.Intruder
	w      *harness
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

// clearStarts starts every flow that takes an input with a clear one, which names everything that it could need.
func (a intruder) clearStarts(t *testing.T) {
	id := uuid.New()
	typed := a.Clear(t, map[string]any{
		"intent_id": id, "payment_id": id, "order_id": id, "attempt_id": id, "request_id": id, "exception_id": id, "network": "tron",
		"request": map[string]any{"id": id, "requested_by": a.w.vendor, "network": "tron", "amount": "10 USDT", "recipient": map[string]any{"address": newAddress(t)}},
		"actor":   map[string]any{"user_id": a.w.vendor, "role": "vendor"}, "object": map[string]any{"type": "order", "id": id},
	})
	for flow, form := range map[string]string{
		workflows.TypeTransfer: workflows.TransferID(id), workflows.TypeOnRamp: workflows.OnRampID(id), workflows.TypeOffRamp: workflows.OffRampID(id),
		workflows.TypeCreateWallet: workflows.WalletID(id), workflows.TypeReturnDeposit: workflows.ReturnDepositID(id),
		workflows.TypeCryptoPayout: workflows.CryptoPayoutID(id), workflows.TypeMomoPayout: workflows.MomoPayoutID(exchange.OrderObject(id)),
		workflows.TypeLatePayment: workflows.LatePaymentID(id), workflows.TypeLatePayout: workflows.LatePayoutID(uuid.New()), workflows.TypeMoveFloat: workflows.MoveFloatID(id),
		workflows.TypeFeeSweep: workflows.FeeSweepID(id), workflows.TypeOpenMultisig: workflows.OpenMultisigID(id), workflows.TypeMultisigProposal: workflows.MultisigProposalID(id), workflows.TypeBankRefund: workflows.BankRefundID(id),
	} {
		a.Start(t, form, flow, typed)
		a.Failed(t, form)
	}
}

// copiedStarts starts other flows with the encrypted input of one.
func (a intruder) copiedStarts(t *testing.T, transfer uuid.UUID) {
	input := a.Started(t, workflows.TransferID(transfer))
	for id, flow := range map[string]string{
		workflows.TransferID(uuid.New()): workflows.TypeTransfer, workflows.OffRampID(transfer): workflows.TypeOffRamp, workflows.OnRampID(transfer): workflows.TypeOnRamp,
		workflows.WalletID(transfer): workflows.TypeCreateWallet, "transfer:" + transfer.String() + " ": workflows.TypeTransfer,
	} {
		a.Start(t, id, flow, input)
		a.Failed(t, id)
	}
}

// clearUpdates sends a transfer's flow every update with names and ids that are typed in.
func (a intruder) clearUpdates(t *testing.T, transfer uuid.UUID) {
	typed := a.Clear(t, map[string]any{"user_id": a.w.vendor, "role": "admin", "intent_id": transfer, "command_id": transfer, "token": "t", "raw": "00"})
	for _, name := range []string{workflows.UpdateCancel, workflows.UpdatePayload, workflows.UpdateImport, workflows.UpdateApprove, workflows.UpdateReject, workflows.UpdateCommand} {
		if err := a.Update(t, workflows.TransferID(transfer), name, typed); err == nil {
			t.Errorf("a clear %s was accepted", name)
		}
	}
}
