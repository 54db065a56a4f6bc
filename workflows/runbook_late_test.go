package workflows_test

import (
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// lateRehearsals are the reasons about evidence that arrives after a flow has ended.
func lateRehearsals() map[workflows.Reason]rehearsal {
	return map[workflows.Reason]rehearsal{
		workflows.ReasonLateMoney: {refundOrResolve, func(t *testing.T, c *parkedCommand) {
			w, a := lateHarness(t)
			w.at(0, w.pay(a, payer{}))
			c.await(t, w.env, w.signs, workflows.LatePaymentID(a.ID), func() { w.command(c.verb) })
			outcome := w.late(t, a).Outcome
			wants(c.verb, "")(t, w)
			ended(t, w, exchange.OrderCancelled, exchange.DetailExpired)
			if c.verb == activities.VerbResolve {
				exception(exchange.ExcLate, exchange.ExcAccepted)(t, w)
				c.ends(t, outcome, workflows.LateResolved)
				return
			}
			refunded(price)(t, w)
			exception(exchange.ExcLate, exchange.ExcRefunded)(t, w)
			c.ends(t, outcome, workflows.LateRefunded)
		}},
		workflows.ReasonMomoLate: {retryOrResolve, func(t *testing.T, c *parkedCommand) {
			p := payer{code: "0", mute: true}
			w, a := refusedBefore(exchange.PayoutRefused, p)
			c.mend = func() { w.operator.amend(a.ID, func(p *payer) { p.mute = false }) }
			c.await(t, w.env, w.signs, workflows.LatePayoutID(a.ID), func() { w.says(c.verb, "UKL0000001") })
			c.ends(t, w.late(t, a, p), workflows.LateAccounted)
			wants(c.verb, "")(t, w.harness)
			if w.rows.booked != 1 || w.rows.payout.Receipt != "UKL0000001" {
				t.Errorf("booked %d times with %q", w.rows.booked, w.rows.payout.Receipt)
			}
		}},
		workflows.ReasonMomoTwice: {[]string{activities.VerbResolve}, func(t *testing.T, c *parkedCommand) {
			p := payer{code: "0"}
			w, a := refusedBefore(exchange.PayoutCancelled, p)
			c.await(t, w.env, w.signs, workflows.LatePayoutID(a.ID), func() {
				w.book.mu.Lock()
				for _, x := range w.rows.doubles {
					w.book.exceptions[x.ID] = x
				}
				w.book.mu.Unlock()
				w.says(c.verb, "it is lost")
			})
			c.ends(t, w.late(t, a, p), workflows.LateResolved)
			wants(c.verb, "")(t, w.harness)
			for _, x := range w.book.exceptions {
				if x.Status != exchange.ExcAccepted {
					t.Errorf("the exception is %s", x.Status)
				}
			}
		}},
		workflows.ReasonRefundLate: {retryOrResolve, func(t *testing.T, c *parkedCommand) {
			proven := activities.LatePayoutStep{State: activities.PayoutPaid}
			w := &lateEvidence{steps: []activities.LatePayoutStep{{State: activities.PayoutPending}}, booked: proven}
			c.mend = func() { w.steps = []activities.LatePayoutStep{proven} }
			c.ends(t, w.rehearse(t, c), workflows.LateAccounted)
			if by := w.settled == 1; by != (c.verb == activities.VerbResolve) {
				t.Errorf("settled by the receipt %d times", w.settled)
			}
		}},
		workflows.ReasonRefundTwice: {[]string{activities.VerbResolve}, func(t *testing.T, c *parkedCommand) {
			w := &lateEvidence{steps: []activities.LatePayoutStep{{State: activities.PayoutPaid, Exception: uuid.New(), Undecided: true}}}
			c.ends(t, w.rehearse(t, c), workflows.LateResolved)
			if len(w.resolved) != 1 {
				t.Errorf("%d exceptions were resolved", len(w.resolved))
			}
		}},
	}
}

// ends checks the outcome that a flow returns.
func (c *parkedCommand) ends(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("the flow ended %s, want %s", got, want)
	}
}

// says gives a command about the order, with a note, to the flow that the environment runs.
func (w *harness) says(verb, note string) {
	id := uuid.New()
	w.book.mu.Lock()
	w.book.commands[id] = exchange.OperatorCommand{
		ID: id, ObjectType: activities.ObjectOrder, ObjectID: w.request.ID, Verb: verb, Note: note, ActorID: uuid.New(),
	}
	w.book.mu.Unlock()
	w.notifyFlow(id, verb)
}

// rehearse runs the check of a refund's payout, with the command of the parkedCommand.
func (w *lateEvidence) rehearse(t *testing.T, c *parkedCommand) string {
	t.Helper()
	w.signs, w.verb = newSigns(), c.verb
	w.env = newEnvironment(w.signs)
	for name, f := range map[string]any{"CheckLatePayout": w.check, "SettleLatePayout": w.settle, "ResolveException": w.resolve, "ProveCommand": w.prove, "ListParked": listed} {
		w.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	flow := workflows.LatePayoutID(lateInput.AttemptID)
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: flow, TaskQueue: workflows.QueueFlows})
	refused := func(err error) { t.Errorf("the response to the command: %v", err) }
	c.await(t, w.env, w.signs, flow, func() {
		id := uuid.New()
		w.env.UpdateWorkflow(workflows.UpdateCommand, id.String(), &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: refused, OnComplete: func(_ any, err error) {
				if err != nil {
					refused(err)
				}
			},
		}, workflows.CommandRef{CommandID: id})
	})
	w.env.ExecuteWorkflow(workflows.LatePayout, lateInput)
	var r workflows.LatePayoutResult
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	return r.Outcome
}
