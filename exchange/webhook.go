package exchange

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Webhooks follow the Standard Webhooks specification 1.0.0 (https://www.standardwebhooks.com): what is signed
// is "id.timestamp.body" with HMAC-SHA256, and several signatures stand in one header while keys overlap.

// The headers of a delivery. The first three are the standard's. WebhookHeaderKeys lists the ids of the signatures' keys, in
// their order; receivers may ignore it.
const (
	WebhookHeaderID        = "webhook-id"
	WebhookHeaderTimestamp = "webhook-timestamp" // seconds since 1970
	WebhookHeaderSignature = "webhook-signature"
	WebhookHeaderKeys      = "kivuko-webhook-key-id"
)

// WebhookSecretPrefix begins a secret; base64 of its bytes follows.
const WebhookSecretPrefix = "whsec_"

// WebhookSecretBytes is the length of the secrets that are made here; the standard allows 24 to 64.
const WebhookSecretBytes = 32

// Limits of webhooks.
const (
	MaxWebhookEndpoints   = 10       // of one owner, and of the house
	MaxWebhookURL         = 500      // characters
	MaxWebhookDescription = 200      // characters
	MaxWebhookEventTypes  = 50       // in a filter
	MaxWebhookBody        = 64 << 10 // bytes of a delivery; a larger event is a failed delivery
)

// WebhookOverlap is how long the previous key still signs after a rotation.
const WebhookOverlap = 24 * time.Hour

// WebhookDisableAfter is how long every attempt must fail until the endpoint is disabled.
const WebhookDisableAfter = 5 * 24 * time.Hour

// WebhookDeliveriesKept is how long finished deliveries are kept.
const WebhookDeliveriesKept = 30 * 24 * time.Hour

// WebhookAttempts is the number of attempts of a delivery, and of each replay.
const WebhookAttempts = 10

// WebhookPause is the time from a failed attempt to the next one; the first attempt is number 1. All together they span a
// little more than three days.
func WebhookPause(attempt int) (time.Duration, bool) {
	pauses := [WebhookAttempts - 1]time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	if attempt < 1 || attempt > len(pauses) {
		return 0, false
	}
	return pauses[attempt-1], true
}

// WebhookStatus is the state of an endpoint.
type WebhookStatus string

// The states of an endpoint. Events from while it is disabled are not delivered later; they are in the event log.
const (
	WebhookActive   WebhookStatus = "active"
	WebhookDisabled WebhookStatus = "disabled"
)

// WebhookMachine governs webhook endpoints. A deleted one is disabled.
var WebhookMachine = Machine[WebhookStatus]{
	Name: "webhook_endpoint", Initial: WebhookActive,
	Transitions: []Transition[WebhookStatus]{
		{WebhookActive, WebhookDisabled, ByOwner, "the owner switches it off or deletes it"},
		{WebhookActive, WebhookDisabled, ByFlow, "it answered 410, every attempt failed for too long, or its owner may not read its events any more"},
		{WebhookDisabled, WebhookActive, ByOwner, "the owner switches it on"},
	},
}

// Why an endpoint is disabled.
const (
	WebhookByUser        = "by_user"
	WebhookGone          = "gone"           // it answered 410
	WebhookFailing       = "failing"        // no success within WebhookDisableAfter
	WebhookOwnerInactive = "owner_inactive" // its owner may not read these events any more
)

// WebhookEndpoint is a URL that events are sent to. OwnerID is a customer's and VendorID a merchant's; both are zero for the
// house's.
type WebhookEndpoint struct {
	ID           uuid.UUID
	OwnerID      uuid.UUID
	VendorID     uuid.UUID
	CreatedBy    uuid.UUID
	URL          string
	Description  string
	EventTypes   []string // "order.completed" or "order.*"; none is all
	Status       WebhookStatus
	StatusDetail string
	FailingSince time.Time // the first failed attempt since the last success
	DisabledAt   time.Time
	Keys         []WebhookKey // the signing keys, newest first
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// WebhookKey is a sealed secret that signs deliveries. ID identifies it to the receiver.
type WebhookKey struct {
	ID         uuid.UUID
	EndpointID uuid.UUID
	Sealed     []byte
	MasterKey  string // the name of the key that sealed it
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero for the newest
}

// WebhookDeliveryStatus is the state of a delivery.
type WebhookDeliveryStatus string

// The states of a delivery.
const (
	WebhookPending   WebhookDeliveryStatus = "pending"
	WebhookDelivered WebhookDeliveryStatus = "delivered"
	WebhookFailed    WebhookDeliveryStatus = "failed"
)

// WebhookDeliveryMachine governs deliveries. An ended one can be replayed, so none is final.
var WebhookDeliveryMachine = Machine[WebhookDeliveryStatus]{
	Name: "webhook_delivery", Initial: WebhookPending,
	Transitions: []Transition[WebhookDeliveryStatus]{
		{WebhookPending, WebhookDelivered, ByFlow, "the receiver acknowledged it"},
		{WebhookPending, WebhookFailed, ByFlow, "every attempt failed, it is too large, or its endpoint takes no events any more"},
		{WebhookDelivered, WebhookPending, ByOwner, "replayed"},
		{WebhookFailed, WebhookPending, ByOwner, "replayed"},
	},
}

// Why a delivery failed for good.
const (
	WebhookExhausted        = "exhausted" // every attempt failed
	WebhookEndpointDisabled = "endpoint_disabled"
	WebhookEndpointDeleted  = "endpoint_deleted"
)

// Why an attempt failed. Nothing else of a receiver's response is stored.
const (
	WebhookErrStatus  = "status"          // a status other than 2xx; redirects are not followed
	WebhookErrTimeout = "timeout"         //
	WebhookErrDNS     = "dns"             // the name has no address
	WebhookErrBlocked = "blocked_address" // an address outside the public internet
	WebhookErrTLS     = "tls"             //
	WebhookErrConnect = "connection"      //
	WebhookErrSize    = "too_large"       // the event is longer than MaxWebhookBody
)

// WebhookDelivery is one event to be delivered to one endpoint.
type WebhookDelivery struct {
	ID           uuid.UUID
	EndpointID   uuid.UUID
	Event        Event
	Status       WebhookDeliveryStatus
	StatusDetail string
	Attempts     int // of all replays together
	Tries        int // since it was made or last replayed
	Replays      int
	NextAt       time.Time // of a pending one
	LastAt       time.Time
	LastStatus   int    // HTTP status; 0: no response
	LastError    string // a WebhookErr… code
	DeliveredAt  time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// WebhookResult is the outcome of one attempt. Attempt is the number under which it was claimed; the result is ignored when
// a later claim exists.
type WebhookResult struct {
	DeliveryID uuid.UUID
	Attempt    int
	Status     int
	Error      string // "" when it was accepted
	Gone       bool   // the endpoint asked for no more events
}

// WebhookClaim is the next delivery of one worker to an endpoint.
type WebhookClaim struct {
	URL        string
	Keys       []WebhookKey
	Deliveries []WebhookDelivery
}

// WebhookTest is the type of the event of a test. It goes only to its own endpoint, regardless of the filter.
const WebhookTest = "webhook_endpoint.test"

// WebhookID is the id of an event in deliveries: the same in each attempt and for each endpoint.
func WebhookID(cursor int64) string { return "evt_" + strconv.FormatInt(cursor, 10) }

// webhookBody is the body of a delivery: the fields of the standard, and the event as GET /events shows it.
type webhookBody struct {
	ID        string       `json:"id"`
	Type      string       `json:"type"`
	Timestamp string       `json:"timestamp"`
	Data      webhookEvent `json:"data"`
}

type webhookEvent struct {
	Cursor     int64           `json:"cursor"`
	ObjectType string          `json:"object_type"`
	ObjectID   uuid.UUID       `json:"object_id"`
	Sequence   int64           `json:"sequence"`
	Type       string          `json:"type"`
	Payload    json.RawMessage `json:"payload"`
	At         string          `json:"at"`
}

// WebhookBody returns the body of an event's delivery: the same bytes each time.
func WebhookBody(e Event) ([]byte, error) {
	const milliseconds = "2006-01-02T15:04:05.000Z"
	at := e.At.UTC().Format(milliseconds)
	payload := e.Payload
	if len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	return json.Marshal(webhookBody{
		ID: WebhookID(e.Cursor), Type: e.Type, Timestamp: at,
		Data: webhookEvent{Cursor: e.Cursor, ObjectType: e.ObjectType, ObjectID: e.ObjectID, Sequence: e.Sequence, Type: e.Type, Payload: payload, At: at},
	})
}

// SignWebhook returns the value of WebhookHeaderSignature: one signature per secret, in their order. It returns CodeInternal
// for an invalid secret.
func SignWebhook(id string, at time.Time, body []byte, secrets []string) (string, error) {
	all := make([]string, len(secrets))
	for i, s := range secrets {
		text, ok := strings.CutPrefix(s, WebhookSecretPrefix)
		key, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil || len(key) == 0 {
			return "", Errorf(CodeInternal, "A webhook secret can't be read.")
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		all[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(all, " "), nil
}

// WebhookMessage is one signed attempt to deliver an event.
type WebhookMessage struct {
	URL       string
	ID        string
	At        time.Time
	Signature string
	Keys      string
	Body      []byte
}

// String hides the address and the signature.
func (m WebhookMessage) String() string {
	return fmt.Sprintf("webhook %s of %d bytes", m.ID, len(m.Body))
}

// RelayedEvents is how many events a step of the relay read, and how many deliveries it made of them.
type RelayedEvents struct {
	Events     int
	Deliveries int
	Wanted     bool // there is an active endpoint
}
