package api

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/webhook"
)

const (
	webhooksPath   = "/api/v1/auth/webhook-endpoints"
	deliveriesPath = "/api/v1/auth/webhook-deliveries"
)

// testWebhooks seals a secret by reversing it, which is enough to see that the plain text is not stored.
func testWebhooks() *Webhooks {
	return &Webhooks{
		CheckURL: webhook.Policy{}.CheckURL,
		Seal: func(k exchange.WebhookKey, secret string) exchange.WebhookKey {
			k.MasterKey, k.Sealed = "test", []byte(secret)
			for i := range k.Sealed {
				k.Sealed[i] ^= 0xff
			}
			return k
		},
	}
}

func (e *env) webhook(p person, body map[string]any) *reply {
	e.t.Helper()
	if body["url"] == nil {
		body["url"] = fmt.Sprintf("https://hooks.example/%d", people.Add(1))
	}
	return e.do(post, webhooksPath, body, p.auth())
}

// webhookOf adds an endpoint directly to the store, because the matrix would reach the limit of endpoints.
func (e *env) webhookOf(p person) uuid.UUID {
	e.t.Helper()
	v := store.ViewOf(principalOf(p), exchange.ActWriteWebhooks)
	if v.Scope == exchange.ScopeNone {
		return newID()
	}
	all, _, err := e.store.Webhooks(e.t.Context(), v, "", store.Page{Number: 1, Size: store.MaxPageSize})
	if err != nil {
		e.t.Fatal(err)
	}
	if len(all) >= exchange.MaxWebhookEndpoints {
		if err := e.store.DeleteWebhook(e.t.Context(), v, all[0].ID, principalOf(p)); err != nil {
			e.t.Fatal(err)
		}
	}
	id := newID()
	_, err = e.store.CreateWebhook(e.t.Context(), v, exchange.WebhookEndpoint{ID: id, URL: "https://hooks.example/" + id.String()},
		testWebhooks().Seal(exchange.WebhookKey{ID: newID(), EndpointID: id}, "whsec_"+strings.Repeat("A", 32)), principalOf(p))
	if err != nil {
		e.t.Fatal(err)
	}
	return id
}

// webhookID is an endpoint of the caller's side, or of another account.
func (s scene) webhookID() uuid.UUID {
	owner := s.customer()
	switch {
	case s.own && s.who.Role == exchange.RoleAdmin:
		owner = s.who
	case s.who.Role.Merchant():
		owner = s.merchant()
	}
	return s.w.webhookOf(owner)
}

// deliveryID is a delivery to such an endpoint.
func (s scene) deliveryID() uuid.UUID {
	s.w.t.Helper()
	endpoint := s.webhookID()
	var list []exchange.WebhookDelivery
	var err error
	for deadline := time.Now().Add(hanging); err == nil && len(list) == 0; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) { // other transactions of the server hold the end of the log back, but not that long
			s.w.t.Fatal("no delivery was made")
		}
		if _, err = s.w.store.RelayEvents(s.w.t.Context(), store.MaxEvents); err == nil {
			list, _, err = s.w.store.WebhookDeliveries(s.w.t.Context(), store.Everything(), store.DeliveryFilter{EndpointID: endpoint}, store.Page{Number: 1, Size: 1})
		}
	}
	if err != nil {
		s.w.t.Fatal(err)
	}
	return list[0].ID
}

func TestWebhookEndpoints(t *testing.T) {
	e := start(t)
	vendor, rival, admin := e.person(exchange.RoleVendor), e.person(exchange.RoleVendor), e.person(exchange.RoleAdmin)
	e.webhook(vendor, map[string]any{"url": "http://hooks.example"}).blames("/url url")
	for _, address := range []string{"https://127.0.0.1/x", "https://169.254.169.254/latest", "https://[::1]/", "https://user:pass@hooks.example", "https://localhost/", "https://0x7f.1/", "nonsense"} {
		e.webhook(vendor, map[string]any{"url": address}).blames("/url url")
	}
	e.webhook(vendor, map[string]any{"url": "https://hooks.example/" + strings.Repeat("x", exchange.MaxWebhookURL)}).blames("/url too_long")
	e.webhook(vendor, map[string]any{"event_types": []string{"order"}}).blames("/event_types enum")
	e.webhook(vendor, map[string]any{"event_types": "order.*"}).blames("/event_types type")
	for _, never := range []string{"order.paid", "orders.*", "float_move.completed", "float_move.*", "control_change.proposed"} {
		e.webhook(vendor, map[string]any{"event_types": []string{"order.*", never}}).blames("/event_types enum")
		if exchange.HappensEvent(never, true) {
			e.webhook(admin, map[string]any{"event_types": []string{never}}).want(http.StatusCreated)
		}
	}
	e.do(post, webhooksPath, map[string]any{}, vendor.auth()).blames("/url required")
	made := e.webhook(vendor, map[string]any{"event_types": []string{"order.*"}, "description": "till"}).want(http.StatusCreated)
	secret := made.text("secret")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, exchange.WebhookSecretPrefix))
	if err != nil || len(raw) != exchange.WebhookSecretBytes || made.text("scope") != "merchant" || made.header.Get("Cache-Control") != "no-store" {
		t.Errorf("made %s", made.body)
	}
	e.webhook(vendor, map[string]any{"url": made.text("url")}).refused(exchange.CodeConflict)
	list := e.do(get, webhooksPath, nil, vendor.auth()).want(http.StatusOK)
	if strings.Contains(string(list.body), "secret") || list.object()["total"] != 1.0 {
		t.Errorf("listed %s", list.body)
	}
	if got := e.do(get, webhooksPath, nil, rival.auth()).want(http.StatusOK).object(); got["total"] != 0.0 {
		t.Errorf("a rival lists %v", got)
	}
	one := webhooksPath + "/" + made.text("id")
	rotated := e.do(post, one+"/rotate-secret", nil, vendor.auth()).want(http.StatusOK)
	if keys := rotated.object()["keys"].([]any); rotated.text("secret") == secret || len(keys) != 2 || keys[0].(map[string]any)["expires_at"] != nil || keys[1].(map[string]any)["expires_at"] == nil {
		t.Errorf("rotated %s", rotated.body)
	}
	e.do(post, one+"/rotate-secret", nil, admin.auth()).refused(exchange.CodeStateConflict)
	e.do(patch, one, map[string]any{"url": "https://elsewhere.example"}, admin.auth()).refused(exchange.CodeStateConflict)
	e.do(post, one+"/test", nil, vendor.auth()).want(http.StatusAccepted)
	off := e.do(patch, one, map[string]any{"status": "disabled", "event_types": []string{}}, admin.auth()).want(http.StatusOK)
	if off.text("status_detail") != exchange.WebhookByUser || len(off.object()["event_types"].([]any)) != 0 {
		t.Errorf("disabled %s", off.body)
	}
	e.do(post, one+"/test", nil, vendor.auth()).refused(exchange.CodeStateConflict)
	e.do(patch, one, map[string]any{"status": "active"}, vendor.auth()).want(http.StatusOK)
	e.do(del, one, nil, vendor.auth()).want(http.StatusNoContent)
	e.do(del, one, nil, vendor.auth()).refused(exchange.CodeNotFound)
	for range exchange.MaxWebhookEndpoints {
		e.webhook(vendor, map[string]any{}).want(http.StatusCreated)
	}
	e.webhook(vendor, map[string]any{}).refused(exchange.CodeLimitReached)
	if strings.Contains(e.logs.String(), secret) || strings.Contains(e.logs.String(), rotated.text("secret")) {
		t.Error("a secret is in the log")
	}
}

func TestWithoutWebhooks(t *testing.T) {
	e := start(t, func(d *Deps) { d.Webhooks = nil })
	e.webhook(e.person(exchange.RoleCustomer), map[string]any{}).refused(exchange.CodeUnsupported)
}
