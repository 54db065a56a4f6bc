package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/workflows"
)

// sent is a transfer as the API tells it.
type sent struct {
	ID       uuid.UUID `json:"id"`
	Kind     string    `json:"kind"`
	Status   string    `json:"status"`
	Detail   string    `json:"status_detail"`
	Amount   string    `json:"amount"`
	Digest   string    `json:"approval_digest"`
	TxHash   string    `json:"blockchain_txn_hash"`
	Required int       `json:"approvals_required"`
}

func (w *world) send(t *testing.T, c *client.Client, amount string, recipient map[string]any) sent {
	t.Helper()
	var out sent
	in := map[string]any{"network": "tron", "asset": "USDT", "amount": amount, "recipient": recipient}
	if err := c.Post(t.Context(), "/api/v1/auth/transfers", uuid.NewString(), in, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// arrives waits until a transfer has a status.
func (w *world) arrives(t *testing.T, c *client.Client, id uuid.UUID, status string) sent {
	t.Helper()
	var now sent
	eventually(t, "transfer "+id.String()+" is "+status, func() error {
		if err := c.Get(t.Context(), "/api/v1/auth/transfers/"+id.String(), &now); err != nil {
			return err
		}
		if now.Status != status {
			return fmt.Errorf("it is %s (%s)", now.Status, now.Detail)
		}
		return nil
	})
	return now
}

// TestTransfers sends within our custody and out of it, on the real stack: the second with an officer's
// decision that comes as a signal, after one that anybody could have typed.
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
	admin, err := w.login(t.Context(), stack.AdminEmail, stack.AdminPassword)
	if err != nil {
		t.Fatal(err)
	}
	rule := func(one string) {
		t.Helper()
		in := map[string]any{"approvals": map[string]any{"one_above": one, "two_above": "5000000"}}
		if err := admin.Do(t.Context(), http.MethodPatch, "/api/v1/auth/limits", "", in, nil); err != nil {
			t.Fatal(err)
		}
	}
	rule("0.01")
	defer rule("200000")
	f = w.send(t, vendor, "4", map[string]any{"address": newAddress(t)})
	officer := w.operator(t)
	pending := w.arrives(t, officer, f.ID, "pending_approval")
	if pending.Required != 1 || len(pending.Digest) != 64 {
		t.Fatalf("pending %+v", pending)
	}
	w.signalApproval(t, officer, pending)
	w.arrives(t, vendor, f.ID, "completed")
}

func (w *world) signalApproval(t *testing.T, officer *client.Client, f sent) {
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
	var me struct {
		ID uuid.UUID `json:"id"`
	}
	if err := officer.Get(t.Context(), "/api/v1/auth/user/me", &me); err != nil {
		t.Fatal(err)
	}
	const pin = "73915"
	in := map[string]any{"pin": pin, "password": demo.Password}
	if err := officer.Do(t.Context(), http.MethodPut, "/api/v1/auth/user/id/"+me.ID.String()+"/pin", "", in, nil); err != nil {
		t.Fatal(err)
	}
	var token struct {
		Token      string `json:"token"`
		WorkflowID string `json:"workflow_id"`
		Signal     string `json:"signal"`
	}
	ask := map[string]any{
		"object_type": "transfer", "object_id": f.ID, "action": "approve", "amount": f.Amount, "digest": f.Digest, "pin": pin,
	}
	if err := officer.Post(t.Context(), "/api/v1/auth/approvals/tokens", "", ask, &token); err != nil {
		t.Fatal(err)
	}
	if err := w.temporal.SignalWorkflow(t.Context(), token.WorkflowID, "", token.Signal, map[string]any{"token": token.Token}); err != nil {
		t.Fatal(err)
	}
}
