package catalogue

import (
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/momo/sandbox"
	"kivuko/store"
	"kivuko/workflows"
)

// each plays a case once for each number with a fault of the operator.
func each(t *testing.T, magics map[string]string, play func(w *harness, magic string)) {
	t.Helper()
	for name, magic := range magics {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			play(w, magic)
			w.books()
		})
	}
}

// Case 1: the prompt's request times out or fails, and it is unknown whether the prompt is on the phone. It is never
// sent again; a callback to the attempt's own address or the statement decides.
func TestCatalogue01_TheSubmissionIsUnknown(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{
		"answered with 500": "47", "connection breaks": "48", "a page instead of an answer": "49", "connection breaks and nothing comes": "23",
		"an empty error": "24",
	}, func(w *harness, magic string) {
		w.completed(w.buy(w.request(magic)))
		if n := len(w.operator.Books().Prompts); n != 1 {
			w.t.Errorf("%d prompts were on the phone", n)
		}
	})
}

// Case 1, where the payer asks for another prompt meanwhile: it is refused, because the first may be on the phone.
func TestCatalogue01_NoOtherPromptInDoubt(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"answered with 500": "47", "connection breaks and nothing comes": "23"}, func(w *harness, magic string) {
		r := w.request(magic)
		o := w.buy(r, after(2*time.Second, func(env *testsuite.TestWorkflowEnvironment) {
			env.UpdateWorkflow(workflows.UpdateRetryPayment, "again", w.answer("again"), w.asks(r, exchange.IntendPrompt))
		}))
		w.completed(o)
		if code := exchange.CodeOf(workflows.AsExchangeError(w.answers["again"])); code != exchange.CodeStateConflict {
			w.t.Errorf("another prompt was answered with %q: %v", code, w.answers["again"])
		}
		if n := len(w.operator.Books().Prompts); n != 1 {
			w.t.Errorf("%d prompts were on the phone", n)
		}
	})
}

// Case 1, where the prompt was never sent: after the order's time the complete statement does not have it.
func TestCatalogue01_TheSubmissionNeverArrived(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"an empty error": "86"}, func(w *harness, magic string) {
		w.is(w.buy(w.request(magic)), exchange.OrderCancelled, exchange.DetailExpired)
		if n := len(w.operator.Books().Prompts); n != 0 {
			w.t.Errorf("%d prompts were on the phone", n)
		}
	})
}

// Case 2: the callback is lost, and the query returns the outcome.
func TestCatalogue02_TheCallbackIsLost(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"callback": "30", "callback and confirmation": "94"}, func(w *harness, magic string) {
		w.completed(w.buy(w.request(magic)))
		if n := len(w.line.of(exchange.CallbackResult)); n != 0 {
			w.t.Errorf("%d callbacks came", n)
		}
	})
}

// Case 3: the callback comes before the operator's answer to the request is stored.
func TestCatalogue03_TheCallbackIsFirst(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"callback first": "38"}, func(w *harness, magic string) {
		w.line.at(0)
		w.completed(w.buy(w.request(magic)))
		if a := w.attempts(w.lastOrder())[0]; len(w.line.of(exchange.CallbackResult)) != 1 || a.CheckoutRequestID == "" {
			w.t.Errorf("the attempt is %+v", a)
		}
	})
}

// Case 4: the callback comes twice, and the confirmation has the same receipt. The money counts once.
func TestCatalogue04_TheSameReceiptTwice(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"callback twice": "31", "confirmation with the number": "92"}, func(w *harness, magic string) {
		o := w.buy(w.request(magic))
		w.completed(o)
		known, n, err := w.store.ListC2B(w.t.Context(), store.C2BFilter{Receipt: o.MomoReceipt}, store.Page{Number: 1, Size: 5})
		if err != nil || n != 1 || known[0].Object.OrderID() != o.ID || known[0].Status != exchange.C2BMatched {
			w.t.Errorf("the receipt is known %d times: %+v, %v", n, known, err)
		}
		if results, confirmations := len(w.line.of(exchange.CallbackResult)), len(w.line.of(exchange.CallbackConfirmation)); results+confirmations < 2 {
			w.t.Errorf("%d results and %d confirmations came", results, confirmations)
		}
	})
}

var lateSuccess = map[string]string{"after no response": "33", "after a timeout of the operator": "35"}

// Case 5: success after failure. An order that still waits is completed at its price.
func TestCatalogue05_LateSuccessInTime(t *testing.T) {
	t.Parallel()
	each(t, lateSuccess, func(w *harness, magic string) {
		w.completed(w.buy(w.request(magic), after(4*time.Minute, func(*testsuite.TestWorkflowEnvironment) { w.late() })))
	})
}

// Case 5, when the order has ended: the money is in suspense until an operator decides, and here goes back.
func TestCatalogue05_LateSuccessTooLate(t *testing.T) {
	t.Parallel()
	magics := map[string]string{"after a refusal by the payer": "34", "after no response": "33", "after a timeout of the operator": "35"}
	each(t, magics, func(w *harness, magic string) {
		r := w.request(magic)
		o := w.buy(r,
			after(40*time.Minute, func(*testsuite.TestWorkflowEnvironment) { w.late() }),
			after(3*time.Hour, func(env *testsuite.TestWorkflowEnvironment) { w.decide(env, activities.VerbRefund, "") }))
		if o.Status != exchange.OrderCancelled && o.Status != exchange.OrderFailed {
			w.t.Errorf("the order is %s", o.Status)
		}
		w.setAside(exchange.ExcLate, exchange.ExcRefunded)
		w.paidBack(r, price)
		w.parked(workflows.LatePaymentID(w.attempts(r.ID)[0].ID), workflows.ReasonLateMoney)
	})
}

// Case 5, when the customer has cancelled the order: the money goes back by rule, without an operator.
func TestCatalogue05_LateSuccessAfterACancellation(t *testing.T) {
	t.Parallel()
	each(t, lateSuccess, func(w *harness, magic string) {
		r := w.request(magic)
		o := w.buy(r,
			after(4*time.Minute, func(env *testsuite.TestWorkflowEnvironment) {
				env.UpdateWorkflow(workflows.UpdateCancel, "cancel", w.answer("cancel"), w.asks(r, exchange.IntendPurchaseCancel))
			}),
			after(10*time.Minute, func(*testsuite.TestWorkflowEnvironment) { w.late() }))
		w.is(o, exchange.OrderCancelled, exchange.DetailCancelled)
		w.setAside(exchange.ExcLate, exchange.ExcRefunded)
		w.paidBack(r, price)
		w.parked(workflows.LatePaymentID(w.attempts(r.ID)[0].ID))
	})
}

// Case 6: the query reports failure and the callback success. A success is never revoked, and the statement decides.
func TestCatalogue06_TheQueryContradictsTheCallback(t *testing.T) {
	t.Parallel()
	magics := map[string]string{"with a confirmation": "42", "without a confirmation": "93"}
	each(t, magics, func(w *harness, magic string) {
		w.fault("query_contrary", sandbox.OpQuery, -1)
		w.completed(w.buy(w.request(magic)))
	})
}

// Case 6, without any other source: neither counts alone, and an operator who finds the receipt in the portal is the
// second source.
func TestCatalogue06_TheSourcesDisagree(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"without confirmation and statement": "93"}, func(w *harness, magic string) {
		w.fault("query_contrary", sandbox.OpQuery, -1)
		w.fault("maintenance", sandbox.OpPull, -1)
		r := w.request(magic)
		o := w.buy(r, after(2*time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
			w.is(w.order(r.ID), exchange.OrderPending, exchange.WaitOperator)
			w.sendCommand(env, r.ID, activities.VerbResolve, w.effects(sandbox.Collection)[0].Receipt)
		}))
		w.completed(o)
		w.parked(workflows.OnRampID(r.ID), workflows.ReasonDisagree)
	})
}

// Case 7: the query answers 500.001.1001, which decides nothing, about a payment that has ended.
func TestCatalogue07_TheQueryGivesNoAnswer(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"being processed": "44", "without words": "45", "never heard of": "46"}, func(w *harness, magic string) {
		w.completed(w.buy(w.request(magic)))
	})
}

// Case 7, where only the statement reports it: any number of such answers is neither a failure nor a second source. An
// operator who finds the receipt in the portal is.
func TestCatalogue07_OnlyTheStatementReports(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"being processed": "query_busy", "without words": "query_blank", "never heard of": "query_unknown"}, func(w *harness, behaviour string) {
		w.fault(behaviour, sandbox.OpQuery, -1)
		r := w.request("94") // callback and confirmation are lost
		o := w.buy(r, after(6*time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
			w.is(w.order(r.ID), exchange.OrderPending, exchange.WaitOperator)
			if a := w.attempts(r.ID)[0]; a.Status != exchange.AttemptAccepted {
				w.t.Errorf("the prompt is %s", a.Status)
			}
			w.sendCommand(env, r.ID, activities.VerbResolve, w.effects(sandbox.Collection)[0].Receipt)
		}))
		w.completed(o)
		w.parked(workflows.OnRampID(r.ID), workflows.ReasonOneSource)
	})
}

// Case 8: the answers about a pending payment vary. None of them counts as a failure.
func TestCatalogue08_TheShapesOfPending(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"4999": "query_pending", "500.001.1001": "query_busy", "200 and no words": "query_blank"}, func(w *harness, behaviour string) {
		w.fault("never", sandbox.OpPrompt)
		w.fault(behaviour, sandbox.OpQuery, -1)
		r := w.request("00")
		seen := false
		o := w.buy(r,
			after(25*time.Minute, func(*testsuite.TestWorkflowEnvironment) {
				seen = true
				w.is(w.order(r.ID), exchange.OrderPending, exchange.WaitOutcome)
				if a := w.attempts(r.ID)[0]; a.Status != exchange.AttemptAccepted {
					w.t.Errorf("ten minutes after the order's time the prompt is %s", a.Status)
				}
			}),
			// An operator found in the portal that nothing was paid.
			after(time.Hour, func(env *testsuite.TestWorkflowEnvironment) {
				w.sendCommand(env, r.ID, activities.VerbResolve, "nothing there")
			}),
			after(30*time.Hour, func(env *testsuite.TestWorkflowEnvironment) { w.decide(env, activities.VerbResolve, "nothing there") }))
		w.is(o, exchange.OrderCancelled, exchange.DetailExpired)
		w.parked(workflows.OnRampID(r.ID), workflows.ReasonOutcomeUnknown)
		if !seen {
			w.t.Error("the order was over before its outcome was known")
		}
	})
}

// Case 9: the operator reports success without a receipt. Nothing is credited before the statement has it.
func TestCatalogue09_PaidWithoutReceipt(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"callback without receipt": "26", "callback without anything": "39"}, func(w *harness, magic string) {
		w.completed(w.buy(w.request(magic)))
	})
	t.Run("the confirmation is lost too", func(t *testing.T) {
		t.Parallel()
		w := open(t)
		w.fault("no_receipt", sandbox.OpPrompt)
		w.completed(w.buy(w.request("93")))
		w.books()
	})
}
