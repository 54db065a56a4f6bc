package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/workflows"
)

// attacked is an order at a stage, and how it ends when its customer goes on.
type attacked struct {
	name   string
	order  order
	flow   string
	typ    string
	goesOn func(t *testing.T)
}

// TestD2_OrdersMoveForNobody plays every verb of Temporal against a purchase that waits for another prompt, a sale that waits for
// its crypto and a sale whose crypto can't go back. No order changes, nobody is prompted or paid, and each ends well when its
// customer goes on.
func TestD2_OrdersMoveForNobody(t *testing.T) {
	w := open(t)
	n, phone := w.tronNode(), newPhone()
	a := intruder{testbed.Intruder{UI: w.webUI(t)}, w, w.amina(t)}
	w.fault(t, "result:1", "prompt", phone)
	bought := w.buy(t, purchase{crypto: "12", phone: phone})
	bought = w.until(t, bought.ID, "waiting for another prompt", detail("payment_retry"))
	sold, stuck := w.sell(t, n, sale{}), w.stranded(t, n)
	scenes := []attacked{
		{"a purchase between prompts", bought, workflows.OnRampID(bought.ID), workflows.TypeOnRamp, func(t *testing.T) {
			path := "/api/v1/auth/orders/" + bought.ID.String() + "/retry-payment"
			eventually(t, "another prompt", func() error { // the run that was started again first looks the last one up
				return w.amina(t).Post(t.Context(), path, uuid.NewString(), nil, nil)
			})
			w.ends(t, bought.ID, "completed", "")
		}},
		{"a sale before its crypto", sold, workflows.OffRampID(sold.ID), workflows.TypeOffRamp, func(t *testing.T) {
			w.payIn(t, n, sold, soldCrypto)
			w.soldOnce(t, n, sold, soldCrypto, soldFiat)
		}},
		{"a sale whose crypto can't go back", stuck, workflows.OffRampID(stuck.ID), workflows.TypeOffRamp, func(t *testing.T) {
			back, err := stranger(n.Network)
			if err != nil {
				t.Fatal(err)
			}
			in := map[string]any{"refund_address": back}
			if err := w.amina(t).Do(t.Context(), http.MethodPatch, "/api/v1/auth/orders/"+stuck.ID.String()+"/refund-address", "", in, nil); err != nil {
				t.Fatal(err)
			}
			w.cryptoRefund(t, n, stuck, exchange.DetailRefundOpen, back, soldCrypto)
		}},
	}
	copied := a.cancellation(t, n)
	for _, s := range scenes {
		s.order = w.until(t, s.order.ID, "there", func(order) bool { return true })
		t.Run(s.name, func(t *testing.T) {
			a.playAll(t, s, copied)
			s.goesOn(t)
		})
	}
	w.invariants(t)
}

// cancellation is the encrypted request of a customer who cancelled another order.
func (a intruder) cancellation(t *testing.T, n demo.Node) *commonpb.Payload {
	t.Helper()
	o := a.w.sell(t, n, sale{})
	a.w.sendCommand(t, a.victim, o.ID, "cancel", nil)
	a.w.ends(t, o.ID, "cancelled", "")
	return a.Updated(t, workflows.OffRampID(o.ID), workflows.UpdateCancel)
}

// playAll plays every verb against the flow of an order, and checks after each that nothing has moved.
func (a intruder) playAll(t *testing.T, s attacked, copied *commonpb.Payload) {
	before := a.objects(t) + " " + a.asked(t)
	same := func(t *testing.T) {
		t.Helper()
		if now := a.objects(t) + " " + a.asked(t); now != before {
			t.Errorf("objects, prompts and payouts were %s and are %s", before, now)
		}
		eventually(t, "the order as it was", func() error { // a run that was reset or started again first looks the last prompt up
			o, err := a.w.read(t, s.order.ID)
			if err == nil && (o.Status != s.order.Status || o.StatusDetail != s.order.StatusDetail) {
				err = fmt.Errorf("it was %s and is %s", s.order, o)
			}
			return err
		})
	}
	id := uuid.New()
	typed := a.Clear(t, map[string]any{
		"intent_id": id, "command_id": id, "confirmation_id": id, "attempt_id": id, "deposit_id": id, "token": "made up", "role": "admin", "user_id": a.w.vendor,
	})
	for what, payload := range map[string]*commonpb.Payload{"clear": typed, "copied": copied} {
		t.Run(what+" updates", func(t *testing.T) {
			for _, name := range []string{
				workflows.UpdateCancel, workflows.UpdateRetryPayment, workflows.UpdateCommand, workflows.UpdateApprove, workflows.UpdateReject, workflows.UpdateConfirmBank,
			} {
				if err := a.Update(t, s.flow, name, payload); err == nil {
					t.Errorf("%s was accepted", name)
				}
			}
			same(t)
		})
		t.Run(what+" signals", func(t *testing.T) {
			for _, name := range []string{
				workflows.SignalCallback, workflows.SignalDeposit, workflows.SignalRefund, workflows.SignalResolve, workflows.SignalRetry, workflows.SignalApprove, workflows.SignalReject,
				workflows.SignalRefundAddress, workflows.SignalResume, workflows.SignalFloat,
			} {
				if err := a.UI.SignalWorkflow(t.Context(), s.flow, "", name, converter.NewRawValue(payload)); err != nil {
					t.Fatal(err)
				}
			}
			same(t)
		})
	}
	t.Run("reset", func(t *testing.T) { a.Reset(t, s.flow); same(t) })
	t.Run("cancelled execution", func(t *testing.T) {
		if err := a.UI.CancelWorkflow(t.Context(), s.flow, ""); err != nil {
			t.Fatal(err)
		}
		same(t)
	})
	t.Run("terminated and started again", func(t *testing.T) {
		input := a.Started(t, s.flow)
		if err := a.UI.TerminateWorkflow(t.Context(), s.flow, "", "an attack"); err != nil {
			t.Fatal(err)
		}
		a.Start(t, s.flow, s.typ, input)
		same(t)
	})
}

// asked counts the prompts and payouts that the operator was asked for.
func (a intruder) asked(t *testing.T) string {
	t.Helper()
	var n string
	if err := a.w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM payment_attempts`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
