//go:build crash

package main

import (
	"context"
	"os"

	"github.com/google/uuid"

	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

func (s crashCold) SaveColdPart(ctx context.Context, draftID uuid.UUID, part []byte, by exchange.Principal) error {
	return step(s.crash, "SaveColdPart", func() error { return s.ColdStore.SaveColdPart(ctx, draftID, part, by) })
}

func (s crashCold) LapseColdDraft(ctx context.Context, draftID uuid.UUID, evidence string, by exchange.Principal) error {
	return step(s.crash, "LapseColdDraft", func() error { return s.ColdStore.LapseColdDraft(ctx, draftID, evidence, by) })
}

func (s crashCold) WithdrawColdDraft(ctx context.Context, draftID uuid.UUID, by exchange.Principal) (exchange.ChainPayment, error) {
	return around(s.crash, "WithdrawColdDraft", func() (exchange.ChainPayment, error) { return s.ColdStore.WithdrawColdDraft(ctx, draftID, by) })
}

func (s crashCold) ApproveNonceAccount(ctx context.Context, paymentID uuid.UUID, account string, rent money.Amount) (exchange.ChainPayment, error) {
	return around(s.crash, "ApproveNonceAccount", func() (exchange.ChainPayment, error) {
		return s.ColdStore.ApproveNonceAccount(ctx, paymentID, account, rent)
	})
}

// crashCompleting puts points around the storing of what was signed elsewhere and completed here.
func crashCompleting(s keys.ColdStore) keys.ColdStore {
	dir := crash(os.Getenv(crashVariable)) //nolint:forbidigo // see crashVariable
	if dir == "" {
		return s
	}
	return crashCompletions{s, dir}
}

type crashCompletions struct {
	keys.ColdStore
	crash
}

func (s crashCompletions) SaveColdAttempt(ctx context.Context, draftID uuid.UUID, a exchange.ChainAttempt, by exchange.Principal) (exchange.ChainAttempt, error) {
	return around(s.crash, "SaveCompletedAttempt", func() (exchange.ChainAttempt, error) { return s.ColdStore.SaveColdAttempt(ctx, draftID, a, by) })
}
