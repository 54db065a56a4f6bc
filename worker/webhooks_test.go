package worker

import (
	"bytes"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// A secret can be opened only with the ids of its own row, by whichever key sealed it.
func TestWebhookSecretsAreBoundToTheirRow(t *testing.T) {
	old, current := Key{ID: "old", Secret: bytes.Repeat([]byte{1}, KeySize)}, Key{ID: "new", Secret: bytes.Repeat([]byte{2}, KeySize)}
	before, err := NewWebhookSealer([]Key{old})
	if err != nil {
		t.Fatal(err)
	}
	after, err := NewWebhookSealer([]Key{current, old})
	if err != nil {
		t.Fatal(err)
	}
	k := before.SealWebhookSecret(exchange.WebhookKey{ID: uuid.New(), EndpointID: uuid.New()}, "whsec_x")
	if bytes.Contains(k.Sealed, []byte("whsec_x")) || k.MasterKey != "old" {
		t.Errorf("sealed %+v", k)
	}
	if got, err := after.OpenWebhookSecret(k); err != nil || got != "whsec_x" {
		t.Errorf("opened %q, %v", got, err)
	}
	for name, change := range map[string]func(*exchange.WebhookKey){
		"another endpoint": func(k *exchange.WebhookKey) { k.EndpointID = uuid.New() },
		"another key":      func(k *exchange.WebhookKey) { k.ID = uuid.New() },
		"another name":     func(k *exchange.WebhookKey) { k.MasterKey = "new" },
		"an unknown name":  func(k *exchange.WebhookKey) { k.MasterKey = "none" },
		"changed bytes": func(k *exchange.WebhookKey) {
			k.Sealed = bytes.Clone(k.Sealed)
			k.Sealed[len(k.Sealed)-1] ^= 1
		},
	} {
		other := k
		change(&other)
		if _, err := after.OpenWebhookSecret(other); exchange.CodeOf(err) != exchange.CodeInternal {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, keys := range map[string][]Key{"none": nil, "twice": {old, old}, "short": {{ID: "a", Secret: []byte("x")}}} {
		if _, err := NewWebhookSealer(keys); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
