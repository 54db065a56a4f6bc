package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// decisionRows are those with what people decide about sales whose payee could not be paid, on TRON.
func decisionRows() []row {
	return []row{
		{"AddressRefund/*/*", "flows", saleTale{scene: refundAddressed, judgement: refundAgreed}.tale},
		{"DecideRefund/*/*", "flows", saleTale{scene: refundDecided, judgement: saleGivenBack}.tale},
		{"RecordRefusedRefundDecision/*/*", "flows", saleTale{scene: refundPretended, judgement: refundAgreed}.tale},
		{"CheckLateOrderPayout/DoubtOrderPayout#?/*", "momo", saleTale{scene: payoutClaimed, judgement: claimDismissed}.tale},
		{"DismissClaim/*/*", "flows", saleTale{scene: claimBeingDismissed, judgement: refundAgreed}.tale},
		{"KeepPayout/*/*", "momo", saleTale{scene: payoutKept, judgement: salePaidLate}.tale},
	}
}

// ofOrder sends a command about the trial's order beside the test.
func (tr *trial) ofOrder(t *testing.T, w *world, verb string, in map[string]any) {
	t.Helper()
	tr.background(t, w.operator(t), "/api/v1/auth/orders/"+tr.order.ID.String()+"/"+verb, uuid.NewString(), in, nil)
}

// refundAddressed has an officer say where the crypto goes back to.
func refundAddressed(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	tr.order = w.stranded(t, w.tronNode())
	arm()
	tr.ofOrder(t, w, "refund", map[string]any{"note": "crash trial", "address": b.back})
}

// refundAgreed has another officer agree to it, by which the crypto goes back.
func refundAgreed(t *testing.T, w *world, b *saleTale, tr *trial) {
	w.agreed(t, tr.order)
	saleGivenBack(t, w, b, tr)
}

// secondAsked has a sale's refund wait for another officer.
func secondAsked(t *testing.T, w *world, b *saleTale, tr *trial) {
	t.Helper()
	tr.order = w.stranded(t, w.tronNode())
	w.tell(t, w.operator(t), tr.order.ID, "refund", map[string]any{"note": "crash trial", "address": b.back})
	w.parkedWith(t, workflows.OffRampID(tr.order.ID), workflows.ReasonRefundSecond)
}

func refundDecided(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	secondAsked(t, w, b, tr)
	path := "/api/v1/auth/refunds/" + w.refundOf(t, tr.order).String() + "/approve"
	arm()
	tr.background(t, w.as(t, secondOfficer), path, uuid.NewString(), map[string]any{}, nil)
}

// refundPretended has somebody decide without a right to.
func refundPretended(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	secondAsked(t, w, b, tr)
	arm()
	in := map[string]any{"token": "made up"}
	if err := w.temporal.SignalWorkflow(t.Context(), workflows.OffRampID(tr.order.ID), "", workflows.SignalApprove, in); err != nil {
		t.Fatal(err)
	}
}

// claim has somebody say, in the operator's name, that the payout of a sale was made which the operator has refused.
func (w *world) claim(t *testing.T, o order) {
	t.Helper()
	p := w.payoutTo(t, o.Phone.String)
	said := resultOf(p)
	said["Result"].(map[string]any)["ResultDesc"] = "The service request is processed successfully."
	if err := call(t.Context(), http.MethodPost, p.ResultURL, said, nil); err != nil {
		t.Fatal(err)
	}
}

// payoutClaimed dies while the claim is written down, which stops the refund.
func payoutClaimed(t *testing.T, w *world, _ *saleTale, tr *trial, arm func()) {
	tr.order = w.stranded(t, w.tronNode())
	arm()
	w.claim(t, tr.order)
}

// claimHeard waits until a claim has stopped a sale's refund and its flow asks for a person. The address that comes has the
// flow look.
func (w *world) claimHeard(t *testing.T, o order, back string) {
	t.Helper()
	eventually(t, "the claim has stopped the refund", func() error {
		var detail string
		err := w.db.QueryRowContext(t.Context(), `SELECT status || '/' || detail FROM refunds WHERE id = $1`, w.refundOf(t, o)).Scan(&detail)
		if err == nil && detail != "needs_review/payout_claimed" {
			err = errors.New("the refund is " + detail)
		}
		return err
	})
	path := "/api/v1/auth/orders/" + o.ID.String() + "/refund-address"
	eventually(t, "the customer's address is taken", func() error {
		return w.amina(t).Do(t.Context(), http.MethodPatch, path, "", map[string]any{"refund_address": back}, nil)
	})
	w.parkedWith(t, workflows.OffRampID(o.ID), workflows.ReasonRefundClaimed)
}

// claimDismissed has an officer have the crypto go back all the same.
func claimDismissed(t *testing.T, w *world, b *saleTale, tr *trial) {
	w.claimHeard(t, tr.order, b.back)
	w.notSentBack(t, tr.order)
	w.tell(t, w.operator(t), tr.order.ID, "retry", map[string]any{"note": "the operator knows of no payout"})
	refundAgreed(t, w, b, tr)
}

func claimBeingDismissed(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	tr.order = w.stranded(t, w.tronNode())
	w.claim(t, tr.order)
	w.claimHeard(t, tr.order, b.back)
	arm()
	tr.ofOrder(t, w, "retry", map[string]any{"note": "the operator knows of no payout"})
}

// payoutKept has the operator make the payout after it was refused, and an officer let it stand.
func payoutKept(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	o := w.homeless(t, w.tronNode(), "late_paid")
	tr.order = o
	w.parkedWith(t, workflows.OffRampID(o.ID), workflows.ReasonRefundAddress)
	w.release(t)
	receipt := w.paidLate(t, o)
	w.claimHeard(t, o, b.back)
	arm()
	tr.ofOrder(t, w, "resolve", map[string]any{"note": receipt})
}

// salePaidLate holds that the payee keeps the shillings, and that the crypto went to the vendor and not back.
func salePaidLate(t *testing.T, w *world, _ *saleTale, tr *trial) {
	n, o := w.tronNode(), tr.order
	w.saleOver(t, o)
	w.ends(t, o.ID, "failed", exchange.DetailRefundOpen)
	if paid := w.paidFor(t, o); len(paid) != 1 {
		t.Errorf("the payee was paid %d times: %+v", len(paid), paid)
	}
	cameOnce(t, n, w.walletOf(t, demo.VendorEmail, n.Network).Address, w.sentFor(t, "sweep", o.ID), money.Must(money.USDT, soldCrypto))
	w.leftNothing(t, n, o)
	w.notSentBack(t, o)
	want := map[string]string{"fiat_balance": "1287.55", "receivable": "-1287", "rounding": "0.55"}
	if got := w.lines(t, "order:"+o.ID.String()+":kept"); !equalAmounts(got, want) {
		t.Errorf("it is booked as %v, not %v", got, want)
	}
}

// saleToBank has the payment put on the officers' desk when the crypto is here.
func saleToBank(t *testing.T, w *world, _ *saleTale, tr *trial, arm func()) {
	n := w.tronNode()
	w.letSend(t)
	c, in := remittedToBank(t, w, n)
	var err error
	if tr.order, err = place(t.Context(), c, in, uuid.NewString()); err != nil {
		t.Fatal(err)
	}
	arm()
	w.payIn(t, n, tr.order, soldCrypto)
}

// salePaidByBank has an officer pay what is on the desk, once.
func salePaidByBank(t *testing.T, w *world, _ *saleTale, tr *trial) {
	word := bankWord(newReference(), soldFiat)
	eventually(t, "the officer's word is taken", func() error {
		return sayOfBank(t, w.operator(t), tr.order, "confirm-bank-payout", word)
	})
	w.boundToBank(t, w.tronNode(), tr.order, soldCrypto, soldFiat)
}

// saleUnfunded has the transfer fail that was to bring the crypto out of the customer's wallet here, and the customer give
// the order up.
func saleUnfunded(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	w.tron(t, "/faults", map[string]any{"fail_next": 1, "fail_with": "REVERT"})
	saleFunded(t, w, b, tr, func() {})
	w.parked(t, workflows.OffRampID(tr.order.ID))
	w.tron(t, "/reset", nil)
	arm()
	tr.background(t, w.amina(t), "/api/v1/auth/orders/"+tr.order.ID.String()+"/cancel", uuid.NewString(), nil, nil)
}

// paidByHand is a purchase whose refund the operator refuses, and which an officer pays back by other means.
func paidByHand(t *testing.T, w *world, _ *saleTale, tr *trial, arm func()) {
	tr.order = w.buyWith(t, unpayable)
	w.parked(t, workflows.OnRampID(tr.order.ID))
	arm()
	tr.ofOrder(t, w, "resolve", map[string]any{"note": byHand(tr)})
}

// byHand is the receipt of what was paid by other means.
func byHand(tr *trial) string { return fmt.Sprintf("HAND%X", tr.order.ID[10:]) }

// settledByHand holds that the refund is settled by the officer's receipt, and that the operator paid nothing.
func settledByHand(t *testing.T, w *world, _ *saleTale, tr *trial) {
	o := w.ends(t, tr.order.ID, "failed", "underpaid")
	var receipt string
	eventually(t, "the refund is settled", func() error {
		return w.db.QueryRowContext(t.Context(), `SELECT receipt FROM refunds WHERE order_id = $1 AND status = 'completed'`, o.ID).Scan(&receipt)
	})
	if receipt != byHand(tr) {
		t.Errorf("the refund is settled by %q", receipt)
	}
	books := w.books(t)
	if back := paidBack(books, o.Phone.String); len(back) != 0 || len(collected(books, o.ID)) != 1 {
		t.Errorf("collected was %+v, and the operator paid back %+v", collected(books, o.ID), back)
	}
}
