package activities

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// RelayStore hands the event log to the endpoints.
type RelayStore interface {
	// RelayEvents hands on at most limit events. More says that there may be others, Wanted that there is an
	// active endpoint.
	RelayEvents(ctx context.Context, limit int) (RelayedEvents, error)
	// WebhooksToWake lists endpoints with deliveries of which their flow was not told, and those deliveries.
	WebhooksToWake(ctx context.Context, limit int) (map[uuid.UUID][]uuid.UUID, error)
	WebhooksWoken(ctx context.Context, deliveries []uuid.UUID) error
}

// WebhookWaker wakes the flow of an endpoint, or starts it.
type WebhookWaker interface {
	WakeWebhooks(ctx context.Context, endpoint uuid.UUID) error
}

// Relay reads the event log. It talks to our own database and to Temporal alone.
type Relay struct {
	Store RelayStore
	Waker WebhookWaker
}

// Steps of the relay.
const (
	relayBatch = 500 // events of one step
	wakeBatch  = 200 // deliveries of which flows are told in one step
)

// RelayedEvents is what a step of the relay did.
type RelayedEvents struct {
	Events     int  `json:"events"`
	Deliveries int  `json:"deliveries"`
	Woken      int  `json:"woken"`
	More       bool `json:"more,omitempty"`
	Wanted     bool `json:"wanted"`
}

// RelayEvents hands a batch of the event log to the endpoints, and wakes their flows. A flow is woken before it
// is written that it was: told twice, it looks once more and finds nothing.
func (r *Relay) RelayEvents(ctx context.Context) (RelayedEvents, error) {
	out, err := r.Store.RelayEvents(ctx, relayBatch)
	if err != nil {
		return out, Failure(ctx, err)
	}
	due, err := r.Store.WebhooksToWake(ctx, wakeBatch)
	if err != nil {
		return out, Failure(ctx, err)
	}
	told := 0
	for endpoint, deliveries := range due {
		if err := r.Waker.WakeWebhooks(ctx, endpoint); err != nil {
			return out, Failure(ctx, exchange.Wrap(exchange.CodeUnavailable, err, "The flow of a webhook endpoint could not be woken."))
		}
		if err := r.Store.WebhooksWoken(ctx, deliveries); err != nil {
			return out, Failure(ctx, err)
		}
		out.Woken++
		told += len(deliveries)
	}
	out.More = out.Events == relayBatch || told >= wakeBatch
	return out, nil
}

// WebhookStore holds the deliveries.
type WebhookStore interface {
	// ClaimWebhooks takes deliveries that are due, for one attempt each and for nobody else until the lease ends.
	ClaimWebhooks(ctx context.Context, endpoint uuid.UUID, limit int, lease time.Duration) (exchange.WebhookClaim, error)
	// RecordWebhook writes what came of an attempt; what comes after another claim changes nothing.
	RecordWebhook(ctx context.Context, r exchange.WebhookResult) error
	// NextWebhook is when a delivery is due next; zero when none waits.
	NextWebhook(ctx context.Context, endpoint uuid.UUID) (time.Time, error)
}

// WebhookOpener opens sealed secrets.
type WebhookOpener interface {
	OpenWebhookSecret(k exchange.WebhookKey) (string, error)
}

// Webhooks sends events to addresses that others named. It is on a queue of its own: what it talks to is
// slow, down or hostile, and must not take the places of money's work.
type Webhooks struct {
	Store  WebhookStore
	Opener WebhookOpener
	Sender *WebhookSender
	Now    func() time.Time
}

// WebhookInput names an endpoint.
type WebhookInput struct {
	EndpointID uuid.UUID `json:"endpoint_id"`
}

// WebhooksSent is what a round of deliveries did. Next is when to look again; zero when none waits.
type WebhooksSent struct {
	Attempts  int       `json:"attempts"`
	Delivered int       `json:"delivered"`
	Next      time.Time `json:"next"`
}

// A round sends to one address at most webhookBatch deliveries, at the same moment. The lease is longer than an
// attempt can take, so that no other worker makes the same attempt meanwhile.
const (
	webhookBatch   = 20
	webhookTimeout = 15 * time.Second
	webhookLease   = time.Minute
)

// DeliverWebhooks makes one attempt of each delivery of an endpoint that is due. A worker that dies leaves
// attempts that are made again when the lease is over: what is delivered may be delivered twice, under one id.
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

// send makes the attempts of a claim at the same moment. When the worker stops, what has no answer yet is left
// to the lease.
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
		if results[i].Error != webhookStopped {
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
	r.Status, r.Error = w.Sender.Send(ctx, WebhookMessage{URL: url, ID: id, At: at, Signature: signature, Keys: keys, Body: body})
	r.Gone = r.Status == statusGone
	return r, nil
}
