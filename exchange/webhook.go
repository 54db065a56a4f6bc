package exchange

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Webhooks follow the Standard Webhooks specification 1.0.0 (https://www.standardwebhooks.com): what is signed
// is "id.timestamp.body" with HMAC-SHA256, and several signatures stand in one header while keys overlap.

// The headers of a delivery. The first three are the standard's. WebhookHeaderKeys names the keys of the
// signatures, in their order: the standard has no place for it, and who ignores it verifies all the same.
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
	MaxWebhookBody        = 64 << 10 // bytes of a delivery; an event that does not fit is told as failed
)

// WebhookOverlap is how long the key before still signs after a rotation.
const WebhookOverlap = 24 * time.Hour

// WebhookDisableAfter is how long every attempt of an endpoint has to fail until it is disabled.
const WebhookDisableAfter = 5 * 24 * time.Hour

// WebhookDeliveriesKept is how long deliveries are kept that came to an end.
const WebhookDeliveriesKept = 30 * 24 * time.Hour

// WebhookAttempts is how many attempts there are of a delivery, and of each replay.
const WebhookAttempts = 10

// WebhookPause is how long after a failed attempt the next one is made; the first attempt is number 1. All
// together they span a little more than three days.
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

// The states of an endpoint. Events that happen while it is disabled are not delivered later; they stand in
// the event log.
const (
	WebhookActive   WebhookStatus = "active"
	WebhookDisabled WebhookStatus = "disabled"
)

// Why an endpoint is disabled.
const (
	WebhookByPerson      = "by_person"
	WebhookGone          = "gone"           // it answered 410
	WebhookFailing       = "failing"        // nothing else for WebhookDisableAfter
	WebhookOwnerInactive = "owner_inactive" // whoever made it may not read these events any more
)

// WebhookEndpoint is an address that events are sent to. OwnerID is a customer's and VendorID a merchant's;
// both zero is the house's.
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
	FailingSince time.Time // of the first failed attempt since one succeeded
	DisabledAt   time.Time
	Keys         []WebhookKey // that sign, the newest first
	CreatedAt    time.Time
	UpdatedAt    time.Time
	Version      int64
}

// WebhookKey is a sealed secret that deliveries are signed with. ID names it to the receiver.
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

// Why a delivery failed for good.
const (
	WebhookExhausted        = "exhausted" // no attempt of all succeeded
	WebhookEndpointDisabled = "endpoint_disabled"
	WebhookEndpointDeleted  = "endpoint_deleted"
)

// What came of an attempt that did not succeed, in a word: nothing that a receiver says is kept.
const (
	WebhookErrStatus  = "status"          // an answer that is not 2xx; redirects are not followed
	WebhookErrTimeout = "timeout"         //
	WebhookErrDNS     = "dns"             // the name has no address
	WebhookErrBlocked = "blocked_address" // an address that is not of the public internet
	WebhookErrTLS     = "tls"             //
	WebhookErrConnect = "connection"      //
	WebhookErrSize    = "too_large"       // the event is longer than MaxWebhookBody
)

// WebhookDelivery is the duty to bring one event to one endpoint.
type WebhookDelivery struct {
	ID           uuid.UUID
	EndpointID   uuid.UUID
	Event        Event
	Status       WebhookDeliveryStatus
	StatusDetail string
	Attempts     int // of all replays together
	Tries        int // since it was made, or replayed last
	Replays      int
	NextAt       time.Time // of a pending one
	LastAt       time.Time
	LastStatus   int    // of HTTP; 0: no answer
	LastError    string // a WebhookErr… word
	DeliveredAt  time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// WebhookResult is what came of one attempt. Attempt is the number that it was claimed under: what a claim
// says that another has followed counts no more.
type WebhookResult struct {
	DeliveryID uuid.UUID
	Attempt    int
	Status     int
	Error      string // "" when it was taken
	Gone       bool   // the endpoint wants no more
}

// WebhookClaim is what one worker sends to an endpoint next.
type WebhookClaim struct {
	URL        string
	Keys       []WebhookKey
	Deliveries []WebhookDelivery
}

// WebhookTest is the type of the event that a test makes. It goes to its own endpoint alone, whatever the
// filter.
const WebhookTest = "webhook_endpoint.test"

// WebhookID is the id of an event on its way, the same in each attempt and for each endpoint.
func WebhookID(cursor int64) string { return "evt_" + strconv.FormatInt(cursor, 10) }

// webhookBody is what is sent. It has the fields that the standard names, and the event as GET /events shows
// it.
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

// WebhookBody is what is sent of an event: the same bytes each time.
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

// SignWebhook is the value of WebhookHeaderSignature: a signature by each secret, in their order. CodeInternal
// when a text is no secret.
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
