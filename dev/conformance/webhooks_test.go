package conformance

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/webhook"
	"kivuko/worker"
)

// peer is a receiver that uses the library of the standard's authors.
type peer struct {
	url string
	out *bufio.Scanner
}

type received struct {
	Refused string
	Body    string
	Headers map[string]string
}

// startPeer starts a receiver that verifies with a secret.
func startPeer(t *testing.T, secret string) *peer {
	t.Helper()
	library := os.Getenv("KIVUKO_STANDARD_WEBHOOKS")
	if library == "" {
		t.Skip("the library of Standard Webhooks checks deliveries in `make conformance`, which fetches it")
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "receiver.cjs"), library)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends the process
		_ = cmd.Wait() // killed with the test's context, if it did not end
	})
	if _, err := io.WriteString(in, secret+"\n"); err != nil {
		t.Fatal(err)
	}
	p := &peer{out: bufio.NewScanner(out)}
	p.url = "http://127.0.0.1:" + p.line(t)
	return p
}

func (p *peer) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("the receiver ended: %v", p.out.Err())
	}
	return p.out.Text()
}

func (p *peer) got(t *testing.T) received {
	t.Helper()
	var r received
	if err := json.Unmarshal([]byte(p.line(t)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// again sends a received request once more, with a change.
func (p *peer) again(t *testing.T, r received, change func(http.Header, *string)) received {
	t.Helper()
	header, body := http.Header{}, r.Body
	for _, name := range []string{exchange.WebhookHeaderID, exchange.WebhookHeaderTimestamp, exchange.WebhookHeaderSignature} {
		header.Set(name, r.Headers[name])
	}
	change(header, &body)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return p.got(t)
}

func hookSecret(fill byte) string {
	return exchange.WebhookSecretPrefix + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, exchange.WebhookSecretBytes))
}

// TestConformanceWebhooks delivers events from the log to independent receivers. They accept our signatures, with the
// old key and the new one while both are valid, and refuse what was changed on the way.
func TestConformanceWebhooks(t *testing.T) {
	first, second := hookSecret(7), hookSecret(9)
	old, other := startPeer(t, first), startPeer(t, hookSecret(8))
	db := storetest.New(t)
	owner := storetest.User(t, db, exchange.RoleVendor)
	by := storetest.PrincipalOf(owner)
	view := store.ViewOf(by, exchange.ActWriteWebhooks)
	sealer, err := worker.NewWebhookSealer([]worker.Key{{ID: "k", Secret: bytes.Repeat([]byte{1}, worker.KeySize)}})
	if err != nil {
		t.Fatal(err)
	}
	e := exchange.WebhookEndpoint{ID: storetest.NewID(t), URL: old.url, EventTypes: []string{"order.*"}}
	key := func(secret string) exchange.WebhookKey {
		return sealer.SealWebhookSecret(exchange.WebhookKey{ID: storetest.NewID(t), EndpointID: e.ID}, secret)
	}
	if _, err := db.CreateWebhook(t.Context(), view, e, key(first), by); err != nil {
		t.Fatal(err)
	}
	hooks := &activities.Webhooks{Store: db, Opener: sealer, Sender: webhook.NewSender(webhook.Policy{Local: true}, nil), Now: time.Now}
	deliver := func(want int) {
		t.Helper()
		if _, err := db.TestWebhook(t.Context(), view, e.ID, by); err != nil {
			t.Fatal(err)
		}
		for n := 0; n == 0; time.Sleep(5 * time.Millisecond) { // other transactions of the server may delay the end of the log
			did, err := db.RelayEvents(t.Context(), store.MaxEvents)
			if err != nil || t.Context().Err() != nil {
				t.Fatal(err)
			}
			n = did.Deliveries
		}
		env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
		env.RegisterActivity(hooks)
		value, err := env.ExecuteActivity(hooks.DeliverWebhooks, activities.WebhookInput{EndpointID: e.ID})
		var sent activities.WebhooksSent
		if err != nil || value.Get(&sent) != nil || sent.Delivered != want || sent.Attempts != 1 {
			t.Fatalf("sent %+v, %v", sent, err)
		}
	}
	deliver(1)
	r := old.got(t)
	if r.Refused != "" || !strings.HasPrefix(r.Headers[exchange.WebhookHeaderID], "evt_") {
		t.Fatalf("received %+v", r)
	}
	for name, change := range map[string]func(http.Header, *string){
		"body": func(_ http.Header, body *string) { *body = strings.Replace(*body, "test", "tent", 1) },
		"id":   func(h http.Header, _ *string) { h.Set(exchange.WebhookHeaderID, "evt_1") },
		"time": func(h http.Header, _ *string) { h.Set(exchange.WebhookHeaderTimestamp, "1700000000") },
		"signature": func(h http.Header, _ *string) {
			h.Set(exchange.WebhookHeaderSignature, "v1,"+strings.Repeat("A", 43)+"=")
		},
	} {
		if again := old.again(t, r, change); again.Refused == "" {
			t.Errorf("a changed %s was accepted", name)
		}
	}
	if again := old.again(t, r, func(http.Header, *string) {}); again.Refused != "" {
		t.Errorf("the unchanged request was refused: %s", again.Refused)
	}
	if again := other.again(t, r, func(http.Header, *string) {}); again.Refused == "" {
		t.Error("a receiver with another secret accepted it")
	}
	if _, err := db.RotateWebhookKey(t.Context(), view, e.ID, key(second), by); err != nil {
		t.Fatal(err)
	}
	deliver(1)
	r = old.got(t)
	if r.Refused != "" || len(strings.Fields(r.Headers[exchange.WebhookHeaderSignature])) != 2 || len(strings.Fields(r.Headers[exchange.WebhookHeaderKeys])) != 2 {
		t.Errorf("with two keys it received %+v", r)
	}
	if again := startPeer(t, second).again(t, r, func(http.Header, *string) {}); again.Refused != "" {
		t.Errorf("the new secret refused: %s", again.Refused)
	}
}
