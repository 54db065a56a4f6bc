package attacks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/workflows"
)

// C3: Temporal's frontend let in everybody who reached its port. Now it asks for a certificate of the clients' authority.
func TestC3_TemporalsPort(t *testing.T) {
	w := openBeside(t)
	known, err := stack.TLS(w.Stack.Tools())
	if err != nil {
		t.Fatal(err)
	}
	nameless := known.Clone()
	nameless.Certificates, nameless.GetClientCertificate = nil, nil
	for who, c := range map[string]struct {
		tls *tls.Config
		in  bool
	}{"without TLS": {nil, false}, "without a certificate": {nameless, false}, "with a certificate": {known, true}} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		t.Cleanup(cancel)
		in, err := client.DialContext(ctx, client.Options{
			HostPort: w.Stack.Addresses.Temporal, Namespace: "kivuko", ConnectionOptions: client.ConnectionOptions{TLS: c.tls, TLSDisabled: c.tls == nil},
		})
		if err == nil {
			in.Close()
		}
		if (err == nil) != c.in {
			t.Errorf("%s: %v", who, err)
		}
	}
}

// D2 and B1: a flow that was started by hand with a clear payload spent the crypto of whomever the payload named, and believed a
// forged cancellation; the audit log named the victim. Now a flow takes the id of an intent that the API wrote, and nothing clear.
// Every verb at every stage is played in dev/e2e.
func TestD2_StartedByHand(t *testing.T) {
	w := openBeside(t)
	a, victim := testbed.Intruder{UI: w.WebUI(t)}, w.ID(t, demo.VendorEmail)
	to := testbed.NewAddress(t)
	id := uuid.New()
	typed := a.Clear(t, map[string]any{
		"intent_id": id, "order_id": id, "actor": map[string]any{"user_id": victim, "role": "vendor"},
		"request": map[string]any{
			"id": id, "requested_by": victim, "customer_id": victim, "network": "tron", "amount": "10 USDT", "recipient": map[string]any{"address": to},
			"offer_id": w.Offer(t, simba, exchange.OfferBuy, exchange.Tron), "crypto": "10 USDT", "type": "OFF_RAMP_SELL", "subtype": "standard_offramp",
			"wallet_id": w.WalletOf(t, demo.VendorEmail, exchange.Tron).ID, "phone": testbed.NewPhone(),
		},
	})
	for flow, form := range map[string]string{workflows.TypeTransfer: workflows.TransferID(id), workflows.TypeOffRamp: workflows.OffRampID(id)} {
		a.Start(t, form, flow, typed)
		a.Failed(t, form)
	}
	if n := w.count(t, `SELECT (SELECT count(*) FROM transfers WHERE id = $1) + (SELECT count(*) FROM orders WHERE id = $1) + (SELECT count(*) FROM audit_log WHERE object_id = $1)`, id); n != 0 {
		t.Errorf("flows that were started by hand wrote %d rows", n)
	}
	// The victim's own sale is cancelled by nobody else, and goes well.
	seller, phone := w.Amina(t), testbed.NewPhone()
	o := w.sells(t, seller, phone)
	forged := a.Clear(t, map[string]any{"intent_id": o.ID, "actor": map[string]any{"user_id": w.ID(t, demo.CustomerEmail), "role": "customer"}})
	if err := a.Update(t, workflows.OffRampID(o.ID), workflows.UpdateCancel, forged); err == nil {
		t.Error("a forged cancellation was accepted")
	}
	w.pays(t, o, sold)
	w.completes(t, seller, o.ID)
	w.paidTo(t, phone, paid)
	w.got(t, to, "0")
}

// B4 and D5: the flow of a paid order was terminated, or reset to its beginning, and the order waited for ever, in no list. Now
// `kivuko resume`, and a schedule, give each live row its flow, which goes on from what was done.
func TestB4_ATerminatedPurchase(t *testing.T) {
	w := open(t) // it stops the chain
	resume := w.pause(t)
	a, to := testbed.Intruder{UI: w.WebUI(t)}, testbed.NewAddress(t)
	o := w.buys(t, w.Amina(t), testbed.NewPhone(), to)
	w.until(t, w.Amina(t), o.ID, "paid, and its crypto under way", func(o testbed.Order) bool { return o.Status == "confirming" })
	a.Reset(t, workflows.OnRampID(o.ID))
	w.terminate(t, workflows.OnRampID(o.ID))
	if now := w.order(t, w.Amina(t), o.ID); now.Status != "confirming" {
		t.Errorf("without its flow the order is %s", now)
	}
	w.resumed(t)
	resume()
	t.Parallel() // the flow looks after its child of before from time to time
	w.completes(t, w.Amina(t), o.ID)
	w.got(t, to, "5")
	if n := len(testbed.Prompted(w.Books(t), o.ID)); n != 1 {
		t.Errorf("the payer was prompted %d times", n)
	}
}

// D5: a row without a flow was in no list. Now the comparison starts what is missing: here a sale whose flow is terminated before its
// crypto comes, so that the signals about it are lost.
func TestD5_ARowWithoutAFlow(t *testing.T) {
	w := openBeside(t)
	seller, phone := w.Amina(t), testbed.NewPhone()
	o := w.sells(t, seller, phone)
	w.terminate(t, workflows.OffRampID(o.ID))
	w.pays(t, o, sold)
	testbed.Eventually(t, "the last signal about the crypto of "+o.ID.String()+" is lost", func() error {
		if w.count(t, lostSignals, workflows.OffRampID(o.ID)) == 0 {
			return errors.New("it was not sent yet")
		}
		return nil
	})
	w.resumed(t)
	w.completes(t, seller, o.ID)
	w.paidTo(t, phone, paid)
}

// lostSignals are those that the watch has sent to a flow about final crypto.
const lostSignals = `SELECT count(*) FROM deposit_wakeups u JOIN deposit_waits w ON w.id = u.wait_id JOIN chain_deposits d ON d.id = u.deposit_id
WHERE w.workflow_id = $1 AND u.sent_at IS NOT NULL AND u.version = d.version AND d.status = 'final'`

// terminate ends the run of a flow by hand.
func (w *harness) terminate(t *testing.T, flow string) {
	t.Helper()
	if err := w.Temporal.TerminateWorkflow(t.Context(), flow, "", "an attack"); err != nil {
		t.Fatal(err)
	}
}

// ended waits until a flow has ended.
func (w *harness) ended(t *testing.T, flow string) {
	t.Helper()
	if err := w.Temporal.GetWorkflow(t.Context(), flow, "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// resumed runs `kivuko resume`.
func (w *harness) resumed(t *testing.T) {
	t.Helper()
	if err := w.Stack.Up(t.Context(), []stack.Step{stack.Resume()}); err != nil {
		t.Fatal(fmt.Errorf("kivuko resume: %w", err))
	}
}
