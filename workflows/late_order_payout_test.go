package workflows_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// refusedBefore is a payout whose only attempt was recorded as refused, and whose order has the given state.
func refusedBefore(status exchange.PayoutStatus, p payer) (*payoutHarness, exchange.PaymentAttempt) {
	w := newPayoutHarness(p)
	a := exchange.PaymentAttempt{
		ID: activities.PayoutID(w.request.ID, 1), Direction: exchange.Payout, Object: w.of, OrderID: w.request.ID, Status: exchange.AttemptFailed,
		Amount: w.rows.payout.Amount, Phone: w.rows.payout.Phone, ResultCode: "2040", CreatedAt: w.start,
	}
	a.WorkflowID = workflows.LatePayoutID(a.ID)
	w.rows.attempts[a.ID], w.rows.payout.Status = a, status
	w.operator.submitted[a.ID], w.operator.plans[a.ID] = 1, p
	w.env.RegisterActivity(&activities.Refunds{Store: w.book})
	return w, a
}

// late runs the check of late evidence as the API starts it. The operator pays a moment later.
func (w *payoutHarness) late(t *testing.T, a exchange.PaymentAttempt, p payer) string {
	t.Helper()
	w.at(time.Second, func() { w.operator.mu.Lock(); defer w.operator.mu.Unlock(); w.operator.finish(a, p, "0") })
	id := workflows.LatePayoutID(a.ID)
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueFlows})
	first := exchange.Observation{State: exchange.SeenSucceeded, Receipt: "UKL0000001", Amount: a.Amount, Source: exchange.SourceCallback}
	w.operator.mu.Lock()
	w.operator.results[a.ID] = "0"
	w.operator.callback(a, exchange.CallbackResult, first) // this callback started the flow
	w.operator.mu.Unlock()
	w.env.ExecuteWorkflow(workflows.LatePayout, workflows.LatePayoutInput{AttemptID: a.ID, OrderID: w.request.ID})
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var r workflows.LatePayoutResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	return r.Outcome
}

// TestLateSuccessOfAnOrdersPayout books a payout that is proven after it was recorded as refused, and parks only if no other
// flow does.
func TestLateSuccessOfAnOrdersPayout(t *testing.T) {
	for _, s := range []struct {
		name   string
		status exchange.PayoutStatus
		here   bool // the crypto has not gone back
		want   string
		booked int
		parked []workflows.Reason
	}{
		{"while the order waits", exchange.PayoutRefused, false, workflows.LateAccounted, 1, nil},
		{"the crypto is still here", exchange.PayoutCancelled, true, workflows.LateAccounted, 0, nil},
		{"the crypto is gone", exchange.PayoutCancelled, false, workflows.LateResolved, 0, []workflows.Reason{workflows.ReasonMomoTwice}},
		{"another attempt has paid", exchange.PayoutCompleted, false, workflows.LateResolved, 0, []workflows.Reason{workflows.ReasonMomoTwice}},
	} {
		t.Run(s.name, func(t *testing.T) {
			p := payer{code: "0"}
			w, a := refusedBefore(s.status, p)
			w.rows.here = s.here
			w.at(3*time.Hour, func() {
				for _, x := range w.rows.doubles {
					w.book.mu.Lock()
					w.book.exceptions[x.ID] = x
					w.book.mu.Unlock()
				}
				id := w.decree("resolve")
				w.env.UpdateWorkflow(workflows.UpdateCommand, id.String(), w.answer("resolve"), workflows.CommandRef{CommandID: id})
			})
			if got := w.late(t, a, p); got != s.want {
				t.Errorf("the check ended %s, want %s", got, s.want)
			}
			if w.rows.booked != s.booked || len(w.rows.doubles) != 1-s.booked {
				t.Errorf("booked %d times, %d paid twice", w.rows.booked, len(w.rows.doubles))
			}
			w.signs.were(t, workflows.LatePayoutID(a.ID), s.parked...)
			for _, x := range w.book.exceptions {
				if x.Status != exchange.ExcAccepted {
					t.Errorf("the exception is %s", x.Status)
				}
			}
		})
	}
}

// TestLateClaimAboutAnOrdersPayout has only one source report that a payout was made. The crypto waits from then on, and an
// operator proves the payout.
func TestLateClaimAboutAnOrdersPayout(t *testing.T) {
	p := payer{code: "0", mute: true}
	w, a := refusedBefore(exchange.PayoutRefused, p)
	w.at(time.Minute, func() {
		if !w.rows.payout.Doubted {
			t.Error("nothing is in doubt")
		}
	})
	w.at(5*time.Hour, func() {
		id := uuid.New()
		w.book.mu.Lock()
		w.book.commands[id] = exchange.OperatorCommand{ID: id, ObjectType: activities.ObjectOrder, ObjectID: w.request.ID, Verb: "resolve", Note: "UKL0000001", ActorID: uuid.New()}
		w.book.mu.Unlock()
		w.env.UpdateWorkflow(workflows.UpdateCommand, id.String(), w.answer("resolve"), workflows.CommandRef{CommandID: id})
	})
	if got := w.late(t, a, p); got != workflows.LateAccounted {
		t.Errorf("the check ended %s", got)
	}
	if w.rows.booked != 1 || w.rows.payout.Receipt != "UKL0000001" {
		t.Errorf("booked %d times with %q", w.rows.booked, w.rows.payout.Receipt)
	}
	w.signs.were(t, workflows.LatePayoutID(a.ID), workflows.ReasonMomoLate)
}

// TestPayoutThatStands keeps a payout instead of the refund: a proven one, or one that the operator's receipt proves.
func TestPayoutThatStands(t *testing.T) {
	for name, c := range map[string]struct {
		proven  bool
		receipt string
	}{"proven before": {true, "UKL0000001"}, "proven by the receipt": {false, "UKL0000001"}} {
		t.Run(name, func(t *testing.T) {
			w, a := refusedBefore(exchange.PayoutCancelled, payer{code: "0"})
			if c.proven {
				a.Status, a.Receipt = exchange.AttemptSucceeded, c.receipt
				w.rows.attempts[a.ID] = a
			}
			id := uuid.New()
			w.book.commands[id] = exchange.OperatorCommand{ID: id, ObjectType: activities.ObjectOrder, ObjectID: w.request.ID, Verb: "resolve", Note: c.receipt, ActorID: uuid.New()}
			suite := testsuite.WorkflowTestSuite{}
			env := suite.NewTestActivityEnvironment()
			p := &activities.Payouts{Store: w.rows, Operator: w.operator, Provider: "daraja", Now: time.Now}
			env.RegisterActivity(p)
			_, err := env.ExecuteActivity(p.KeepPayout, activities.KeepPayoutInput{OrderID: w.request.ID, Proof: activities.Proof{
				CommandID: id, Object: activities.ObjectRef{Type: activities.ObjectOrder, ID: w.request.ID}, Verb: "resolve",
			}})
			if err != nil || w.rows.payout.Status != exchange.PayoutCompleted || w.rows.attempts[a.ID].Receipt != c.receipt {
				t.Errorf("the payout is %s, its attempt has %q, %v", w.rows.payout.Status, w.rows.attempts[a.ID].Receipt, err)
			}
		})
	}
}
