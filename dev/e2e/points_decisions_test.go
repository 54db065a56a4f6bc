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

// decisionRows are those with decisions about sales whose payee could not be paid, on TRON.
func decisionRows() []row {
	return []row{
		{"AddressRefund/*/*", "flows", saleScenario{scene: refundAddressed, judgement: refundAgreed}.scenario},
		{"DecideRefund/*/*", "flows", saleScenario{scene: refundDecided, judgement: saleGivenBack}.scenario},
		{"RecordRefusedRefundDecision/*/*", "flows", saleScenario{scene: refundPretended, judgement: refundAgreed}.scenario},
		{"ReleaseFunding/*/*", "flows", saleScenario{scene: saleWaiting, judgement: saleApproved}.scenario},
		{"DecideSale/*/*", "flows", saleScenario{scene: saleDecidedByOfficer, judgement: salePaid}.scenario},
		{"RecordRefusedSaleDecision/*/*", "flows", saleScenario{scene: salePretended, judgement: saleApproved}.scenario},
		{"CheckLatePayout/DoubtPayout#?/*", "momo", saleScenario{scene: payoutClaimed, judgement: claimDismissed}.scenario},
		{"DismissClaim/*/*", "flows", saleScenario{scene: claimBeingDismissed, judgement: refundAgreed}.scenario},
		{"KeepPayout/*/*", "momo", saleScenario{scene: payoutKept, judgement: salePaidLate}.scenario},
	}
}

// ofOrder sends a command about the trial's order in the background.
func (tr *trial) ofOrder(t *testing.T, w *harness, verb string, in map[string]any) {
	t.Helper()
	tr.background(t, w.operator(t), "/api/v1/auth/orders/"+tr.order.ID.String()+"/"+verb, uuid.NewString(), in, nil)
}

// refundAddressed makes an officer name the refund address of the crypto.
func refundAddressed(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	tr.order = w.stranded(t, w.tronNode())
	arm()
	tr.ofOrder(t, w, "refund", map[string]any{"note": "crash trial", "address": b.back})
}

// refundAgreed makes another officer approve the refund, which sends the crypto back.
func refundAgreed(t *testing.T, w *harness, b *saleScenario, tr *trial) {
	w.agreed(t, tr.order)
	saleGivenBack(t, w, b, tr)
}

// secondAsked makes a sale's refund wait for another officer.
func secondAsked(t *testing.T, w *harness, b *saleScenario, tr *trial) {
	t.Helper()
	tr.order = w.stranded(t, w.tronNode())
	w.sendCommand(t, w.operator(t), tr.order.ID, "refund", map[string]any{"note": "crash trial", "address": b.back})
	w.parkedWith(t, workflows.OffRampID(tr.order.ID), workflows.ReasonRefundSecond)
}

func refundDecided(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	secondAsked(t, w, b, tr)
	path := "/api/v1/auth/refunds/" + w.refundOf(t, tr.order).String() + "/approve"
	asSeen := seen(t, w.as(t, secondOfficer), path)
	arm()
	tr.background(t, w.as(t, secondOfficer), path, uuid.NewString(), asSeen, nil)
}

// saleWaiting opens a sale from a custodial wallet that needs an officer.
func saleWaiting(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	b.funded(t, w, tr, watchedEmail, arm)
}

// saleAsked waits until it waits.
func saleAsked(t *testing.T, w *harness, b *saleScenario, tr *trial) {
	t.Helper()
	saleWaiting(t, w, b, tr, func() {})
	eventually(t, "the sale waits for an officer", func() error {
		var detail string
		err := w.db.QueryRowContext(t.Context(), `SELECT status_detail FROM orders WHERE id = $1`, tr.order.ID).Scan(&detail)
		if err == nil && detail != exchange.WaitApproval {
			err = errors.New("it waits for " + detail)
		}
		return err
	})
}

// saleApproved makes an officer approve the sale, whose payee is then paid once.
func saleApproved(t *testing.T, w *harness, b *saleScenario, tr *trial) {
	t.Helper()
	path := "/api/v1/auth/orders/" + tr.order.ID.String() + "/approve"
	eventually(t, "the officer's approval is counted", func() error {
		return w.operator(t).Decide(t.Context(), path, uuid.NewString(), nil, nil)
	})
	salePaid(t, w, b, tr)
}

func saleDecidedByOfficer(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	saleAsked(t, w, b, tr)
	path := "/api/v1/auth/orders/" + tr.order.ID.String() + "/approve"
	asSeen := seen(t, w.operator(t), path)
	arm()
	tr.background(t, w.operator(t), path, uuid.NewString(), asSeen, nil)
}

// salePretended sends a decision about the sale without a valid token.
func salePretended(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	saleAsked(t, w, b, tr)
	arm()
	if err := w.temporal.SignalWorkflow(t.Context(), workflows.OffRampID(tr.order.ID), "", workflows.SignalApprove, map[string]any{"token": "made up"}); err != nil {
		t.Fatal(err)
	}
}

// refundPretended sends a decision without a valid token.
func refundPretended(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	secondAsked(t, w, b, tr)
	arm()
	in := map[string]any{"token": "made up"}
	if err := w.temporal.SignalWorkflow(t.Context(), workflows.OffRampID(tr.order.ID), "", workflows.SignalApprove, in); err != nil {
		t.Fatal(err)
	}
}

// claim posts, in the operator's name, that a refused payout of a sale was made.
func (w *harness) claim(t *testing.T, o order) {
	t.Helper()
	p := w.payoutTo(t, o.Phone.String)
	said := resultOf(p)
	said["Result"].(map[string]any)["ResultDesc"] = "The service request is processed successfully."
	if err := call(t.Context(), http.MethodPost, p.ResultURL, said, nil); err != nil {
		t.Fatal(err)
	}
}

// payoutClaimed dies while the claim is stored, which stops the refund.
func payoutClaimed(t *testing.T, w *harness, _ *saleScenario, tr *trial, arm func()) {
	tr.order = w.stranded(t, w.tronNode())
	arm()
	w.claim(t, tr.order)
}

// claimReached waits until a claim has stopped a sale's refund and its flow is parked. Naming an address makes the flow
// check.
func (w *harness) claimReached(t *testing.T, o order, back string) {
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

// claimDismissed makes an officer send the crypto back in spite of the claim.
func claimDismissed(t *testing.T, w *harness, b *saleScenario, tr *trial) {
	w.claimReached(t, tr.order, b.back)
	w.notSentBack(t, tr.order)
	w.sendCommand(t, w.operator(t), tr.order.ID, "retry", map[string]any{"note": "the operator knows of no payout"})
	refundAgreed(t, w, b, tr)
}

func claimBeingDismissed(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	tr.order = w.stranded(t, w.tronNode())
	w.claim(t, tr.order)
	w.claimReached(t, tr.order, b.back)
	arm()
	tr.ofOrder(t, w, "retry", map[string]any{"note": "the operator knows of no payout"})
}

// payoutKept makes the operator pay after it has refused, and an officer accept that payout.
func payoutKept(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	o := w.homeless(t, w.tronNode(), "late_paid")
	tr.order = o
	w.parkedWith(t, workflows.OffRampID(o.ID), workflows.ReasonRefundAddress)
	w.release(t)
	receipt := w.paidLate(t, o)
	w.claimReached(t, o, b.back)
	arm()
	tr.ofOrder(t, w, "resolve", map[string]any{"note": receipt})
}

// salePaidLate checks that the payee keeps the shillings, and that the crypto went to the vendor and not back.
func salePaidLate(t *testing.T, w *harness, _ *saleScenario, tr *trial) {
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

// saleToBank puts the payment into the treasury's queue when the crypto has arrived.
func saleToBank(t *testing.T, w *harness, _ *saleScenario, tr *trial, arm func()) {
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

// salePaidByBank makes an officer pay the entry of the treasury's queue, once.
func salePaidByBank(t *testing.T, w *harness, _ *saleScenario, tr *trial) {
	word := bankConfirmation(newReference(), soldFiat)
	eventually(t, "the officer's word is taken", func() error {
		return answerAsBank(t, w.operator(t), tr.order, "confirm-bank-payout", word)
	})
	w.boundToBank(t, w.tronNode(), tr.order, soldCrypto, soldFiat)
}

// saleUnfunded makes the transfer from the customer's custodial wallet fail, and the customer cancel the order.
func saleUnfunded(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	w.tron(t, "/faults", map[string]any{"fail_next": 1, "fail_with": "REVERT"})
	saleFunded(t, w, b, tr, func() {})
	w.parked(t, workflows.OffRampID(tr.order.ID))
	w.tron(t, "/reset", nil)
	arm()
	tr.background(t, w.amina(t), "/api/v1/auth/orders/"+tr.order.ID.String()+"/cancel", uuid.NewString(), nil, nil)
}

// paidByHand plays a purchase whose refund the operator refuses, and which an officer refunds by other means.
func paidByHand(t *testing.T, w *harness, _ *saleScenario, tr *trial, arm func()) {
	tr.order = w.buyWith(t, unpayable)
	w.parked(t, workflows.OnRampID(tr.order.ID))
	arm()
	tr.ofOrder(t, w, "resolve", map[string]any{"note": byHand(tr)})
}

// byHand is the receipt of the payment by other means.
func byHand(tr *trial) string { return fmt.Sprintf("HAND%X", tr.order.ID[10:]) }

// settledByHand checks that the refund is settled by the officer's receipt, and that the operator paid nothing.
func settledByHand(t *testing.T, w *harness, _ *saleScenario, tr *trial) {
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
