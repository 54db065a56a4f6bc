//go:build crash

package main

import (
	"context"
	"os"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
)

type crashRelay struct {
	activities.RelayStore
	crash
}

func (s crashRelay) RelayEvents(ctx context.Context, limit int) (activities.RelayedEvents, error) {
	return around(s.crash, "RelayEvents", func() (activities.RelayedEvents, error) { return s.RelayStore.RelayEvents(ctx, limit) })
}

func (s crashRelay) WebhooksWoken(ctx context.Context, deliveries []uuid.UUID) error {
	return step(s.crash, "WebhooksWoken", func() error { return s.RelayStore.WebhooksWoken(ctx, deliveries) })
}

// crashWaking puts points around waking the flow of an endpoint.
func crashWaking(w activities.WebhookWaker) activities.WebhookWaker {
	dir := crash(os.Getenv(crashVariable)) //nolint:forbidigo // see crashVariable
	if dir == "" {
		return w
	}
	return crashWaker{w, dir}
}

type crashWaker struct {
	activities.WebhookWaker
	crash
}

func (w crashWaker) WakeWebhooks(ctx context.Context, endpoint uuid.UUID) error {
	return step(w.crash, "WakeWebhooks", func() error { return w.WebhookWaker.WakeWebhooks(ctx, endpoint) })
}

// crashWebhooks has points around the writing before the request to a receiver and after its answer.
type crashWebhooks struct {
	activities.WebhookStore
	crash
}

func (s crashWebhooks) ClaimWebhooks(ctx context.Context, endpoint uuid.UUID, limit int, lease time.Duration) (exchange.WebhookClaim, error) {
	return around(s.crash, "ClaimWebhooks", func() (exchange.WebhookClaim, error) {
		return s.WebhookStore.ClaimWebhooks(ctx, endpoint, limit, lease)
	})
}

func (s crashWebhooks) RecordWebhook(ctx context.Context, r exchange.WebhookResult) error {
	return step(s.crash, "RecordWebhook", func() error { return s.WebhookStore.RecordWebhook(ctx, r) })
}

type crashStatement struct {
	activities.StatementStore
	crash
}

func (s crashStatement) TakeReceipt(ctx context.Context, o exchange.Observation) (exchange.C2BTaken, error) {
	return around(s.crash, "TakeReceipt", func() (exchange.C2BTaken, error) { return s.StatementStore.TakeReceipt(ctx, o) })
}

func (s crashStatement) OpenUnmatched(ctx context.Context, id uuid.UUID) (exchange.C2BPayment, error) {
	return around(s.crash, "OpenUnmatched", func() (exchange.C2BPayment, error) { return s.StatementStore.OpenUnmatched(ctx, id) })
}
