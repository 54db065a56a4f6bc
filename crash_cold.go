//go:build crash

package main

import (
	"context"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
)

type crashCold struct {
	activities.ColdStore
	crash
}

func (s crashCold) SaveColdDraft(ctx context.Context, d exchange.ColdDraft, by exchange.Principal) (exchange.ColdDraft, error) {
	return around(s.crash, "SaveColdDraft", func() (exchange.ColdDraft, error) { return s.ColdStore.SaveColdDraft(ctx, d, by) })
}

func (s crashCold) SaveColdAttempt(ctx context.Context, draftID uuid.UUID, a exchange.ChainAttempt, by exchange.Principal) (exchange.ChainAttempt, error) {
	return around(s.crash, "SaveColdAttempt", func() (exchange.ChainAttempt, error) { return s.ColdStore.SaveColdAttempt(ctx, draftID, a, by) })
}

type crashCosigner struct {
	activities.ColdSigner
	crash
}

func (s crashCosigner) CompletePayment(ctx context.Context, id uuid.UUID) (exchange.ChainAttempt, error) {
	return around(s.crash, "CompletePayment", func() (exchange.ChainAttempt, error) { return s.ColdSigner.CompletePayment(ctx, id) })
}
