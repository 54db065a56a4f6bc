package catalogue

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
	"kivuko/momo/sandbox"
	"kivuko/workflows"
)

// These play what an attacker does who knows the addresses of callbacks, by the number of the finding. Each counts what left.

// H5: a forged result and a forged notice, which agree with each other in all data, completed a purchase that nobody paid: both
// came to us, and no source was asked. Now the operator's answer or its statement must stand behind one of them.
func TestH5_TwoForgedNoticesCompleteNothing(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{"the operator says that the prompt is open": "query_pending", "the operator gives no answer": "query_busy"} {
		for where, offRange := range map[string]bool{"from the operator's addresses": false, "from elsewhere": true} {
			t.Run(name+", "+where, func(t *testing.T) {
				t.Parallel()
				w := open(t)
				w.fault("never", sandbox.OpPrompt)
				w.fault(query, sandbox.OpQuery, -1)
				r := w.request("00")
				o := w.unfinished(r, 6*time.Hour, after(8*time.Second, func(*testsuite.TestWorkflowEnvironment) {
					p := w.operator.Books().Prompts[0]
					w.line.postFrom(p.CallbackURL, sandbox.ForgedResult(p, price), offRange)
					w.line.postFrom(w.line.base()+"/"+standingToken+"/confirmation", sandbox.ForgedNotice(p, price), offRange)
				}))
				w.is(o, exchange.OrderPending, exchange.WaitOperator)
				if n := len(w.chain.paid(r.ID)) + len(w.effects(sandbox.Payout)) + len(w.exceptions()); n != 0 {
					t.Errorf("two forged notices moved something: %d", n)
				}
				if a := w.attempts(r.ID)[0]; a.Status != exchange.AttemptAccepted || a.Receipt != "" {
					t.Errorf("the prompt is %s, with receipt %q", a.Status, a.Receipt)
				}
			})
		}
	}
}

// H5: a forged result that says "declined" ended a purchase while its prompt was still on the phone. What the payer paid then was
// late. Now the order waits, and the payment completes it.
func TestH5_AForgedRefusalEndsNothing(t *testing.T) {
	t.Parallel()
	for where, offRange := range map[string]bool{"from the operator's addresses": false, "from elsewhere": true} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			w.line.at(time.Minute) // the payer takes that long
			w.fault("query_pending", sandbox.OpQuery, 2)
			r := w.request("00")
			w.completed(w.buy(r, after(8*time.Second, func(*testsuite.TestWorkflowEnvironment) {
				p := w.operator.Books().Prompts[0]
				w.line.postFrom(p.CallbackURL, sandbox.ForgedRefusal(p), offRange)
			})))
			w.books()
		})
	}
}

// D11 and H5: a prompt was paid, and a forged result and notice said that far more was. The surplus left as a refund. Now what is
// not the amount asked for counts only when the operator's statement lists its receipt.
func TestD11_AForgedSurplusDoesNotLeave(t *testing.T) {
	t.Parallel()
	w := open(t)
	r := w.request("94") // callback and confirmation are lost
	w.completed(w.buy(r, after(8*time.Second, func(*testsuite.TestWorkflowEnvironment) {
		p := w.operator.Books().Prompts[0]
		w.line.post(p.CallbackURL, sandbox.ForgedResult(p, 200000))
		w.line.post(w.line.base()+"/"+standingToken+"/confirmation", sandbox.ForgedNotice(p, 200000))
	})))
	if n := len(w.effects(sandbox.Payout)) + len(w.exceptions()); n != 0 {
		t.Errorf("a forged surplus moved something: %d", n)
	}
}

// H5: results of a payout and answers to our queries came to one address, so who learned it could post both. An answer that is
// posted to the token of the result now belongs to nothing.
func TestH5_AnswersHaveAnAddressOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := openSales(t)
	w.sold(w.sell(w.sale("55"))) // the result is lost, so that queries decide
	count := func() (of, stray int) {
		row := w.db().QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE attempt_id IS NOT NULL), count(*) FILTER (WHERE attempt_id IS NULL)
			FROM momo_callbacks WHERE kind = 'status'`)
		if err := row.Scan(&of, &stray); err != nil {
			t.Fatal(err)
		}
		return of, stray
	}
	answers, _ := count()
	if answers == 0 {
		t.Fatal("no answer to a query came, so the test shows nothing")
	}
	result := w.operator.Books().Payouts[0].ResultURL
	w.line.post(strings.TrimSuffix(result, string(exchange.CallbackResult))+string(exchange.CallbackStatus), map[string]any{"Result": map[string]any{"ResultCode": 0}})
	if of, stray := count(); of != answers || stray != 1 {
		t.Errorf("a forged answer counts as the payout's: %d before, %d now, %d of nothing", answers, of, stray)
	}
	w.books()
}

// B4: the flow of a purchase that was paid was terminated, or reset to its beginning. The new run ended and the order stayed as it
// was, with the payer's money. Now a run that begins with an order under way finds what was done and carries it on, at every stage.
func TestB4_ATerminatedPurchaseComesBack(t *testing.T) {
	t.Parallel()
	for at, after := range map[string]time.Duration{
		"while the prompt is open": 3 * time.Second, "when it was paid": 6 * time.Second, "while the crypto is on its way": 10 * time.Second,
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			r := w.request("00")
			if o := w.unfinished(r, after); o.Status == exchange.OrderCompleted {
				t.Fatal("the order had ended before its flow was terminated")
			}
			w.completed(w.buy(r))
			if n := len(w.operator.Books().Prompts); n != 1 {
				t.Errorf("the payer was prompted %d times", n)
			}
			w.completed(w.buy(r)) // and a run after the end changes nothing
			w.books()
		})
	}
}

// B4, with two prompts, of which the second is open: the new run knows both, and the payment of the second completes the order.
func TestB4_ATerminatedPurchaseKnowsItsPrompts(t *testing.T) {
	t.Parallel()
	w := open(t)
	r := w.request("00")
	w.fault("insufficient", sandbox.OpPrompt)
	w.unfinished(r, 63*time.Second, after(time.Minute, func(env *testsuite.TestWorkflowEnvironment) {
		env.UpdateWorkflow(workflows.UpdateRetryPayment, "again", w.answer("again"), w.asks(r, exchange.IntendPrompt))
	}))
	w.completed(w.buy(r))
	if n := len(w.operator.Books().Prompts); n != 2 {
		t.Errorf("the payer was prompted %d times, not twice", n)
	}
	w.books()
}
