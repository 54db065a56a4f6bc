package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/webhook"
)

// Events go only to the public internet, in whatever form another address is written.
func TestWebhookAddresses(t *testing.T) {
	production, local := webhook.Policy{}, webhook.Policy{Local: true}
	for _, address := range []string{"https://hooks.example/x?y=1", "https://hooks.example:8443", "https://93.184.216.34/", "https://[2606:2800:220:1::1]/"} {
		if err := production.CheckURL(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{
		"http://hooks.example", "ftp://hooks.example", "hooks.example", "https://", "https:opaque", "https://user@hooks.example", "https://u:p@hooks.example",
		"https://hooks.example/#x", "https://hooks.example:0/", "https://hooks.example:99999/", "https://hööks.example", "https://hooks.example/a b",
		"https://localhost", "https://localhost.", "https://a.localhost", "https://intranet", "https://127.0.0.1", "https://127.1", "https://0x7f000001",
		"https://2130706433", "https://017700000001", "https://10.0.0.1", "https://172.16.3.4", "https://192.168.1.1", "https://169.254.169.254/latest/meta-data",
		"https://100.64.0.1", "https://0.0.0.0", "https://[::]", "https://[::1]", "https://[::ffff:127.0.0.1]", "https://[fe80::1]", "https://[fe80::1%25eth0]",
		"https://[fc00::1]", "https://[64:ff9b::7f00:1]", "https://[2002:7f00:1::]", "https://[2001::1]", "https://224.0.0.1", "https://255.255.255.255",
		"https://192.31.196.1", "https://192.52.193.1", "https://192.175.48.1", "https://[2620:4f:8000::1]",
	} {
		if err := production.CheckURL(address); exchange.CodeOf(err) != exchange.CodeInvalid {
			t.Errorf("%s: %v", address, err)
		}
	}
	for address, pass := range map[string]bool{"http://127.0.0.1:8080": true, "http://localhost:1": true, "http://10.1.2.3": true, "http://169.254.169.254": false, "http://[fe80::1]": false} {
		if err := local.CheckURL(address); (err == nil) != pass {
			t.Errorf("on a developer's machine %s: %v", address, err)
		}
	}
	if production.Allows(netip.Addr{}) {
		t.Error("no address passes")
	}
}

// receiver is an https server on this machine, and a sender that trusts its certificate.
func receiver(t *testing.T, p webhook.Policy, h http.HandlerFunc) (*webhook.Sender, string) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return webhook.NewSender(p, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}), s.URL
}

func send(t *testing.T, s *webhook.Sender, address string) (int, string) {
	t.Helper()
	return s.Send(t.Context(), exchange.WebhookMessage{URL: address, ID: "evt_1", At: time.Unix(1, 0), Signature: "v1,x", Keys: "k", Body: []byte("{}")})
}

// A name that passes when it is written may resolve to this machine when it is dialled: the connection is refused.
func TestWebhooksCheckWhatANameResolvesTo(t *testing.T) {
	asked := false
	sender, address := receiver(t, webhook.Policy{}, func(http.ResponseWriter, *http.Request) { asked = true })
	_, port, _ := strings.Cut(strings.TrimPrefix(address, "https://"), ":")
	resolver := webhook.WithResolved(sender, "127.0.0.1:"+port)
	if status, failure := send(t, resolver, "https://hooks.example:"+port+"/"); status != 0 || failure != exchange.WebhookErrBlocked || asked {
		t.Errorf("answered %d %s, asked %v", status, failure, asked)
	}
	if status, failure := send(t, sender, address); status != 0 || failure != exchange.WebhookErrBlocked || asked {
		t.Errorf("by number: %d %s, asked %v", status, failure, asked)
	}
}

func TestWebhookOutcomes(t *testing.T) {
	var hits []string
	const flood = 256 << 20
	flooded := make(chan error, 1)
	sender, address := receiver(t, webhook.Policy{Local: true}, func(w http.ResponseWriter, r *http.Request) {
		hits = append(hits, r.URL.Path)
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect)
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/flood":
			_, err := io.CopyN(w, endless{}, flood)
			flooded <- err
		case "/hang":
			panic(http.ErrAbortHandler)
		}
	})
	for path, want := range map[string]struct {
		status  int
		failure string
	}{"/ok": {200, ""}, "/moved": {307, exchange.WebhookErrStatus}, "/gone": {410, exchange.WebhookErrStatus}, "/flood": {200, ""}, "/hang": {0, exchange.WebhookErrConnect}} {
		hits = nil
		if status, failure := send(t, sender, address+path); status != want.status || failure != want.failure || len(hits) != 1 {
			t.Errorf("%s: %d %q, asked for %v", path, status, failure, hits)
		}
	}
	if err := <-flooded; err == nil {
		t.Error("an answer was read to its end, however long it is")
	}
	stranger := webhook.NewSender(webhook.Policy{Local: true}, nil)
	if _, failure := send(t, stranger, address); failure != exchange.WebhookErrTLS {
		t.Errorf("an untrusted certificate: %s", failure)
	}
}

// endless is a body that does not end by itself.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// shelf holds one delivery.
type shelf struct {
	claim   exchange.WebhookClaim
	results []exchange.WebhookResult
	lost    error
}

func (s *shelf) ClaimWebhooks(context.Context, uuid.UUID, int, time.Duration) (exchange.WebhookClaim, error) {
	return s.claim, nil
}

func (s *shelf) RecordWebhook(_ context.Context, r exchange.WebhookResult) error {
	s.results = append(s.results, r)
	return s.lost
}

func (s *shelf) NextWebhook(context.Context, uuid.UUID) (time.Time, error) { return time.Time{}, nil }

// plain opens what is not sealed.
type plain struct{}

func (plain) OpenWebhookSecret(k exchange.WebhookKey) (string, error) {
	if len(k.Sealed) == 0 {
		return "", errors.New("no secret")
	}
	return string(k.Sealed), nil
}

func TestDeliverWebhooksSignsWithEveryKey(t *testing.T) {
	var got http.Header
	var body []byte
	sender, address := receiver(t, webhook.Policy{Local: true}, func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header
		body, _ = io.ReadAll(r.Body)
	})
	one, two := uuid.New(), uuid.New()
	first, second := "whsec_"+strings.Repeat("A", 32), "whsec_"+strings.Repeat("B", 32)
	event := exchange.Event{Cursor: 77, ObjectType: "order", ObjectID: uuid.New(), Sequence: 3, Type: "order.completed", Payload: []byte(`{"id":"x"}`), At: time.Unix(1_700_000_000, 0)}
	large := event
	large.Payload = []byte(`"` + strings.Repeat("x", exchange.MaxWebhookBody) + `"`)
	s := &shelf{claim: exchange.WebhookClaim{
		URL: address, Keys: []exchange.WebhookKey{{ID: one, Sealed: []byte(first)}, {ID: two, Sealed: []byte(second)}},
		Deliveries: []exchange.WebhookDelivery{{ID: uuid.New(), Attempts: 4, Event: event}, {ID: uuid.New(), Attempts: 1, Event: large}},
	}}
	now := time.Unix(1_700_000_100, 0)
	hooks := &activities.Webhooks{Store: s, Opener: plain{}, Sender: sender, Now: func() time.Time { return now }}
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(hooks)
	if _, err := env.ExecuteActivity(hooks.DeliverWebhooks, activities.WebhookInput{EndpointID: uuid.New()}); err != nil {
		t.Fatal(err)
	}
	want, err := exchange.SignWebhook("evt_77", now, body, []string{first, second})
	if err != nil || got.Get("webhook-signature") != want || len(strings.Fields(want)) != 2 || got.Get("webhook-id") != "evt_77" ||
		got.Get("webhook-timestamp") != "1700000100" || got.Get("kivuko-webhook-key-id") != one.String()+" "+two.String() {
		t.Errorf("headers %v, %v", got, err)
	}
	if len(s.results) != 2 || s.results[0].Attempt != 4 || s.results[0].Error != "" || s.results[1].Error != exchange.WebhookErrSize {
		t.Errorf("recorded %+v", s.results)
	}
	if !strings.Contains(string(body), `"type":"order.completed"`) || !strings.Contains(string(body), `"sequence":3`) {
		t.Errorf("sent %s", body)
	}
}
