package workflows

import (
	"strconv"
	"time"

	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// SignalWebhooks notifies an endpoint's flow that there is something to deliver. It has no argument.
const SignalWebhooks = "webhooks-due"

// WebhooksSummary is the summary of the flow in the Web UI.
const WebhooksSummary = "Deliver events to a webhook endpoint"

// Pauses and limits of webhook deliveries.
const (
	relayPause   = 2 * time.Second // between reads of the event log while there are endpoints
	relayRounds  = 240             // of one run
	hookRounds   = 200
	hookMinPause = time.Second
	hookTrouble  = 5 * time.Minute // after a permanent failure on our side
)

// hookTimeout is longer than a round of attempts can take.
const hookTimeout = 2 * time.Minute

// RelayEvents passes the event log to the webhook endpoints, and wakes their flows. A schedule starts it. While there is an
// active endpoint it continues as new runs on the newest build; otherwise it ends.
func RelayEvents(ctx workflow.Context) error {
	for n := 0; n < relayRounds && !workflow.GetInfo(ctx).GetContinueAsNewSuggested(); n++ {
		did, err := fetch(ctx, database, "Pass on the event log", relay.RelayEvents)
		if err != nil {
			return err // the schedule starts it again
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

// goOn continues as a new run on the newest build.
func goOn(ctx workflow.Context, flow string, in ...any) error {
	o := workflow.ContinueAsNewErrorOptions{InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade}
	return workflow.NewContinueAsNewErrorWithOptions(ctx, o, flow, in...)
}

// DeliverWebhooks sends the due deliveries of one endpoint, and ends when none is left. The database has the deliveries and
// their times; the flow waits for them. A slow endpoint delays only its own deliveries.
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
			workflow.GetLogger(ctx).Error("webhooks could not be sent; the flow tries again", "endpoint", f.in.EndpointID.String(), "error", err)
			describe(ctx, card{title: "Sending fails on our side; the flow tries again"})
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

// pause waits until the next attempt is due or a signal comes. If more deliveries are due after a round, it does not wait.
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
