package api

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// Webhooks is what the API needs for webhook endpoints.
type Webhooks struct {
	// Seal encrypts a secret into a key, which already has its ids.
	Seal func(k exchange.WebhookKey, secret string) exchange.WebhookKey
	// CheckURL refuses a URL to which no events may be sent. The error's message continues after the field's name.
	CheckURL func(string) error
}

func (s *server) webhookRoutes() []route {
	const (
		endpoints  = "/api/v1/auth/webhook-endpoints"
		deliveries = "/api/v1/auth/webhook-deliveries"
	)
	read, write := exchange.ActReadWebhooks, exchange.ActWriteWebhooks
	// Operations that answer with a secret take no idempotency key: the stored answer would contain the secret.
	return []route{
		{method: get, path: endpoints, action: read, limit: limitGeneral, handle: s.listWebhooks},
		{method: post, path: endpoints, action: write, limit: limitGeneral, handle: s.createWebhook},
		{method: get, path: endpoints + "/{id}", action: read, limit: limitGeneral, handle: s.getWebhook},
		{method: patch, path: endpoints + "/{id}", action: write, limit: limitGeneral, handle: s.patchWebhook},
		{method: del, path: endpoints + "/{id}", action: write, limit: limitGeneral, handle: s.deleteWebhook},
		{method: post, path: endpoints + "/{id}/rotate-secret", action: write, limit: limitGeneral, handle: s.rotateWebhook},
		{method: post, path: endpoints + "/{id}/test", action: write, limit: limitGeneral, key: keyOptional, handle: s.testWebhook},
		{method: get, path: deliveries, action: read, limit: limitGeneral, handle: s.listDeliveries},
		{method: post, path: deliveries + "/{id}/replay", action: write, limit: limitGeneral, key: keyOptional, handle: s.replayDelivery},
	}
}

// wireWebhookKey is a key without its secret, which is shown only once.
type wireWebhookKey struct {
	ID        uuid.UUID  `json:"id"`
	CreatedAt timestamp  `json:"created_at"`
	ExpiresAt *timestamp `json:"expires_at"`
}

// wireWebhook is an endpoint.
type wireWebhook struct {
	ID           uuid.UUID        `json:"id"`
	Scope        string           `json:"scope"`
	OwnerID      *uuid.UUID       `json:"owner_id"`
	VendorID     *uuid.UUID       `json:"vendor_id"`
	URL          string           `json:"url"`
	Description  *string          `json:"description"`
	EventTypes   []string         `json:"event_types"`
	Status       string           `json:"status"`
	StatusDetail *string          `json:"status_detail"`
	FailingSince *timestamp       `json:"failing_since"`
	DisabledAt   *timestamp       `json:"disabled_at"`
	Keys         []wireWebhookKey `json:"keys"`
	Secret       string           `json:"secret,omitempty"`
	CreatedAt    timestamp        `json:"created_at"`
	UpdatedAt    timestamp        `json:"updated_at"`
}

// The values that filters accept.
var (
	webhookStatuses  = names(exchange.WebhookMachine.States())
	deliveryStatuses = names(exchange.WebhookDeliveryMachine.States())
)

// Whose events an endpoint gets.
const (
	scopeOwn      = "own"
	scopeMerchant = "merchant"
	scopeHouse    = "house"
)

func webhookWire(e exchange.WebhookEndpoint) wireWebhook {
	scope := scopeHouse
	switch {
	case e.OwnerID != uuid.Nil:
		scope = scopeOwn
	case e.VendorID != uuid.Nil:
		scope = scopeMerchant
	}
	types := e.EventTypes
	if types == nil {
		types = []string{}
	}
	return wireWebhook{
		ID: e.ID, Scope: scope, OwnerID: optID(e.OwnerID), VendorID: optID(e.VendorID), URL: e.URL, Description: optText(e.Description), EventTypes: types,
		Status: string(e.Status), StatusDetail: optText(e.StatusDetail), FailingSince: optTime(e.FailingSince), DisabledAt: optTime(e.DisabledAt),
		Keys: each(e.Keys, func(k exchange.WebhookKey) wireWebhookKey {
			return wireWebhookKey{k.ID, stamp(k.CreatedAt), optTime(k.ExpiresAt)}
		}), CreatedAt: stamp(e.CreatedAt), UpdatedAt: stamp(e.UpdatedAt),
	}
}

func (s *server) listWebhooks(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	status := exchange.WebhookStatus(q.oneOf("status", webhookStatuses...))
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "webhook_endpoints", page, webhookWire)(s.Store.Webhooks(c.ctx, c.view(), status, page))
}

// webhookURL reads a URL that events may be sent to.
func (s *server) webhookURL(f *form, required bool) string {
	address := f.line("url", required, exchange.MaxWebhookURL)
	if address != "" && s.Webhooks != nil {
		if err := s.Webhooks.CheckURL(address); err != nil {
			f.fail("url", "url", exchange.MessageOf(err))
		}
	}
	return address
}

// eventTypes reads a list of event types. Types that the reader never gets are refused.
func (f *form) eventTypes(name string, staff bool) []string {
	v, ok := f.take(name, false)
	if !ok {
		return nil
	}
	values, ok := v.([]any)
	if !ok {
		f.fail(name, "type", "must be an array of strings")
		return nil
	}
	if len(values) > exchange.MaxWebhookEventTypes {
		f.fail(name, "too_long", "must have at most "+strconv.Itoa(exchange.MaxWebhookEventTypes)+" entries")
		return nil
	}
	all := make([]string, 0, len(values))
	for _, v := range values {
		s, ok := v.(string)
		if !ok || !exchange.HappensEvent(s, staff) {
			f.fail(name, "enum", "must be types of events that you can get, such as order.completed, or all types of an object, such as order.*")
			return nil
		}
		all = append(all, s)
	}
	return all
}

func eventTypes() []string {
	return each(exchange.EventTypes(), func(e exchange.EventType) string { return e.Type })
}

// offersWebhooks fails when this deployment has no webhooks.
func (s *server) offersWebhooks() error {
	if s.Webhooks == nil {
		return exchange.Errorf(exchange.CodeUnsupported, "Webhooks are not offered here.")
	}
	return nil
}

// newWebhookSecret creates a secret and its encrypted key.
func (s *server) newWebhookSecret(endpoint uuid.UUID) (string, exchange.WebhookKey, error) {
	raw := make([]byte, exchange.WebhookSecretBytes)
	if _, err := rand.Read(raw); err != nil {
		return "", exchange.WebhookKey{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", exchange.WebhookKey{}, err
	}
	secret := exchange.WebhookSecretPrefix + base64.StdEncoding.EncodeToString(raw)
	return secret, s.Webhooks.Seal(exchange.WebhookKey{ID: id, EndpointID: endpoint}, secret), nil
}

// createWebhook creates an endpoint and answers with its secret, once.
func (s *server) createWebhook(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	e := exchange.WebhookEndpoint{
		ID: newID(), URL: s.webhookURL(f, true), Description: f.line("description", false, exchange.MaxWebhookDescription),
		EventTypes: f.eventTypes("event_types", c.who.Role.Staff()),
	}
	if err := f.done(); err != nil {
		return err
	}
	if err := s.offersWebhooks(); err != nil {
		return err
	}
	secret, key, err := s.newWebhookSecret(e.ID)
	if err != nil {
		return err
	}
	if e, err = s.Store.CreateWebhook(c.ctx, c.view(), e, key, c.who); err != nil {
		return err
	}
	return s.showSecret(c, http.StatusCreated, e, secret)
}

// showSecret answers with an endpoint and its secret. Caches must not store the response.
func (s *server) showSecret(c *call, status int, e exchange.WebhookEndpoint, secret string) error {
	w := webhookWire(e)
	w.Secret = secret
	c.fc.Set("Cache-Control", "no-store")
	return c.json(status, w)
}

func (s *server) getWebhook(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	e, err := s.Store.Webhook(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.tagged(e.Version, webhookWire(e))
}

func (s *server) patchWebhook(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	p := store.WebhookPatch{IfVersions: c.ifVersions}
	if address := s.webhookURL(f, false); f.has("url") {
		if address == "" {
			f.fail("url", "required", "must not be empty")
		}
		p.URL = &address
	}
	if text := f.line("description", false, exchange.MaxWebhookDescription); f.has("description") {
		p.Description = &text
	}
	if types := f.eventTypes("event_types", c.who.Role.Staff()); f.has("event_types") {
		p.EventTypes = &types
	}
	if status := f.oneOf("status", false, webhookStatuses...); status != "" {
		active := status == string(exchange.WebhookActive)
		p.Active = &active
	}
	if err := f.done(); err != nil {
		return err
	}
	if err := s.offersWebhooks(); err != nil {
		return err
	}
	e, err := s.Store.PatchWebhook(c.ctx, c.view(), id, p, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	return c.tagged(e.Version, webhookWire(e))
}

func (s *server) deleteWebhook(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	if err := s.Store.DeleteWebhook(c.ctx, c.view(), id, c.who); err != nil {
		return hideAbsence(err)
	}
	return c.empty()
}

// rotateWebhook gives an endpoint a new secret, which is shown once.
func (s *server) rotateWebhook(c *call) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	if err := s.offersWebhooks(); err != nil {
		return err
	}
	secret, key, err := s.newWebhookSecret(id)
	if err != nil {
		return err
	}
	e, err := s.Store.RotateWebhookKey(c.ctx, c.view(), id, key, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	return s.showSecret(c, http.StatusOK, e, secret)
}

// testWebhook creates an event that goes only to this endpoint, through the normal delivery.
func (s *server) testWebhook(c *call) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	if err := s.offersWebhooks(); err != nil {
		return err
	}
	return answer(c, http.StatusAccepted, webhookWire)(s.Store.TestWebhook(c.ctx, c.view(), id, c.who))
}

// wireDelivery is the delivery of an event to an endpoint.
type wireDelivery struct {
	ID           uuid.UUID  `json:"id"`
	EndpointID   uuid.UUID  `json:"endpoint_id"`
	WebhookID    string     `json:"webhook_id"`
	EventCursor  int64      `json:"event_cursor"`
	EventType    string     `json:"event_type"`
	ObjectType   string     `json:"object_type"`
	ObjectID     uuid.UUID  `json:"object_id"`
	Status       string     `json:"status"`
	StatusDetail *string    `json:"status_detail"`
	Attempts     int        `json:"attempts"`
	Replays      int        `json:"replays"`
	NextAt       *timestamp `json:"next_attempt_at"`
	LastAt       *timestamp `json:"last_attempt_at"`
	LastStatus   *int       `json:"last_response_status"`
	LastError    *string    `json:"last_error"`
	DeliveredAt  *timestamp `json:"delivered_at"`
	CreatedAt    timestamp  `json:"created_at"`
	UpdatedAt    timestamp  `json:"updated_at"`
}

func deliveryWire(d exchange.WebhookDelivery) wireDelivery {
	w := wireDelivery{
		ID: d.ID, EndpointID: d.EndpointID, WebhookID: exchange.WebhookID(d.Event.Cursor), EventCursor: d.Event.Cursor, EventType: d.Event.Type,
		ObjectType: d.Event.ObjectType, ObjectID: d.Event.ObjectID, Status: string(d.Status), StatusDetail: optText(d.StatusDetail), Attempts: d.Attempts,
		Replays: d.Replays, NextAt: optTime(d.NextAt), LastAt: optTime(d.LastAt), LastError: optText(d.LastError), DeliveredAt: optTime(d.DeliveredAt),
		CreatedAt: stamp(d.CreatedAt), UpdatedAt: stamp(d.UpdatedAt),
	}
	if d.LastStatus != 0 {
		w.LastStatus = &d.LastStatus
	}
	return w
}

func (s *server) listDeliveries(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.DeliveryFilter{
		EndpointID: q.id("endpoint_id"), ObjectID: q.id("object_id"), Status: exchange.WebhookDeliveryStatus(q.oneOf("status", deliveryStatuses...)),
		Type: q.oneOf("event_type", eventTypes()...), From: q.time("created_from"), To: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "webhook_deliveries", page, deliveryWire)(s.Store.WebhookDeliveries(c.ctx, c.view(), filter, page))
}

// replayDelivery sends a finished delivery again, with the same webhook-id.
func (s *server) replayDelivery(c *call) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	if err := s.offersWebhooks(); err != nil {
		return err
	}
	return answer(c, http.StatusAccepted, deliveryWire)(s.Store.ReplayWebhook(c.ctx, c.view(), id, c.who))
}
