package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
	"kivuko/workflows"
)

// TestLatePayouts has the operator repeat a payout's result after its order is over. The flow must recognise the
// repetition: it books nothing and calls no operator.
func TestLatePayouts(t *testing.T) {
	w := openBeside(t)
	flow := w.repeatResult(t)
	var out workflows.LatePayoutResult
	if err := w.temporal.GetWorkflow(t.Context(), flow, "").Get(t.Context(), &out); err != nil || out.Outcome != workflows.LateAccounted {
		t.Errorf("the check of a repetition ended with %+v: %v", out, err)
	}
	w.invariants(t)
}

// TestSalesPaidLate has the mobile money operator refuse payouts of sales, and make them later all the same. The
// payee keeps the shillings. If the crypto is still here, it goes to the vendor; if it is gone, an operator books the
// loss.
func TestSalesPaidLate(t *testing.T) {
	w := open(t)
	n := w.tronNode()
	here, gone, back := w.refusedForNow(t, n)
	w.release(t)
	w.keepsPayout(t, n, here)
	w.booksLoss(t, n, gone, back)
	w.invariants(t)
	w.booksAgree(t)
	w.floatAgrees(t)
}

// refusedForNow makes two sales whose payouts the operator refuses now and makes later. The crypto of one has gone to
// its refund address; the other one still waits for a refund address.
func (w *harness) refusedForNow(t *testing.T, n demo.Node) (here, gone order, back string) {
	t.Helper()
	back, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	phone := newPhone()
	w.fault(t, "late_paid", "payout", phone)
	gone = w.sell(t, n, sale{phone: phone, back: back})
	here = w.homeless(t, n, "late_paid")
	w.payIn(t, n, gone, soldCrypto)
	w.cryptoRefund(t, n, gone, exchange.DetailRefundOpen, back, soldCrypto)
	w.parkedWith(t, workflows.OffRampID(here.ID), workflows.ReasonRefundAddress)
	if paid := w.paidFor(t, here); len(paid) != 0 {
		t.Fatalf("the operator has paid already: %+v", paid)
	}
	return here, gone, back
}

// paidLate waits until a late payout is booked as made in addition to the refund, and returns its receipt.
func (w *harness) paidLate(t *testing.T, o order) string {
	t.Helper()
	w.exception(t, o.ID, "paid_twice", "open", fmt.Sprintf("%d.00", soldFiat))
	paid := w.paidFor(t, o)
	if len(paid) != 1 || paid[0].Amount != soldFiat || paid[0].Phone != o.Phone.String {
		t.Fatalf("the operator's books say %+v", paid)
	}
	return paid[0].Receipt
}

// latePayout returns the flow that checks the only payout of a sale.
func (w *harness) latePayout(t *testing.T, o order) string {
	t.Helper()
	var attempt uuid.UUID
	err := w.db.QueryRowContext(t.Context(), `SELECT id FROM payment_attempts WHERE order_id = $1 AND direction = 'payout' AND refund_id IS NULL`, o.ID).Scan(&attempt)
	if err != nil {
		t.Fatal(err)
	}
	return workflows.LatePayoutID(attempt)
}

// keepsPayout has an operator accept the late payout while the crypto is here: a refund address that the customer
// sets now has no effect.
func (w *harness) keepsPayout(t *testing.T, n demo.Node, o order) {
	t.Helper()
	receipt := w.paidLate(t, o)
	w.ended(t, w.latePayout(t, o))
	to, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"refund_address": to}
	path := "/api/v1/auth/orders/" + o.ID.String() + "/refund-address"
	if err := w.amina(t).Do(t.Context(), http.MethodPatch, path, "", in, nil); err != nil {
		t.Fatal(err)
	}
	w.parkedWith(t, workflows.OffRampID(o.ID), workflows.ReasonRefundClaimed)
	w.notSentBack(t, o)
	w.sendCommand(t, w.operator(t), o.ID, "resolve", map[string]any{"note": receipt})
	w.saleOver(t, o)
	o = w.ends(t, o.ID, "failed", exchange.DetailRefundOpen)
	if paid := w.paidFor(t, o); len(paid) != 1 {
		t.Errorf("the payee was paid %d times: %+v", len(paid), paid)
	}
	cameOnce(t, n, w.walletOf(t, demo.VendorEmail, n.Network).Address, w.sentFor(t, "sweep", o.ID), money.Must(money.USDT, soldCrypto))
	w.leftNothing(t, n, o)
	w.notSentBack(t, o)
	w.exception(t, o.ID, "paid_twice", "accepted", fmt.Sprintf("%d.00", soldFiat))
	// The vendor, who has the crypto, pays what the payee owed.
	want := map[string]string{"fiat_balance": "1287.55", "receivable": "-1287", "rounding": "0.55"}
	if got := w.lines(t, "order:"+o.ID.String()+":kept"); !equalAmounts(got, want) {
		t.Errorf("it is booked as %v, not %v", got, want)
	}
}

// booksLoss has an operator decide about a late payout after the crypto is gone.
func (w *harness) booksLoss(t *testing.T, n demo.Node, o order, back string) {
	t.Helper()
	w.paidLate(t, o)
	flow := w.latePayout(t, o)
	w.parkedWith(t, flow, workflows.ReasonMomoTwice)
	w.sendCommand(t, w.operator(t), o.ID, "resolve", map[string]any{"note": "the payee does not answer"})
	w.ended(t, flow)
	w.exception(t, o.ID, "paid_twice", "accepted", fmt.Sprintf("%d.00", soldFiat))
	if paid := w.paidFor(t, o); len(paid) != 1 {
		t.Errorf("the payee was paid %d times: %+v", len(paid), paid)
	}
	cameOnce(t, n, back, w.sentFor(t, "refund", w.refundOf(t, o)), money.Must(money.USDT, soldCrypto))
	w.leftNothing(t, n, o)
}

// floatAgrees waits until the ledger agrees with the operator's books on both of our accounts there.
func (w *harness) floatAgrees(t *testing.T) {
	t.Helper()
	eventually(t, "ledger and operator agree", func() error {
		b := w.books(t)
		for kind, there := range map[exchange.AccountKind]int64{exchange.AccMomoPayout: b.Utility, exchange.AccMomoCollection: b.Working} {
			a, err := w.store.Account(t.Context(), exchange.House(kind, money.KES))
			if err != nil {
				return err
			}
			if !a.Posted.Equal(money.Must(money.KES, fmt.Sprint(there))) {
				return fmt.Errorf("%s is %s in the ledger and %d at the operator", kind, a.Posted, there)
			}
		}
		return nil
	})
}

// repeatResult refunds an order, and has the operator's result arrive once more. It returns the flow that checked it,
// which has ended.
func (w *harness) repeatResult(t *testing.T) (flow string) {
	t.Helper()
	phone := newPhone()
	w.fault(t, "pays_less", "prompt", phone)
	o := w.ends(t, w.buy(t, purchase{fiat: "650", phone: phone}).ID, "failed", "underpaid")
	w.refunded(t, o, 649)
	if err := w.temporal.GetWorkflow(t.Context(), workflows.OnRampID(o.ID), "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	p := w.payoutTo(t, phone)
	if err := call(t.Context(), http.MethodPost, p.ResultURL, resultOf(p), nil); err != nil {
		t.Fatal(err)
	}
	flow = workflows.LatePayoutID(uuid.MustParse(p.OriginatorConversationID))
	eventually(t, "the check of the repetition is over", func() error {
		return w.temporal.GetWorkflow(t.Context(), flow, "").Get(context.WithoutCancel(t.Context()), nil)
	})
	w.refunded(t, o, 649)
	return flow
}

// payoutTo returns the only payout to a phone that the operator accepted.
func (w *harness) payoutTo(t *testing.T, phone string) sandbox.Transfer {
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

// resultOf returns a payout's result as the operator posts it.
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
