package catalogue

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// underpaid is the amount of a payment that is too small, and is refunded.
const underpaid = price - 1

// giveBack plays an underpaid order, whose refund goes to a number with a fault of the operator, or with a fault that
// the case sets.
func (w *harness) giveBack(r exchange.OrderRequest, script ...func(*testsuite.TestWorkflowEnvironment)) {
	w.t.Helper()
	w.fault("pays_less", sandbox.OpPrompt)
	w.is(w.buy(r, script...), exchange.OrderFailed, exchange.DetailUnderpaid)
	w.setAside(exchange.ExcUnder, exchange.ExcRefunded)
	w.paidBack(r, underpaid)
	w.books()
}

// payouts returns the ids under which the operator took payouts.
func (w *harness) payouts() []string {
	var ids []string
	for _, p := range w.operator.Books().Payouts {
		ids = append(ids, p.OriginatorConversationID)
	}
	return ids
}

// once checks that the operator took one payout, under the refund's first id.
func (w *harness) once() {
	w.t.Helper()
	if ids := w.payouts(); len(ids) != 1 || ids[0] != activities.PayoutID(w.refund().ID, 1).String() {
		w.t.Errorf("the operator took payouts under %v", ids)
	}
}

func (w *harness) refund() exchange.Refund {
	w.t.Helper()
	var id uuid.UUID
	if err := w.db().QueryRowContext(w.t.Context(), `SELECT id FROM refunds`).Scan(&id); err != nil {
		w.t.Fatal(err)
	}
	r, err := w.store.Refund(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// Case 12: the response to a payout's request is lost. Its status is queried, and it is never sent under another id.
func TestCatalogue12_ThePayoutIsUnknown(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"answered with 500": "60", "connection breaks": "61", "system error, no result": "64"}, func(w *harness, magic string) {
		w.giveBack(w.request(magic))
		w.once()
	})
}

// Case 13: the worker dies around the call, and the payout is sent again under its id. The operator's "duplicate" only
// proves that it took the first one.
func TestCatalogue13_TheIDIsKnown(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.dies.Store(true)
	w.giveBack(w.request("00"))
	if n := w.sent.Load(); n != 2 {
		t.Errorf("the payout was sent %d times", n)
	}
	w.once()
}

// Case 14: the operator's queue reports a timeout. That is no outcome: the payout's status is queried.
func TestCatalogue14_TheQueueTimesOut(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"then it is paid": "59", "then it is paid, and the result is lost": "74"}, func(w *harness, magic string) {
		w.giveBack(w.request(magic), after(5*time.Minute, func(*testsuite.TestWorkflowEnvironment) { w.late() }))
		w.once()
	})
}

// retried plays a refund whose first payout is refused, and which an operator retries under a new id.
func (w *harness) retried(behaviour string) {
	w.t.Helper()
	w.fault(behaviour, sandbox.OpPayout)
	r := w.request("00")
	w.giveBack(r,
		after(5*time.Minute, func(*testsuite.TestWorkflowEnvironment) { w.late() }),
		after(time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
			w.sendCommand(env, r.ID, activities.VerbRetry, "the number takes money now")
		}))
	w.parked(workflows.OnRampID(r.ID), workflows.ReasonRefundRefused)
	refund := w.refund().ID
	want := []string{activities.PayoutID(refund, 1).String(), activities.PayoutID(refund, 2).String()}
	if ids := w.payouts(); len(ids) != 2 || ids[0] != want[0] || ids[1] != want[1] {
		w.t.Errorf("the operator took payouts under %v, want %v", ids, want)
	}
}

// Case 14, where the outcome is a refusal: only then may another payout be made.
func TestCatalogue14_TheQueueTimesOutAndItFails(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.retried("timeout_then_failed")
}

// Case 15: the result is lost. Two answers to status queries replace it.
func TestCatalogue15_TheResultIsLost(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"of a payment": "55"}, func(w *harness, magic string) {
		w.giveBack(w.request(magic))
		w.once()
	})
}

// Case 15, for a refusal.
func TestCatalogue15_TheResultOfARefusalIsLost(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.retried("result_lost_failed")
}

// Case 16: result and status contradict each other. Nothing else can be paid until an operator resolves the payout with
// its receipt.
func TestCatalogue16_ResultAndStatusDisagree(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"the status says Failed": "68", "the status reports another amount": "73"}, func(w *harness, magic string) {
		r := w.request(magic)
		w.giveBack(r, after(time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
			refund := w.refund()
			if refund.Status != exchange.RefundProcessing {
				w.t.Errorf("the refund is %s", refund.Status)
			}
			if _, err := w.store.FailPayout(t.Context(), exchange.RefundObject(refund.ID), "the status said so"); exchange.CodeOf(err) != exchange.CodeStateConflict {
				w.t.Errorf("another payout could be made: %v", err)
			}
			w.sendCommand(env, r.ID, activities.VerbResolve, w.effects(sandbox.Payout)[0].Receipt)
		}))
		w.parked(workflows.MomoPayoutID(exchange.RefundObject(w.refund().ID)), workflows.ReasonRefundDisagree)
		w.once()
	})
}

// Case 19: the operator's payout account is short, and the operator reports that only after accepting the payout. The refund
// waits for float and is paid under a new id.
func TestCatalogue19_TheOperatorsFloatIsShort(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.fault("utility_short", sandbox.OpPayout)
	r := w.request("00")
	w.giveBack(r)
	w.parked(workflows.OnRampID(r.ID))
	if ids := w.payouts(); len(ids) != 2 || ids[1] != activities.PayoutID(w.refund().ID, 2).String() {
		t.Errorf("the operator took payouts under %v", ids)
	}
}

// Case 19, by our own books: a payout without float is sent only when the float is topped up.
func TestCatalogue19_OurFloatIsShort(t *testing.T) {
	t.Parallel()
	w := open(t)
	kes := func(k exchange.AccountKind) exchange.AccountRef { return exchange.House(k, money.KES) }
	most := shillings(1_000_000 - 1000)
	move := func(debit, credit exchange.AccountKind) {
		p := exchange.Posting{Entries: []exchange.Entry{{
			Key: "test:" + storetest.NewID(t).String(), Kind: "float.moved", Lines: []exchange.Line{exchange.Debit(kes(debit), most), exchange.Credit(kes(credit), most)},
		}}}
		if err := w.store.Post(t.Context(), p); err != nil {
			t.Error(err)
		}
	}
	move(exchange.AccCapital, exchange.AccMomoPayout)
	r := w.request("00")
	w.giveBack(r, after(time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
		if ids := w.payouts(); len(ids) != 0 {
			w.t.Errorf("payouts went out without float: %v", ids)
		}
		move(exchange.AccMomoPayout, exchange.AccCapital)
		w.sendCommand(env, r.ID, activities.VerbRetry, "")
	}))
	w.parked(workflows.OnRampID(r.ID), workflows.ReasonRefundFloat)
	w.once()
}
