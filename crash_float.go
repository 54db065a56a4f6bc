//go:build crash

package main

import (
	"context"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
)

type crashFloat struct {
	activities.FloatStore
	crash
}

func (s crashFloat) ClaimFloatMove(ctx context.Context, id uuid.UUID, token string) (exchange.FloatMove, bool, error) {
	s.point("before:ClaimFloatMove")
	m, claimed, err := s.FloatStore.ClaimFloatMove(ctx, id, token)
	s.point("after:ClaimFloatMove")
	return m, claimed, err
}

func (s crashFloat) RecordFloatSubmission(ctx context.Context, id uuid.UUID, sub exchange.Submission) (exchange.FloatMove, error) {
	return around(s.crash, "RecordFloatSubmission", func() (exchange.FloatMove, error) { return s.FloatStore.RecordFloatSubmission(ctx, id, sub) })
}

func (s crashFloat) SettleFloatMove(
	ctx context.Context, id uuid.UUID, to exchange.FloatMoveStatus, o exchange.Observation, note string, by exchange.Principal,
) (exchange.FloatMove, error) {
	return around(s.crash, "SettleFloatMove", func() (exchange.FloatMove, error) {
		return s.FloatStore.SettleFloatMove(ctx, id, to, o, note, by)
	})
}

type crashFloatOperator struct {
	activities.FloatOperator
	crash
}

func (s crashFloatOperator) MoveFloat(ctx context.Context, m exchange.FloatMove) exchange.Submission {
	s.point("before:MoveFloat")
	out := s.FloatOperator.MoveFloat(ctx, m)
	s.point("after:MoveFloat")
	return out
}
