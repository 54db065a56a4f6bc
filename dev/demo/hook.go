package demo

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/exchange"
)

const (
	hooksPath    = "/api/v1/auth/webhook-endpoints"
	hookOfDemo   = "the demo's server"
	hookTimeout  = 10 * time.Second
	hookRunsDown = 5 * time.Second
)

// hook is a merchant's own server, which takes the merchant's webhooks while the demo plays.
type hook struct {
	owner  *client.Client
	id     uuid.UUID
	server *http.Server
	url    string

	mu     sync.Mutex
	secret string
	seen   map[string]bool        // by their webhook-id: a webhook may come twice
	came   map[uuid.UUID][]string // the types of events, by object, in their order
	wrong  error
}

// listen starts the server of a merchant, and has the merchant's events of some types sent to it. Endpoints of earlier runs, which ended
// without deleting theirs, are deleted.
func listen(ctx context.Context, owner *client.Client, types ...string) (*hook, error) {
	var have struct {
		Endpoints []struct {
			ID          uuid.UUID `json:"id"`
			Description string    `json:"description"`
		} `json:"webhook_endpoints"`
	}
	if err := owner.Get(ctx, hooksPath+"?page_id=1&page_size=100", &have); err != nil {
		return nil, err
	}
	for _, e := range have.Endpoints {
		if e.Description == hookOfDemo {
			if err := owner.Do(ctx, http.MethodDelete, hooksPath+"/"+e.ID.String(), "", nil, nil); err != nil {
				return nil, err
			}
		}
	}
	lines, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &hook{owner: owner, seen: map[string]bool{}, came: map[uuid.UUID][]string{}, url: "http://" + lines.Addr().String() + "/kivuko"}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: hookTimeout}
	go func() { _ = h.server.Serve(lines) }() // until close
	var made struct {
		ID     uuid.UUID `json:"id"`
		Secret string    `json:"secret"`
	}
	in := map[string]any{"url": h.url, "event_types": types, "description": hookOfDemo}
	if err := owner.Post(ctx, hooksPath, "", in, &made); err != nil {
		return nil, errors.Join(fmt.Errorf("the webhook endpoint: %w", err), h.server.Close())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.id, h.secret = made.ID, made.Secret
	return h, nil
}

// close deletes the endpoint, also when the demo ends early, and stops the server.
func (h *hook) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookRunsDown)
	defer cancel()
	err := h.owner.Do(ctx, http.MethodDelete, hooksPath+"/"+h.id.String(), "", nil, nil)
	return errors.Join(err, h.server.Shutdown(ctx))
}

// ServeHTTP takes a webhook whose signature is right.
func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, exchange.MaxWebhookBody))
	if err != nil {
		return // it is sent again
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.secret == "" {
		w.WriteHeader(http.StatusServiceUnavailable) // what the secret is comes with the endpoint
		return
	}
	var event struct {
		Type string `json:"type"`
		Data struct {
			ObjectID uuid.UUID `json:"object_id"`
		} `json:"data"`
	}
	if err = h.signed(r.Header, body); err == nil {
		err = json.Unmarshal(body, &event)
	}
	if err != nil {
		h.wrong = err
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if id := r.Header.Get("webhook-id"); !h.seen[id] {
		h.seen[id] = true
		h.came[event.Data.ObjectID] = append(h.came[event.Data.ObjectID], event.Type)
	}
}

// signed checks a webhook as Standard Webhooks says.
func (h *hook) signed(head http.Header, body []byte) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h.secret, "whsec_"))
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", head.Get("webhook-id"), head.Get("webhook-timestamp"), body) // a hash takes everything
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for one := range strings.FieldsSeq(head.Get("webhook-signature")) {
		if hmac.Equal([]byte(one), []byte(want)) {
			return nil
		}
	}
	return fmt.Errorf("the webhook %s has another signature", head.Get("webhook-id"))
}

// about returns the types of the events about an object that have come, and waits for the last of them.
func (h *hook) about(ctx context.Context, object uuid.UUID, last string) ([]string, error) {
	for {
		h.mu.Lock()
		came, err := append([]string{}, h.came[object]...), h.wrong
		h.mu.Unlock()
		if err != nil || len(came) > 0 && came[len(came)-1] == last {
			return came, err
		}
		if pause(ctx) != nil {
			return came, fmt.Errorf("the webhook %s has not come, only %v: %w", last, came, ctx.Err())
		}
	}
}
