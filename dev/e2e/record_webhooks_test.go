package e2e

import (
	"errors"
	"testing"

	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/workflows"
)

// told are the flows that bring events to receivers: one that takes the first request, and one that turns it away.
func (r *recorder) told(t *testing.T) {
	w := r.world
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
	w.deliveryIs(t, c, first, "delivered", patience, delivered)
	w.testHook(t, c, second)
	w.deliveryIs(t, c, second, "turned away", patience, func(d delivery) bool { return d.LastStatus != nil })
	down.setDown(false)
	w.deliveryIs(t, c, second, "delivered", patience, delivered)
	r.keep(t, workflows.WebhooksID(first.ID), "deliver_webhooks")
	r.keep(t, workflows.WebhooksID(second.ID), "deliver_webhooks_again")
	w.unhook(t, c, first)
	w.unhook(t, c, second)
	r.keep(t, relay, "relay_events") // it ends where there is nobody to tell
	up.server.Close()
	down.server.Close()
}

// relayed is a relay whose history grew long, so that it went on as a new run.
func (r *recorder) relayed(t *testing.T) {
	if r.file("relay_events_long") == "" {
		return
	}
	w := r.world
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

// listed are the runs that hold the books against the operator's list, with a payment for an order and one for
// nothing.
func (r *recorder) listed(t *testing.T) {
	w, phone := r.world, newPhone()
	w.fault(t, "all_lost", "prompt", phone)
	o := w.buy(t, purchase{fiat: "800", phone: phone})
	eventually(t, "the payer has paid", func() error {
		if len(collected(w.books(t), o.ID)) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	stray := w.payNobody(t, 234)
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

// repeated is a word about a payout that comes when all is over.
func (r *recorder) repeated(t *testing.T) {
	r.keep(t, r.world.repeatResult(t), "late_payout_repeated")
}
