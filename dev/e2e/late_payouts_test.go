package e2e

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/momo/sandbox"
	"kivuko/workflows"
)

// TestLatePayouts has the operator speak again of a payout when everything about it is over. A repetition is taken
// for one: nothing is booked, nobody is called.
func TestLatePayouts(t *testing.T) {
	w := open(t)
	flow := w.repeatResult(t)
	var out workflows.LatePayoutResult
	if err := w.temporal.GetWorkflow(t.Context(), flow, "").Get(t.Context(), &out); err != nil || out.Outcome != workflows.LateAccounted {
		t.Errorf("the look at a repetition ended with %+v: %v", out, err)
	}
	w.invariants(t)
}

// repeatResult gives money back, and has the operator's result come once more. It returns the flow that looked at it,
// which has ended.
func (w *world) repeatResult(t *testing.T) (flow string) {
	t.Helper()
	phone := newPhone()
	w.fault(t, "pays_less", "prompt", phone)
	o := w.ends(t, w.buy(t, purchase{fiat: "650", phone: phone}).ID, "failed", "underpaid")
	w.refunded(t, o, 649)
	var refund uuid.UUID
	if err := w.db.QueryRowContext(t.Context(), `SELECT id FROM refunds WHERE order_id = $1`, o.ID).Scan(&refund); err != nil {
		t.Fatal(err)
	}
	if err := w.temporal.GetWorkflow(t.Context(), workflows.RefundID(refund), "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	p := w.payoutTo(t, phone)
	if err := call(t.Context(), http.MethodPost, p.ResultURL, resultOf(p), nil); err != nil {
		t.Fatal(err)
	}
	flow = workflows.LatePayoutID(uuid.MustParse(p.OriginatorConversationID))
	eventually(t, "the look at the repetition is over", func() error {
		return w.temporal.GetWorkflow(t.Context(), flow, "").Get(context.WithoutCancel(t.Context()), nil)
	})
	w.refunded(t, o, 649)
	return flow
}

// payoutTo is the one payout to a phone that the operator took.
func (w *world) payoutTo(t *testing.T, phone string) sandbox.Transfer {
	t.Helper()
	var found []sandbox.Transfer
	for _, p := range w.books(t).Payouts {
		if p.Phone == phone {
			found = append(found, p)
		}
	}
	if len(found) != 1 || len(found[0].Results) == 0 {
		t.Fatalf("the payouts to %s are %+v", phone, found)
	}
	return found[0]
}

// resultOf is a payout's result as the operator posts it.
func resultOf(p sandbox.Transfer) map[string]any {
	last := p.Results[len(p.Results)-1]
	return map[string]any{"Result": map[string]any{
		"ResultType": 0, "ResultCode": 0, "ResultDesc": last.Text, "OriginatorConversationID": p.OriginatorConversationID,
		"ConversationID": p.ConversationID, "TransactionID": last.Receipt,
		"ResultParameters": map[string]any{"ResultParameter": []map[string]any{
			{"Key": "TransactionAmount", "Value": p.Amount},
			{"Key": "TransactionReceipt", "Value": last.Receipt},
			{"Key": "ReceiverPartyPublicName", "Value": p.Phone + " - TEST PAYEE"},
		}},
	}}
}
