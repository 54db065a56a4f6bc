package workflows

import (
	"strconv"
	"time"

	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// SignalWebhooks tells an endpoint's flow that there is something to deliver. It carries nothing.
const SignalWebhooks = "webhooks-due"

// WebhooksSummary is the one line that the Web UI shows of it.
const WebhooksSummary = "Deliver events to a webhook endpoint"

// Rhythms of webhooks.
const (
	relayPause   = 2 * time.Second // between looks at the log while there are endpoints
	relayRounds  = 240             // of one run
	hookRounds   = 200
	hookMinPause = time.Second
	hookTrouble  = 5 * time.Minute // after a failure that is ours and does not pass
)

// hookTimeout is longer than a round of attempts can take.
const hookTimeout = 2 * time.Minute

// RelayEvents hands the event log to the webhook endpoints, and wakes their flows. A schedule starts it; it goes
// on while there is an active endpoint, as new runs on the newest build, and ends when there is none.
func RelayEvents(ctx workflow.Context) error {
	for n := 0; n < relayRounds && !workflow.GetInfo(ctx).GetContinueAsNewSuggested(); n++ {
		did, err := fetch(ctx, database, "Hand on the event log", relay.RelayEvents)
		if err != nil {
			return err // the schedule starts it anew
		}
		switch {
		case did.More:
		case !did.Wanted:
			return nil
		default:
			if err := workflow.Sleep(ctx, relayPause); err != nil {
				return err
			}
		}
	}
	return goOn(ctx, TypeRelayEvents)
}

// goOn ends a run and begins the next one on the newest build.
func goOn(ctx workflow.Context, flow string, in ...any) error {
	o := workflow.ContinueAsNewErrorOptions{InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade}
	return workflow.NewContinueAsNewErrorWithOptions(ctx, o, flow, in...)
}

// DeliverWebhooks sends to one endpoint what waits for it, and ends when nothing does. What has to be sent, and
// when, is in the database; the flow keeps the time. One endpoint that is slow or down makes nobody wait but
// itself.
func DeliverWebhooks(ctx workflow.Context, in activities.WebhookInput) error {
	f := &webhookDelivery{in: in}
	workflow.GoNamed(ctx, "signal due", f.listen)
	return f.run(ctx)
}

type webhookDelivery struct {
	in    activities.WebhookInput
	woken bool
}

func (f *webhookDelivery) listen(ctx workflow.Context) {
	for {
		workflow.GetSignalChannel(ctx, SignalWebhooks).Receive(ctx, nil)
		f.woken = true
	}
}

func (f *webhookDelivery) run(ctx workflow.Context) error {
	for n := 0; n < hookRounds && !workflow.GetInfo(ctx).GetContinueAsNewSuggested(); n++ {
		letOthersRun(ctx)
		f.woken = false
		sent, err := step(ctx, webhook, "Send what is due", webhooks.DeliverWebhooks, f.in)
		if err != nil {
			workflow.GetLogger(ctx).Error("webhooks could not be sent; it is tried again", "endpoint", f.in.EndpointID.String(), "error", err)
			describe(ctx, card{title: "Sending fails for a reason of ours; it is tried again"})
			await(ctx, hookTrouble, "Try again", func() bool { return false })
			continue
		}
		if !sent.Next.IsZero() {
			f.pause(ctx, sent)
			continue
		}
		if letOthersRun(ctx); !f.woken {
			return nil
		}
	}
	return goOn(ctx, TypeDeliverWebhooks, f.in)
}

// pause waits until the next attempt is due, or something new is. What was just sent without a rest is followed
// by the next at once.
func (f *webhookDelivery) pause(ctx workflow.Context, sent activities.WebhooksSent) {
	wait := sent.Next.Sub(workflow.Now(ctx))
	if wait <= 0 && sent.Attempts > 0 {
		return
	}
	c := card{title: "Waiting for the next attempt"}
	c.add("Last round", strconv.Itoa(sent.Delivered)+" of "+strconv.Itoa(sent.Attempts)+" delivered")
	c.add("Next attempt", moment(sent.Next))
	describe(ctx, c)
	await(ctx, max(wait, hookMinPause), "Next attempt", func() bool { return f.woken })
}
