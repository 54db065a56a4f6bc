package activities

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// RelayStore passes the event log to the endpoints.
type RelayStore interface {
	// RelayEvents passes on at most limit events. More is set when there may be others, Wanted when there is an active
	// endpoint.
	RelayEvents(ctx context.Context, limit int) (exchange.RelayedEvents, error)
	// WebhooksToWake lists endpoints with deliveries about which their flow was not notified, and those deliveries.
	WebhooksToWake(ctx context.Context, limit int) (map[uuid.UUID][]uuid.UUID, error)
	WebhooksWoken(ctx context.Context, deliveries []uuid.UUID) error
}

// WebhookWaker wakes the flow of an endpoint, or starts it.
type WebhookWaker interface {
	WakeWebhooks(ctx context.Context, endpoint uuid.UUID) error
}

// Relay reads the event log. It calls only our own database and Temporal.
type Relay struct {
	Store RelayStore
	Waker WebhookWaker
}

// Steps of the relay.
const (
	relayBatch = 500 // events of one step
	wakeBatch  = 200 // deliveries about which flows are notified in one step
)

// RelayedEvents is the result of a step of the relay.
type RelayedEvents struct {
	Events     int  `json:"events"`
	Deliveries int  `json:"deliveries"`
	Woken      int  `json:"woken"`
	More       bool `json:"more,omitempty"`
	Wanted     bool `json:"wanted"`
}

// RelayEvents passes a batch of the event log to the endpoints, and wakes their flows. A flow is woken before that is
// recorded: woken twice, it only checks once more.
func (r *Relay) RelayEvents(ctx context.Context) (RelayedEvents, error) {
	made, err := r.Store.RelayEvents(ctx, relayBatch)
	out := RelayedEvents{Events: made.Events, Deliveries: made.Deliveries, Wanted: made.Wanted}
	if err != nil {
		return out, Failure(ctx, err)
	}
	due, err := r.Store.WebhooksToWake(ctx, wakeBatch)
	if err != nil {
		return out, Failure(ctx, err)
	}
	notified := 0
	for endpoint, deliveries := range due {
		if err := r.Waker.WakeWebhooks(ctx, endpoint); err != nil {
			return out, Failure(ctx, exchange.Wrap(exchange.CodeUnavailable, err, "The flow of a webhook endpoint could not be woken."))
		}
		if err := r.Store.WebhooksWoken(ctx, deliveries); err != nil {
			return out, Failure(ctx, err)
		}
		out.Woken++
		notified += len(deliveries)
	}
	out.More = out.Events == relayBatch || notified >= wakeBatch
	return out, nil
}

// WebhookStore holds the deliveries.
type WebhookStore interface {
	// ClaimWebhooks leases due deliveries for one attempt each; no other worker gets them until the lease ends.
	ClaimWebhooks(ctx context.Context, endpoint uuid.UUID, limit int, lease time.Duration) (exchange.WebhookClaim, error)
	// RecordWebhook records the result of an attempt; after another claim it changes nothing.
	RecordWebhook(ctx context.Context, r exchange.WebhookResult) error
	// NextWebhook returns when the next delivery is due; zero when none waits.
	NextWebhook(ctx context.Context, endpoint uuid.UUID) (time.Time, error)
}

// WebhookOpener opens sealed secrets.
type WebhookOpener interface {
	OpenWebhookSecret(k exchange.WebhookKey) (string, error)
}

// WebhookSender makes one attempt. Neither a status nor a failure means that the context ended before there was an answer.
type WebhookSender interface {
	Send(ctx context.Context, m exchange.WebhookMessage) (status int, failure string)
}

// Webhooks sends events to addresses that users set. It has a queue of its own, because receivers may be slow, down or
// hostile and must not delay work on money.
type Webhooks struct {
	Store  WebhookStore
	Opener WebhookOpener
	Sender WebhookSender
	Now    func() time.Time
}

// WebhookInput names an endpoint.
type WebhookInput struct {
	EndpointID uuid.UUID `json:"endpoint_id"`
}

// WebhooksSent is the result of a round of deliveries. Next is when to check again; zero when none waits.
type WebhooksSent struct {
	Attempts  int       `json:"attempts"`
	Delivered int       `json:"delivered"`
	Next      time.Time `json:"next"`
}

// A round sends at most webhookBatch deliveries to one address at once. The lease is longer than an attempt can take, so that
// no other worker makes the same attempt meanwhile.
const (
	webhookBatch   = 20
	webhookTimeout = 15 * time.Second
	webhookLease   = time.Minute
)

// DeliverWebhooks makes one attempt of each due delivery of an endpoint. After a crash the attempts are repeated when the
// lease is over, so a message may be delivered twice, under one id.
func (w *Webhooks) DeliverWebhooks(ctx context.Context, in WebhookInput) (WebhooksSent, error) {
	claim, err := w.Store.ClaimWebhooks(ctx, in.EndpointID, webhookBatch, webhookLease)
	if err != nil {
		return WebhooksSent{}, Failure(ctx, err)
	}
	out := WebhooksSent{Attempts: len(claim.Deliveries)}
	if len(claim.Deliveries) > 0 {
		results, err := w.send(ctx, claim)
		if err != nil {
			return out, Failure(ctx, err)
		}
		for _, r := range results {
			if err := w.Store.RecordWebhook(ctx, r); err != nil {
				return out, Failure(ctx, err)
			}
			if r.Error == "" {
				out.Delivered++
			}
			activity.GetMetricsHandler(ctx).WithTags(map[string]string{"outcome": outcomeOf(r)}).Counter("kivuko_webhook_attempts").Inc(1)
		}
	}
	out.Next, err = w.Store.NextWebhook(ctx, in.EndpointID)
	return out, Failure(ctx, err)
}

func outcomeOf(r exchange.WebhookResult) string {
	if r.Error == "" {
		return "delivered"
	}
	return r.Error
}

// send makes the attempts of a claim at once. When the worker stops, attempts without an answer wait for the end of the
// lease.
func (w *Webhooks) send(ctx context.Context, claim exchange.WebhookClaim) ([]exchange.WebhookResult, error) {
	names, secrets := make([]string, len(claim.Keys)), make([]string, len(claim.Keys))
	for i, k := range claim.Keys {
		var err error
		if secrets[i], err = w.Opener.OpenWebhookSecret(k); err != nil {
			return nil, err
		}
		names[i] = k.ID.String()
	}
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	results := make([]exchange.WebhookResult, len(claim.Deliveries))
	failed := make([]error, len(claim.Deliveries))
	var attempts sync.WaitGroup
	for i, d := range claim.Deliveries {
		attempts.Go(func() {
			results[i], failed[i] = w.attempt(ctx, claim.URL, d, strings.Join(names, " "), secrets)
		})
	}
	attempts.Wait()
	var made []exchange.WebhookResult
	for i, err := range failed {
		if err != nil {
			return nil, err
		}
		if results[i].Status != 0 || results[i].Error != "" { // else the worker had to stop
			made = append(made, results[i])
		}
	}
	return made, nil
}

// attempt sends one delivery.
func (w *Webhooks) attempt(ctx context.Context, url string, d exchange.WebhookDelivery, keys string, secrets []string) (exchange.WebhookResult, error) {
	r := exchange.WebhookResult{DeliveryID: d.ID, Attempt: d.Attempts}
	body, err := exchange.WebhookBody(d.Event)
	if err != nil {
		return r, exchange.Wrap(exchange.CodeInternal, err, "An event can't be written as JSON.")
	}
	if len(body) > exchange.MaxWebhookBody {
		r.Error = exchange.WebhookErrSize
		return r, nil
	}
	at, id := w.Now(), exchange.WebhookID(d.Event.Cursor)
	signature, err := exchange.SignWebhook(id, at, body, secrets)
	if err != nil {
		return r, err
	}
	r.Status, r.Error = w.Sender.Send(ctx, exchange.WebhookMessage{URL: url, ID: id, At: at, Signature: signature, Keys: keys, Body: body})
	r.Gone = r.Status == http.StatusGone
	return r, nil
}
