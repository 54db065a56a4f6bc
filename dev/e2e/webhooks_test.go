package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	api "kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/workflows"
)

// posted is a request that arrived at a receiver.
type posted struct {
	id, at, signature string
	body              string
	came              time.Time
}

// receiver accepts webhooks as an owner's server does, and rejects them while it is set down.
type receiver struct {
	server *httptest.Server

	mu     sync.Mutex
	down   bool
	all    []posted
	turned int // away, while it was down
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.server = httptest.NewServer(http.HandlerFunc(r.take))
	return r
}

func (r *receiver) take(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, exchange.MaxWebhookBody))
	if err != nil {
		return // the sender retries after a broken connection
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		r.turned++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	h := req.Header
	r.all = append(r.all, posted{h.Get("webhook-id"), h.Get("webhook-timestamp"), h.Get("webhook-signature"), string(body), time.Now()})
}

func (r *receiver) setDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// took returns the requests that were accepted so far, and how many were rejected.
func (r *receiver) took() ([]posted, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]posted(nil), r.all...), r.turned
}

// tookAbout returns the accepted requests about an object. Other orders may end meanwhile, also one of the receiver's owner.
func (r *receiver) tookAbout(id uuid.UUID) []posted {
	all, _ := r.took()
	return slices.DeleteFunc(all, func(p posted) bool { return !strings.Contains(p.body, id.String()) })
}

// verify checks a request as the standard says, without the product's code.
func (p posted) verify(t *testing.T, secret string) {
	t.Helper()
	const tolerance = 5 * time.Minute // as in the standard's libraries
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 {
		t.Fatalf("the secret can't be read: %v", err)
	}
	seconds, err := strconv.ParseInt(p.at, 10, 64)
	if err != nil || p.came.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		t.Errorf("%s, which arrived at %s, was sent at %q: %v", p.id, p.came, p.at, err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(p.id + "." + p.at + "." + p.body))
	want := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, s := range strings.Fields(p.signature) {
		if version, got, _ := strings.Cut(s, ","); version == "v1" && hmac.Equal([]byte(got), []byte(want)) {
			return
		}
	}
	t.Errorf("%s has the signatures %q, none of which fits", p.id, p.signature)
}

// endpoint is a webhook endpoint as the API returns it.
type endpoint struct {
	ID     uuid.UUID `json:"id"`
	Secret string    `json:"secret"`
}

const endpointPath = "/api/v1/auth/webhook-endpoints"

// hook makes an endpoint of the client's account, and starts the relay.
func (w *harness) hook(t *testing.T, c *api.Client, r *receiver, types ...string) endpoint {
	t.Helper()
	var e endpoint
	in := map[string]any{"url": r.server.URL + "/hooks", "event_types": types, "description": t.Name()[:min(len(t.Name()), 100)]}
	if err := c.Post(t.Context(), endpointPath, "", in, &e); err != nil {
		t.Fatal(err)
	}
	w.relayOn(t)
	return e
}

// unhook removes an endpoint.
func (w *harness) unhook(t *testing.T, c *api.Client, e endpoint) {
	t.Helper()
	if err := c.Do(context.WithoutCancel(t.Context()), http.MethodDelete, endpointPath+"/"+e.ID.String(), "", nil, nil); err != nil {
		t.Error(err)
	}
}

// relayOn starts the relay now instead of at the next minute.
func (w *harness) relayOn(t *testing.T) {
	t.Helper()
	if err := w.temporal.ScheduleClient().GetHandle(t.Context(), "relay-events").Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
}

// delivery is the delivery of an event to an endpoint, as the API returns it.
type delivery struct {
	ID         uuid.UUID `json:"id"`
	WebhookID  string    `json:"webhook_id"`
	Type       string    `json:"event_type"`
	ObjectID   uuid.UUID `json:"object_id"`
	Status     string    `json:"status"`
	Attempts   int       `json:"attempts"`
	LastStatus *int      `json:"last_response_status"`
}

func deliveries(t *testing.T, c *api.Client, e endpoint) ([]delivery, error) {
	t.Helper()
	var out struct {
		All []delivery `json:"webhook_deliveries"`
	}
	return out.All, c.Get(t.Context(), "/api/v1/auth/webhook-deliveries?endpoint_id="+e.ID.String(), &out)
}

// deliveryIs waits until the endpoint's only delivery satisfies a condition.
func (w *harness) deliveryIs(t *testing.T, c *api.Client, e endpoint, what string, limit time.Duration, is func(delivery) bool) delivery {
	t.Helper()
	var d delivery
	err := await(t.Context(), limit, func() error {
		all, err := deliveries(t, c, e)
		switch {
		case err != nil:
			return err
		case len(all) != 1:
			return fmt.Errorf("there are %d", len(all))
		case !is(all[0]):
			return fmt.Errorf("it is %+v", all[0])
		}
		d = all[0]
		return nil
	})
	if err != nil {
		t.Fatalf("the delivery to %s should be %s: %v", e.ID, what, err)
	}
	return d
}

func delivered(d delivery) bool { return d.Status == "delivered" }

// TestWebhooks has the running stack deliver events to receivers: signed so that the standard's check accepts them,
// once while nothing fails, and under one id after the receiver was down.
func TestWebhooks(t *testing.T) {
	w := openBeside(t)
	t.Run("the end of an order is delivered", func(t *testing.T) { w.deliveredOnce(t) })
	t.Run("a receiver that was down gets its events when it is up", func(t *testing.T) { w.deliveredLater(t) })
}

// deliveredOnce notifies a house and a merchant of an order, but not a customer who is no party to it.
func (w *harness) deliveredOnce(t *testing.T) {
	house, vendor, stranger := newReceiver(t), newReceiver(t), newReceiver(t)
	all := map[*receiver]*api.Client{house: w.admin(t), vendor: w.as(t, demo.VendorEmail), stranger: w.as(t, demo.ThirdEmail)}
	secrets := map[*receiver]string{}
	for r, c := range all {
		t.Cleanup(r.server.Close)
		e := w.hook(t, c, r, "order.completed")
		t.Cleanup(func() { w.unhook(t, c, e) })
		secrets[r] = e.Secret
	}
	o := w.ends(t, w.buy(t, purchase{crypto: "5"}).ID, "completed", "")
	var cursor int64
	const read = `SELECT cursor FROM events WHERE object_id = $1 AND type = 'order.completed'`
	if err := w.db.QueryRowContext(t.Context(), read, o.ID).Scan(&cursor); err != nil {
		t.Fatal(err)
	}
	want := "evt_" + strconv.FormatInt(cursor, 10)
	for _, r := range []*receiver{house, vendor} {
		var got []posted
		eventually(t, "the order's end is delivered", func() error {
			if got = r.tookAbout(o.ID); len(got) == 0 {
				return errors.New("it is not")
			}
			return nil
		})
		if len(got) != 1 || got[0].id != want {
			t.Errorf("the receiver got %+v, not %s once", got, want)
		}
		got[0].verify(t, secrets[r])
	}
	if got := stranger.tookAbout(o.ID); len(got) != 0 {
		t.Errorf("a customer who is no party to the order was notified: %+v", got)
	}
}

// deliveredLater has a receiver reject the first attempt.
func (w *harness) deliveredLater(t *testing.T) {
	r, c := newReceiver(t), w.admin(t)
	t.Cleanup(r.server.Close)
	r.setDown(true)
	e := w.hook(t, c, r, exchange.WebhookTest)
	t.Cleanup(func() { w.unhook(t, c, e) })
	w.testHook(t, c, e)
	waiting := w.deliveryIs(t, c, e, "turned away", timeout, func(d delivery) bool { return d.LastStatus != nil })
	if waiting.Status != "pending" || *waiting.LastStatus != http.StatusServiceUnavailable {
		t.Errorf("a delivery that was rejected is %+v", waiting)
	}
	r.setDown(false)
	done := w.deliveryIs(t, c, e, "delivered", timeout, delivered)
	got, turned := r.took()
	if turned == 0 || done.Attempts != turned+1 || len(got) != 1 || got[0].id != waiting.WebhookID || got[0].id != done.WebhookID {
		t.Errorf("after %d attempts, %d of them rejected, %+v was accepted as %+v", done.Attempts, turned, got, done)
	}
	got[0].verify(t, e.Secret)
}

// testHook makes a test event for one endpoint.
func (w *harness) testHook(t *testing.T, c *api.Client, e endpoint) {
	t.Helper()
	if err := c.Post(t.Context(), endpointPath+"/"+e.ID.String()+"/test", uuid.NewString(), nil, nil); err != nil {
		t.Fatal(err)
	}
}

// webhookScenario delivers an event to a receiver.
type webhookScenario struct {
	of    string // the endpoint's account; each account may have a few endpoints only
	times int    // how often the receiver gets the request, before and after the crash
	// patient leaves it to Temporal to detect the crash, which takes as long as a round of requests may.
	patient bool

	r *receiver
	e endpoint
}

// hookRows are the trials with webhooks. A crash between the request and the storing of its response loses the
// response, so the receiver gets the request again, under the same id.
func hookRows() []row {
	made := func(b webhookScenario) func() scenario { return func() scenario { one := b; return &one } }
	relayed, once := made(webhookScenario{of: demo.VendorEmail, times: 1}), made(webhookScenario{of: demo.ExhaustedVendorEmail, times: 1})
	twice := made(webhookScenario{of: demo.ExhaustedVendorEmail, times: 2})
	return []row{
		{"RelayEvents/*/*", "flows", relayed},
		{"DeliverWebhooks/*/*", "webhooks", once},
		{"DeliverWebhooks/call#1/after", "webhooks", twice},
		{"DeliverWebhooks/RecordWebhook#1/before", "webhooks", twice},
		// Last, because Temporal detects this crash late: its retry would hit the crash point of a later trial.
		{"DeliverWebhooks/ClaimWebhooks#1/after", "webhooks", made(webhookScenario{of: demo.ExhaustedVendorEmail, times: 1, patient: true})},
	}
}

func (b *webhookScenario) play(t *testing.T, w *harness, _ *trial, arm func()) {
	t.Helper()
	who := w.as(t, b.of)
	b.r = newReceiver(t)
	b.e = w.hook(t, who, b.r, exchange.WebhookTest)
	eventually(t, "the relay is at work", func() error {
		_, err := w.running(t, workflows.TypeRelayEvents)
		return err
	})
	arm()
	w.testHook(t, who, b.e)
}

// restarted makes the relay continue at once. Where another trial follows it waits for the delivery, which lasts until the
// dead process's lease is over: while it is under way it would hit the next trial's crash point.
func (b *webhookScenario) restarted(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	if b.patient {
		return
	}
	if tr.worker == workflows.QueueWebhooks {
		w.hasten(t, workflows.WebhooksID(b.e.ID))
	} else if relay, err := w.running(t, workflows.TypeRelayEvents); err == nil {
		w.hasten(t, relay)
	}
	if tr.last {
		return
	}
	w.deliveryIs(t, w.as(t, b.of), b.e, "delivered", recovery, delivered)
}

// judge checks that the event arrived at least once, always under one id and with one body.
func (b *webhookScenario) judge(t *testing.T, w *harness, _ *trial) {
	t.Helper()
	defer b.r.server.Close()
	who := w.as(t, b.of) // the login that made the endpoint may have expired
	d := w.deliveryIs(t, who, b.e, "delivered", recovery, delivered)
	defer w.unhook(t, who, b.e)
	got, _ := b.r.took()
	if len(got) != b.times {
		t.Errorf("the receiver got %d requests, not %d", len(got), b.times)
	}
	for _, p := range got {
		if p.id != d.WebhookID || p.body != got[0].body {
			t.Errorf("%s arrived as %+v and %+v", d.WebhookID, got[0], p)
		}
		p.verify(t, b.e.Secret)
	}
}
