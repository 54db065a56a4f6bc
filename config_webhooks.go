package main

import (
	"fmt"
	"time"

	"kivuko/activities"
	"kivuko/api"
	"kivuko/crash"
	"kivuko/store"
	"kivuko/webhook"
	"kivuko/worker"
)

// webhookPolicy lets a developer's machine send to itself. Production sends only to the public internet.
func (c Config) webhookPolicy() webhook.Policy {
	return webhook.Policy{Local: c.Mode == Local}
}

func (c Config) webhookSealer() (*worker.WebhookSealer, error) {
	keys := make([]worker.Key, len(c.Keys.Webhooks))
	for i, k := range c.Keys.Webhooks {
		keys[i] = worker.Key{ID: k.ID, Secret: k.Key}
	}
	sealer, err := worker.NewWebhookSealer(keys)
	if err != nil {
		return nil, fmt.Errorf("KIVUKO_WEBHOOK_KEYS: %w", err)
	}
	return sealer, nil
}

// webhooks makes the activities that send events.
func (c Config) webhooks(db *store.Store) (*activities.Webhooks, error) {
	sealer, err := c.webhookSealer()
	if err != nil {
		return nil, err
	}
	return &activities.Webhooks{Store: db, Opener: sealer, Sender: webhook.NewSender(c.webhookPolicy(), nil).Through(crash.Transport), Now: time.Now}, nil
}

// webhookSecrets returns what the API needs for endpoints, or nil when webhooks are not configured.
func (c Config) webhookSecrets() (*api.Webhooks, error) {
	if len(c.Keys.Webhooks) == 0 {
		return nil, nil //nolint:nilnil // the API accepts nil
	}
	sealer, err := c.webhookSealer()
	if err != nil {
		return nil, err
	}
	return &api.Webhooks{Seal: sealer.SealWebhookSecret, CheckURL: c.webhookPolicy().CheckURL}, nil
}
