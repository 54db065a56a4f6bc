package catalogue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/momo/sandbox"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// Case 10: the payer pays two prompts. The order takes the first payment, and the second goes back.
func TestCatalogue10_BothPromptsArePaid(t *testing.T) {
	t.Parallel()
	each(t, lateSuccess, func(w *harness, magic string) {
		r := w.request("00")
		w.fault(map[string]string{"33": "late_success_1037", "35": "late_success_1019"}[magic], sandbox.OpPrompt)
		o := w.buy(r,
			after(2*time.Minute, func(env *testsuite.TestWorkflowEnvironment) {
				env.UpdateWorkflow(workflows.UpdateRetryPayment, "again", w.answer("again"), w.asks(r, exchange.IntendPrompt))
			}),
			after(30*time.Minute, func(*testsuite.TestWorkflowEnvironment) { w.late() }),
			after(time.Hour, func(env *testsuite.TestWorkflowEnvironment) { w.decide(env, activities.VerbRefund, "") }))
		w.is(o, exchange.OrderCompleted, exchange.WaitNothing)
		if n := len(w.effects(sandbox.Collection)); n != 2 {
			w.t.Errorf("the payer paid %d times", n)
		}
		w.setAside(exchange.ExcDuplicate, exchange.ExcRefunded)
		w.paidBack(r, price)
	})
}

// Case 10, by hand: the prompt is paid, and the payer also pays our number under the same reference. That money belongs
// to no order, and an operator assigns it.
func TestCatalogue10_APromptAndAPaymentByHand(t *testing.T) {
	t.Parallel()
	w := open(t)
	r := w.request("00")
	w.completed(w.buy(r))
	w.pass(time.Hour)
	w.pays(r.Phone, w.order(r.ID).PaymentReference, price)
	w.aside()
	w.is(w.order(r.ID), exchange.OrderCompleted, exchange.WaitNothing)
	w.books()
}

// Case 11: a payment names an unknown account. No order changes, and the money waits for an operator.
func TestCatalogue11_TheAccountIsUnknown(t *testing.T) {
	t.Parallel()
	w := open(t)
	r := w.request("12") // declined
	w.is(w.buy(r), exchange.OrderFailed, exchange.DetailDeclined)
	w.pays("254712345678", "INV 4711", price)
	w.aside()
	w.is(w.order(r.ID), exchange.OrderFailed, exchange.DetailDeclined)
	w.books()
}

// Case 11, with a known account: a payment of another amount names an open order's reference. It never completes the
// order. When the prompt can't be paid any more, the operator's statement stands behind it with its real amount, which is too
// small, and it goes back.
func TestCatalogue11_TheAmountIsWrong(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.fault("never", sandbox.OpPrompt)
	r := w.request("00")
	const little = 1000
	o := w.buy(r,
		after(time.Minute, func(*testsuite.TestWorkflowEnvironment) {
			w.pays(r.Phone, w.order(r.ID).PaymentReference, little)
		}),
		after(5*time.Minute, func(*testsuite.TestWorkflowEnvironment) {
			w.is(w.order(r.ID), exchange.OrderPending, exchange.WaitPayment)
		}))
	w.is(o, exchange.OrderFailed, exchange.DetailUnderpaid)
	w.parked(workflows.OnRampID(r.ID))
	w.setAside(exchange.ExcUnder, exchange.ExcRefunded)
	w.paidBack(r, little)
	w.books()
}

// Case 11, with a known account and another payer: a stranger's payment of another amount decides nothing about the order, whose
// customer may still pay. The money waits for an operator.
func TestCatalogue11_AStrangerPaysAnotherAmount(t *testing.T) {
	t.Parallel()
	w := open(t)
	r := w.request("11") // the prompt expires, and the customer may ask for another
	const little = 1
	o := w.buy(r, after(6*time.Minute, func(*testsuite.TestWorkflowEnvironment) {
		w.pays("254712345678", w.order(r.ID).PaymentReference, little)
	}))
	w.is(o, exchange.OrderCancelled, exchange.DetailExpired)
	w.parked(workflows.OnRampID(r.ID))
	w.play("sweep-payments", workflows.SweepPayments, nil, func(env *testsuite.TestWorkflowEnvironment) { // lists it
		env.OnSignalExternalWorkflow(mock.Anything, workflows.OnRampID(r.ID), "", workflows.SignalCallback, mock.Anything).Return(nil)
	})
	w.pass(50 * time.Hour) // a prompt that failed may still be paid late
	w.play("sweep-payments", workflows.SweepPayments, nil, nil)
	w.setAside(exchange.ExcUnmatched, exchange.ExcOpen)
	w.holds(exchange.House(exchange.AccSuspense, "KES"), shillings(little))
	w.books()
}

// pays makes a payer pay our number without a prompt.
func (w *harness) pays(phone, reference string, amount int64) string {
	w.t.Helper()
	receipt, err := w.operator.Pay(phone, reference, amount)
	if err == nil {
		err = w.operator.Settle(w.t.Context())
	}
	if err != nil {
		w.t.Error(err)
	}
	return receipt
}

// aside reconciles with the operator's list, which sets the unassigned payment aside only once, and makes an operator
// settle it.
func (w *harness) aside() {
	w.t.Helper()
	for range 2 {
		w.pass(30 * time.Minute)
		w.play("reconcile-payments", workflows.ReconcilePayments, nil, nil)
	}
	w.setAside(exchange.ExcUnmatched, exchange.ExcOpen)
	w.holds(exchange.House(exchange.AccSuspense, "KES"), shillings(price))
	officer := storetest.User(w.t, w.store, exchange.RoleTreasury)
	decision := exchange.ExceptionDecision{
		ID: storetest.NewID(w.t), ExceptionID: w.exceptions()[0].ID, Verdict: exchange.ExcAccepted, Reason: "the payer does not answer",
	}
	if _, _, err := w.store.DecideException(w.t.Context(), decision, storetest.PrincipalOf(officer)); err != nil {
		w.t.Error(err)
	}
	w.setAside(exchange.ExcUnmatched, exchange.ExcAccepted)
}

// Case 20: every new token of the operator invalidates the one before. Two processes that request their own tokens
// invalidate each other's, and both continue.
func TestCatalogue20_TokensEndEachOther(t *testing.T) {
	t.Parallel()
	w := open(t)
	second := w.newClient()
	mint := func(*testsuite.TestWorkflowEnvironment) {
		from := w.now().Add(-time.Hour)
		if _, _, _, err := second.Pull(w.t.Context(), from, w.now(), 0); err != nil {
			w.t.Errorf("the other process: %v", err)
		}
	}
	revoke := func(*testsuite.TestWorkflowEnvironment) { w.operator.RevokeToken() }
	mint(nil)
	r := w.request("30") // the callback is lost, so that queries are needed
	w.fault("pays_less", sandbox.OpPrompt)
	o := w.buy(r, after(10*time.Second, mint), after(20*time.Second, revoke), after(40*time.Second, mint), after(3*time.Minute, mint), after(5*time.Minute, revoke))
	w.is(o, exchange.OrderFailed, exchange.DetailUnderpaid)
	mint(nil)
	w.paidBack(r, price-1)
	w.books()
}

// Case 21: an attacker who knows an attempt's address posts a success there. One source never counts alone: the
// operator's answer differs, and nothing is booked. The flow parks for an operator, who finds nothing in the portal
// and, by the runbook, leaves it parked.
func TestCatalogue21_AForgedCallback(t *testing.T) {
	t.Parallel()
	w := open(t)
	r := w.request("29") // declined, and the callback of that is lost
	o := w.unfinished(r, 6*time.Hour,
		after(8*time.Second, func(*testsuite.TestWorkflowEnvironment) { w.forge() }),
		after(2*time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
			w.sendCommand(env, r.ID, activities.VerbResolve, "nothing there")
		}))
	w.is(o, exchange.OrderPending, exchange.WaitOperator)
	if n := len(w.chain.paid(r.ID)) + len(w.effects(sandbox.Collection)) + len(w.exceptions()); n != 0 {
		w.t.Errorf("the forgery moved something: %d", n)
	}
	if a := w.attempts(r.ID)[0]; a.Status != exchange.AttemptAccepted || a.Receipt != "" {
		w.t.Errorf("the prompt is %s, with receipt %q", a.Status, a.Receipt)
	}
	w.parkedStill(workflows.OnRampID(r.ID), workflows.ReasonDisagree)
	w.books()
}

// forge posts a payment to the address of the order's prompt, with all data that an insider could know.
func (w *harness) forge() {
	w.t.Helper()
	p := w.operator.Books().Prompts[0]
	w.line.post(p.CallbackURL, sandbox.ForgedResult(p, price))
}

// Case 21, by outsiders: a post to a guessed address reaches no flow, and a forged notice of a payment to our number is
// not in the operator's list.
func TestCatalogue21_ANoticeToAnUnknownAddress(t *testing.T) {
	t.Parallel()
	w := open(t)
	r := w.request("12") // declined
	o := w.buy(r, after(2*time.Second, func(*testsuite.TestWorkflowEnvironment) {
		w.line.post(w.line.base()+"/"+"00000000000000000000000000000000000000000000000000000000000000bb/result", map[string]any{"Body": "guess"})
	}))
	w.is(o, exchange.OrderFailed, exchange.DetailDeclined)
	w.line.post(w.line.base()+"/"+standingToken+"/confirmation", map[string]any{
		"TransID": "UKLFORGED2", "TransTime": "20261121120500", "TransAmount": "1295.00", "BillRefNumber": o.PaymentReference, "MSISDN": r.Phone,
	})
	if len(w.unwatched) != 1 {
		t.Fatalf("%d watches are started by a notice under the order's reference", len(w.unwatched))
	}
	w.stopAfter = 30 * time.Hour
	w.lateWatches()
	w.parkedStill(workflows.LatePaymentID(w.attempts(r.ID)[0].ID), workflows.ReasonDisagree)
	w.is(w.order(r.ID), exchange.OrderFailed, exchange.DetailDeclined)
	if n := len(w.exceptions()); n != 0 {
		w.t.Errorf("%d exceptions were opened by a forged notice", n)
	}
	w.books()
}

// Case 23: the operator's times are Nairobi's, without a time zone. They are stored in UTC, and days are Kenya's: a
// payment half an hour before midnight there belongs to that day, and one after midnight to the next.
func TestCatalogue23_TimesAreNairobis(t *testing.T) {
	t.Parallel()
	w := openAt(t, time.Date(2026, 11, 21, 20, 30, 0, 0, time.UTC)) // 23:30 in Nairobi
	const daily = 2000                                              // one order
	storetest.Patch(t, w.store, store.LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleCustomer: {PerDay: shillings(daily)}}})
	o := w.buy(w.request("00"))
	w.completed(o)
	paid := w.effects(sandbox.Collection)[0].Time
	known, n, err := w.store.ListC2B(w.t.Context(), store.C2BFilter{Receipt: o.MomoReceipt}, store.Page{Number: 1, Size: 5})
	if err != nil || n != 1 || !known[0].PaidAt.Equal(paid.Truncate(time.Second)) {
		w.t.Errorf("paid at %v by the operator's books, %+v by ours, %v", paid, known, err)
	}
	if at := w.attempts(o.ID)[0].SettledAt; at.Location() != time.UTC || at.Sub(paid) > time.Minute || at.Before(paid) {
		w.t.Errorf("settled at %v, paid at %v", at, paid)
	}
	w.pass(5 * time.Minute)
	if err := w.refused(w.request("00")); exchange.CodeOf(err) != exchange.CodeLimitReached {
		w.t.Errorf("a second order at 23:35 in Nairobi, beyond the day's limit: %v", err)
	}
	w.pass(30 * time.Minute)
	w.is(w.buy(w.request("00")), exchange.OrderCompleted, exchange.WaitNothing)
	w.books()
}

// refused plays an order that is not opened, and returns the error.
func (w *harness) refused(r exchange.OrderRequest) error {
	w.t.Helper()
	in := workflows.OnRampInput{IntentID: w.intends(r, exchange.IntendPurchase)}
	w.play(workflows.OnRampID(r.ID), workflows.OnRamp, in, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.UpdateWorkflow(workflows.UpdateOpen, r.ID.String(), w.answer("open")) }, 0)
	})
	return workflows.AsExchangeError(w.answers["open"])
}
