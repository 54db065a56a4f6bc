package workflows_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// theException is the one about late money, once the watch has made it.
func (w *harness) theException(t *testing.T) exchange.PaymentException {
	t.Helper()
	for _, x := range w.exceptions() {
		return x
	}
	t.Error("there is no exception")
	return exchange.PaymentException{}
}

// verb gives a command about the exception as the API does, and keeps the response under the key.
func (w *harness) verb(t *testing.T, verb, key string) {
	t.Helper()
	w.notifyFlow(w.decreeWith(activities.ObjectException, w.theException(t).ID, verb, "because"), key)
}

// settled lets an officer settle the exception directly, without the flow.
func (w *harness) settled(t *testing.T, to exchange.ExceptionStatus) {
	t.Helper()
	d := exchange.ExceptionDecision{ID: uuid.New(), ExceptionID: w.theException(t).ID, Verdict: to, Reason: "because"}
	if to == exchange.ExcCredited {
		d.MerchantID = storetest.User(t, w.store.Store, exchange.RoleVendor).ID
	}
	if _, _, err := w.store.DecideException(t.Context(), d, w.officer); err != nil {
		t.Error(err)
	}
}

// The watch carries out the verb "refund" of an exception once, however often it is given.
func TestExceptionsRefundIsPaidOnce(t *testing.T) {
	t.Parallel()
	w, a := lateHarness(t)
	w.at(0, w.pay(a, payer{twice: true}))
	w.at(time.Hour, func() { w.verb(t, "refund", "first") })
	w.at(time.Hour, func() { w.verb(t, "refund", "second") })
	if r := w.late(t, a); r.Outcome != workflows.LateRefunded {
		t.Errorf("the watch ended %s", r.Outcome)
	}
	refunded(price)(t, w)
	if n := len(w.operator.paidOut(w.request.ID)); n != 1 {
		t.Errorf("%d payouts", n)
	}
	exception(exchange.ExcLate, exchange.ExcRefunded)(t, w)
}

// An officer who settles the exception without the flow ends its wait, also when a refund was asked for too late.
func TestExceptionThatWasSettledPastTheWatch(t *testing.T) {
	t.Parallel()
	for _, to := range []exchange.ExceptionStatus{exchange.ExcAccepted, exchange.ExcWrittenOff, exchange.ExcCredited} {
		t.Run(string(to), func(t *testing.T) {
			t.Parallel()
			w, a := lateHarness(t)
			w.at(0, w.pay(a, payer{}))
			w.at(time.Hour, func() { w.settled(t, to) })
			w.at(time.Hour+time.Minute, func() { w.verb(t, "refund", "too late") })
			w.at(2*time.Hour, func() { w.verb(t, "resolve", "told") })
			if r := w.late(t, a); r.Outcome != workflows.LateResolved {
				t.Errorf("the watch ended %s", r.Outcome)
			}
			wants("told", "")(t, w)
			exception(exchange.ExcLate, to)(t, w)
			if n := len(w.operator.paidOut(w.request.ID)); n != 0 || len(w.refunds()) != 0 {
				t.Errorf("%d payouts and %d refunds", n, len(w.refunds()))
			}
		})
	}
}

// A doubtful payee is confirmed at the order alone: a second refund of the exception says nothing of who gets it.
func TestExceptionsRefundConfirmsNoPayee(t *testing.T) {
	t.Parallel()
	w, a := lateHarness(t)
	w.operator.stranger = true
	inDoubt := false
	w.at(0, w.pay(a, payer{}))
	w.at(time.Hour, func() { w.verb(t, "refund", "first") })
	w.at(2*time.Hour, func() { w.verb(t, "refund", "second") })
	w.at(3*time.Hour, func() {
		if n := len(w.operator.paidOut(w.request.ID)); n != 0 {
			t.Errorf("%d payouts while the payee is in doubt", n)
		}
		inDoubt = true
		w.command("refund")
	})
	if r := w.late(t, a); r.Outcome != workflows.LateRefunded {
		t.Errorf("the watch ended %s", r.Outcome)
	}
	if n := len(w.operator.paidOut(w.request.ID)); n != 1 || !inDoubt {
		t.Errorf("%d payouts; the payee was in doubt until the order's command: %v", n, inDoubt)
	}
}
