package e2e

import (
	"errors"
	"testing"

	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// delivered records the flows that deliver events to receivers: one that accepts the first request, and one that rejects
// it.
func (r *recorder) delivered(t *testing.T) {
	w := r.harness
	c := w.admin(t)
	up, down := newReceiver(t), newReceiver(t)
	down.setDown(true)
	first, second := w.hook(t, c, up, exchange.WebhookTest), w.hook(t, c, down, exchange.WebhookTest)
	var relay string
	eventually(t, "the relay is at work", func() (err error) {
		relay, err = w.running(t, workflows.TypeRelayEvents)
		return err
	})
	w.testHook(t, c, first)
	w.deliveryIs(t, c, first, "delivered", timeout, delivered)
	w.testHook(t, c, second)
	w.deliveryIs(t, c, second, "turned away", timeout, func(d delivery) bool { return d.LastStatus != nil })
	down.setDown(false)
	w.deliveryIs(t, c, second, "delivered", timeout, delivered)
	r.keep(t, workflows.WebhooksID(first.ID), "deliver_webhooks")
	r.keep(t, workflows.WebhooksID(second.ID), "deliver_webhooks_again")
	w.unhook(t, c, first)
	w.unhook(t, c, second)
	r.keep(t, relay, "relay_events") // it ends when no endpoint is left
	up.server.Close()
	down.server.Close()
}

// relayed records a relay whose history grew long, so that it continued as a new run.
func (r *recorder) relayed(t *testing.T) {
	if r.file("relay_events_long") == "" {
		return
	}
	w := r.harness
	w.shortHistories(t)
	c, up := w.admin(t), newReceiver(t)
	e := w.hook(t, c, up, exchange.WebhookTest)
	var id, run string
	eventually(t, "the relay is at work", func() (err error) {
		if id, err = w.running(t, workflows.TypeRelayEvents); err != nil {
			return err
		}
		d, err := w.temporal.DescribeWorkflowExecution(t.Context(), id, "")
		run = d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		return err
	})
	eventually(t, "another run goes on", func() error {
		d, err := w.temporal.DescribeWorkflowExecution(t.Context(), id, "")
		if err == nil && d.GetWorkflowExecutionInfo().GetExecution().GetRunId() == run {
			err = errors.New("it is the same run")
		}
		return err
	})
	r.keepRun(t, id, run, "relay_events_long")
	w.unhook(t, c, e)
	up.server.Close()
}

// listed records the runs that compare the books with the operator's statement, with a payment for an order and one
// without an order.
func (r *recorder) listed(t *testing.T) {
	w, phone := r.harness, newPhone()
	w.fault(t, "all_lost", "prompt", phone)
	o := w.buy(t, purchase{fiat: "800", phone: phone})
	eventually(t, "the payer has paid", func() error {
		if len(collected(w.books(t), o.ID)) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	stray := w.payWithoutOrder(t, 234)
	for schedule, flow := range map[string]string{"reconcile-payments": workflows.TypeReconcilePayments, "sweep-payments": workflows.TypeSweepPayments} {
		if err := w.temporal.ScheduleClient().GetHandle(t.Context(), schedule).Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
			t.Fatal(err)
		}
		var id string
		eventually(t, "a run of "+flow, func() (err error) {
			id, err = w.latest(t, flow)
			return err
		})
		r.keep(t, id, snake(flow))
	}
	w.ends(t, o.ID, "completed", "")
	w.setAside(t, stray, 234)
}

// repeated records the check of a payout's result that arrives after its order is over.
func (r *recorder) repeated(t *testing.T) {
	r.keep(t, r.harness.repeatResult(t), "late_payout_repeated")
}
