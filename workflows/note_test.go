package workflows_test

import (
	"errors"
	"testing"
	"time"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
)

// A resolve that says that something was paid must name the receipt; the refusal names the rule.
func TestResolveMustNameTheReceipt(t *testing.T) {
	t.Parallel()
	const min = time.Minute
	w := newHarness(t)
	w.chain.script = func(int) outcome { return outcome{refused: chain.ReasonBlocked} }
	w.operator.script = func(a exchange.PaymentAttempt, _ int) payer {
		if a.Direction == exchange.Payout {
			return payer{code: "0", after: 10 * time.Second, deaf: true, silent: true, mute: true}
		}
		return pays
	}
	resolve := func(note, key string) {
		w.notifyFlow(w.decreeWith(activities.ObjectOrder, w.request.ID, "resolve", note), key)
	}
	w.at(5*min, func() { w.command("refund") })
	w.at(3*time.Hour, func() { resolve("the portal says it was paid", "no receipt") })
	w.at(4*time.Hour, func() { resolve("UKLMANUAL1", "receipt") })
	w.run(t)
	ended(t, w, exchange.OrderFailed, exchange.DetailRefundOpen)
	wants("receipt", "")(t, w)
	var refusal *exchange.Error
	if err := activities.AsExchangeError(w.answers["no receipt"]); !errors.As(err, &refusal) || refusal.Code != exchange.CodeInvalid ||
		len(refusal.Fields) != 1 || refusal.Fields[0].Pointer != "/note" || refusal.Fields[0].Code != "receipt" {
		t.Errorf("answered with %v", w.answers["no receipt"])
	}
}
