package workflows_test

import (
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// payoutHarness is a harness in which the house owes a customer shillings: for crypto that was sold, or back for a
// purchase that came to nothing.
type payoutHarness struct {
	*harness
	of    exchange.MomoObject
	try   int
	float money.Amount // before the payout
}

// saleOf10 is what a sale of 10 USDT pays at the market's rate, in whole shillings.
const saleOf10 = "1293"

func newPayoutHarness(t testing.TB, kind exchange.MomoObjectType, plans ...payer) *payoutHarness {
	t.Helper()
	w := &payoutHarness{try: 1}
	switch kind {
	case exchange.MomoRefund:
		w.harness = newHarness(t)
	case exchange.MomoWithdrawal:
		return newTakenOut(t, plans...)
	case exchange.MomoDeposit:
		t.Fatal("nothing is paid out for a deposit")
	case exchange.MomoOrder:
		w.harness = newStage(t, networkName)
		w.market = storetest.NewSellersOn(t, w.store.Store, networkName)
		w.request = exchange.OrderRequest{
			ID: uuid.MustParse("0192f0a0-0000-7000-8000-000000000001"), CustomerID: w.market.Customer.ID, OfferID: w.market.Offer.ID,
			Type: exchange.OffRampSell, Crypto: money.Must(money.USDT, "10"), Phone: "254712345678",
		}
		w.signs.order, w.signs.shillings = &w.request, saleOf10
	}
	w.of = w.owes(kind, w.request)
	w.prepare(plans)
	return w
}

// newTakenOut is newPayoutHarness for a withdrawal, which two officers let go.
func newTakenOut(t testing.TB, plans ...payer) *payoutHarness {
	t.Helper()
	o := newWithdrawalHarness(t)
	o.letGo()
	w := &payoutHarness{try: 1, harness: o.harness, of: exchange.WithdrawalObject(o.ask.ID)}
	w.request.ID = o.ask.ID
	w.prepare(plans)
	return w
}

func (w *payoutHarness) prepare(plans []payer) {
	w.float = w.balance(exchange.House(exchange.AccMomoPayout, money.KES))
	w.operator.script = func(_ exchange.PaymentAttempt, n int) payer { return pick(plans, n, payer{}) }
}

// says gives an operator's command about what the payout belongs to.
func (w *payoutHarness) says(verb, note string) {
	if w.of.Type == exchange.MomoWithdrawal {
		w.notifyFlow(w.decreeWith(activities.ObjectWithdrawal, w.of.ID, verb, note), verb)
		return
	}
	w.harness.says(verb, note)
}

// owes makes an order owe its customer shillings.
func (w *payoutHarness) owes(kind exchange.MomoObjectType, r exchange.OrderRequest) exchange.MomoObject {
	w.t.Helper()
	if kind == exchange.MomoRefund {
		a := w.failsSoftly(r, exchange.DetailExpired)
		return exchange.RefundObject(w.owesBack(a, exchange.DetailExpired).ID)
	}
	o, err := storetest.OpenOffRamp(w.t.Context(), w.store.Store, r, storetest.PrincipalOf(w.market.Customer))
	if err != nil {
		w.t.Fatal(err)
	}
	storetest.TakeCrypto(w.t, w.store.Store, o)
	return exchange.OrderObject(o.ID)
}

// begun begins a payout as its flow does.
func (w *payoutHarness) begun(of exchange.MomoObject, try int) exchange.PaymentAttempt {
	w.t.Helper()
	id := activities.PayoutID(of.ID, try)
	a, err := w.store.Store.BeginPayout(w.t.Context(), of, exchange.PaymentAttempt{
		ID: id, Provider: "daraja", CallbackToken: "token of " + id.String(), WorkflowID: workflows.LatePayoutID(id),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// begunElsewhere begins a payout of another order to the same phone.
func (w *payoutHarness) begunElsewhere() exchange.PaymentAttempt {
	w.t.Helper()
	r := w.request
	r.ID = uuid.New()
	return w.begun(w.owes(w.of.Type, r), 1)
}

// refused is a payout that the operator took and then refused.
func (w *payoutHarness) refused(try int) exchange.PaymentAttempt {
	w.t.Helper()
	ctx, s := w.t.Context(), w.store.Store
	a, err := s.RecordSubmission(ctx, w.begun(w.of, try).ID, exchange.Submission{State: exchange.Accepted})
	if err == nil {
		a, err = s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2040", Class: exchange.ClassPayee})
	}
	if err == nil {
		_, err = s.FailPayout(ctx, w.of, "2040")
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// claimed makes an earlier payout refused and claimed to have been made, so that the flow makes the next try.
func (w *payoutHarness) claimed() {
	w.refused(w.try)
	w.try++
	if err := w.store.DoubtPayout(w.t.Context(), w.of, true); err != nil {
		w.t.Error(err)
	}
}

// fillDay pays the payee so much today that the operator's daily limit has no room for the payout.
func (w *payoutHarness) fillDay() {
	w.begunElsewhere()
	storetest.Exec(w.t, w.store.Store, `ALTER TABLE momo_terms DISABLE TRIGGER USER`)
	storetest.Exec(w.t, w.store.Store, `UPDATE momo_terms SET max_payout = 2000, payee_day = 2000`)
	storetest.Exec(w.t, w.store.Store, `ALTER TABLE momo_terms ENABLE TRIGGER USER`)
}

// suspend has the operator refuse our credential twice.
func (w *payoutHarness) suspend() {
	for range 2 {
		if err := w.store.NoteCredential(w.t.Context(), w.begunElsewhere().ID, "2001"); err != nil {
			w.t.Error(err)
		}
	}
}

// resume has an officer close the breaker.
func (w *harness) resume() {
	if err := storetest.Agreed(w.t, w.store.Store)(w.store.ProposeBreakerClosed(w.t.Context(), "daraja", "a new password", w.officer)); err != nil {
		w.t.Error(err)
	}
}

// declared has two officers declare that the attempt was not made.
func (w *payoutHarness) declared() {
	w.declareUnpaid(activities.PayoutID(w.of.ID, w.try))
}

// receiptsNeedTwo has two officers confirm the receipt of any payout above 1000 shillings.
func (w *payoutHarness) receiptsNeedTwo() {
	most := money.Must(money.KES, "1000")
	storetest.Patch(w.t, w.store.Store, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{
		exchange.ApproveBankPayout: {OneAbove: most, TwoAbove: most},
	}})
}

// attested has two officers attest the payout with its receipt.
func (w *payoutHarness) attested(receipt string) {
	c, err := w.store.ProposeReceipt(w.t.Context(), w.of, receipt, w.officer)
	if err == nil {
		err = w.confirmed(c)
	}
	if err != nil {
		w.t.Error(err)
	}
}

// denySender denies the address that the crypto came from.
func (w *payoutHarness) denySender() {
	d := exchange.DeniedAddress{ID: uuid.New(), Network: networkName, Address: stranger, Reason: "why"}
	if _, err := w.store.Deny(w.t.Context(), d, w.officer); err != nil {
		w.t.Error(err)
	}
}

// leave leaves the house with this float.
func (w *payoutHarness) leave(float string) {
	w.float = money.Must(money.KES, float)
	w.setFloat(w.float)
}

// payable reads what is owed.
func (w *payoutHarness) payable() exchange.Payable {
	p, err := w.store.Store.Payable(w.t.Context(), w.of)
	if err != nil {
		w.t.Error(err)
	}
	return p
}

// undecided notes under a key whether the payout is still under way.
func (w *payoutHarness) undecided(key string) {
	w.answers[key] = nil
	if p := w.payable(); p.Status != string(exchange.PayoutProcessing) {
		w.answers[key] = conflict("the payout is %s", p.Status)
	}
}

// attempts reads the attempts to pay the object, newest first.
func (w *payoutHarness) attempts() (own []exchange.PaymentAttempt) {
	own, err := w.store.Store.PayoutsOf(w.t.Context(), w.of)
	if err != nil {
		w.t.Error(err)
	}
	return own
}

// pay makes one attempt to pay the shillings.
func (w *payoutHarness) pay(t *testing.T) workflows.MomoPayoutResult {
	t.Helper()
	id := workflows.MomoPayoutID(w.of)
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueFlows})
	in := workflows.MomoPayoutInput{Object: w.of, OrderID: w.request.ID, Try: w.try, Home: id}
	if w.of.Type == exchange.MomoWithdrawal {
		in.OrderID = uuid.Nil
	}
	w.env.ExecuteWorkflow(workflows.MomoPayout, in)
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatalf("the flow failed: %v", err)
	}
	var r workflows.MomoPayoutResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// sound checks that the operator's book and ours agree, and that nothing was paid twice.
func (w *payoutHarness) sound(t *testing.T) {
	t.Helper()
	for id, n := range w.operator.submitted {
		if n > 1 {
			t.Errorf("attempt %s was accepted %d times", id, n)
		}
	}
	attempts, out, p := w.attempts(), w.operator.paidOut(w.request.ID), w.payable()
	if len(attempts) > 1 {
		t.Errorf("%d attempts", len(attempts))
	}
	if len(out) > 1 || p.Paid != (len(out) == 1) {
		t.Errorf("%d payments of the operator, and the payout is %s", len(out), p.Status)
	}
	if p.Paid && (attempts[0].Status != exchange.AttemptSucceeded || attempts[0].Receipt != p.Receipt) {
		t.Errorf("paid with %q by an attempt that is %s with %q", p.Receipt, attempts[0].Status, attempts[0].Receipt)
	}
	if o := w.order(); w.of.Type == exchange.MomoOrder && p.Paid != (o.Status == exchange.OrderCompleted) {
		t.Errorf("the payout is %s and the order %s", p.Status, o.Status)
	}
	w.booked(t, attempts, p)
}

// booked checks that the float paid once for a payment, with the operator's charge, and keeps nothing back for it.
func (w *payoutHarness) booked(t *testing.T, attempts []exchange.PaymentAttempt, p exchange.Payable) {
	t.Helper()
	left := w.float
	if p.Paid {
		charge := "23"
		if w.of.Type == exchange.MomoWithdrawal { // of less
			charge = "13"
		}
		left = left.Sub(p.Amount).Sub(money.Must(money.KES, charge))
	}
	if has := w.balance(exchange.House(exchange.AccMomoPayout, money.KES)); !has.Equal(left) {
		t.Errorf("the payout is %s and the float %s, want %s", p.Status, has, left)
	}
	for _, a := range attempts {
		var hold, want exchange.HoldStatus = "", exchange.HoldReleased
		if a.Status == exchange.AttemptSucceeded {
			want = exchange.HoldCaptured
		}
		err := w.store.Pool().QueryRowContext(t.Context(),
			`SELECT h.status FROM payment_attempts a JOIN holds h ON h.id = a.hold_id WHERE a.id = $1`, a.ID).Scan(&hold)
		if err != nil || hold != want {
			t.Errorf("the attempt is %s and its float %s, want %s; %v", a.Status, hold, want, err)
		}
	}
}
