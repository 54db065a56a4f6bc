package e2e

import (
	"fmt"
	"testing"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/workflows"
)

// TestTransfers sends within our custody and out of it, on the real stack. An officer approves the second transfer by
// a signal; a forged signal before it does not count.
func TestTransfers(t *testing.T) {
	w := open(t)
	vendor := w.as(t, demo.VendorEmail)
	f := w.send(t, vendor, "3", map[string]any{"email": demo.CustomerEmail})
	if f.Kind != "internal" {
		t.Fatalf("sent %+v", f)
	}
	if done := w.arrives(t, vendor, f.ID, "completed"); done.TxHash == "" {
		t.Errorf("completed without a transaction: %+v", done)
	}
	w.approvalRule(t, "0.01", ruleTwo)
	defer w.approvalRule(t, usualOne, ruleTwo)
	f = w.send(t, vendor, "4", map[string]any{"address": newAddress(t)})
	officer := w.operator(t)
	pending := w.arrives(t, officer, f.ID, "pending_approval")
	if pending.Required != 1 || len(pending.Digest) != 64 {
		t.Fatalf("pending %+v", pending)
	}
	w.signalApproval(t, officer, pending)
	w.arrives(t, vendor, f.ID, "completed")
}

func (w *harness) signalApproval(t *testing.T, officer *client.Client, f sent) {
	t.Helper()
	flow := workflows.TransferID(f.ID)
	for _, typed := range []any{"yes", map[string]any{"token": "made up"}} {
		if err := w.temporal.SignalWorkflow(t.Context(), flow, "", workflows.SignalApprove, typed); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "two decisions without proof are noted", func() error {
		var n int
		err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM audit_log WHERE object_id = $1 AND action = 'transfer.decision_refused'`, f.ID).Scan(&n)
		if err == nil && n != 2 {
			err = fmt.Errorf("%d are", n)
		}
		return err
	})
	w.arrives(t, officer, f.ID, "pending_approval")
	got, err := w.ask(t, officer, f)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.temporal.SignalWorkflow(t.Context(), got.WorkflowID, "", got.Signal, map[string]any{"token": got.Token}); err != nil {
		t.Fatal(err)
	}
}
