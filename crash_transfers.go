//go:build crash

package main

import (
	"context"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
)

type crashTransfers struct {
	activities.TransferStore
	crash
}

func (s crashTransfers) OpenTransfer(ctx context.Context, r exchange.TransferRequest, by exchange.Principal) (exchange.Transfer, error) {
	return around(s.crash, "OpenTransfer", func() (exchange.Transfer, error) { return s.TransferStore.OpenTransfer(ctx, r, by) })
}

func (s crashTransfers) AdvanceTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	return around(s.crash, "AdvanceTransfer", func() (exchange.Transfer, error) { return s.TransferStore.AdvanceTransfer(ctx, id) })
}

func (s crashTransfers) RecordScreening(ctx context.Context, id uuid.UUID, said []exchange.Screening) (exchange.Transfer, error) {
	return around(s.crash, "RecordScreening", func() (exchange.Transfer, error) { return s.TransferStore.RecordScreening(ctx, id, said) })
}

func (s crashTransfers) SignTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	return around(s.crash, "SignTransfer", func() (exchange.Transfer, error) { return s.TransferStore.SignTransfer(ctx, id) })
}

func (s crashTransfers) SetTransferDetail(ctx context.Context, id uuid.UUID, detail string) (exchange.Transfer, error) {
	return around(s.crash, "MarkTransfer", func() (exchange.Transfer, error) { return s.TransferStore.SetTransferDetail(ctx, id, detail) })
}

func (s crashTransfers) CancelTransfer(ctx context.Context, id uuid.UUID, detail string, by exchange.Principal) (exchange.Transfer, error) {
	return around(s.crash, "CancelTransfer", func() (exchange.Transfer, error) { return s.TransferStore.CancelTransfer(ctx, id, detail, by) })
}

func (s crashTransfers) LapseTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	return around(s.crash, "LapseTransfer", func() (exchange.Transfer, error) { return s.TransferStore.LapseTransfer(ctx, id) })
}

func (s crashTransfers) GiveUpTransfer(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.Transfer, error) {
	return around(s.crash, "GiveUpTransfer", func() (exchange.Transfer, error) { return s.TransferStore.GiveUpTransfer(ctx, id, by) })
}

type crashApprovals struct {
	activities.ApprovalStore
	crash
}

func (s crashApprovals) Decide(ctx context.Context, id uuid.UUID, token string, action exchange.ApprovalAction) (exchange.Transfer, error) {
	return around(s.crash, "Decide", func() (exchange.Transfer, error) { return s.ApprovalStore.Decide(ctx, id, token, action) })
}

func (s crashApprovals) RecordRefusedDecision(ctx context.Context, id uuid.UUID, action exchange.ApprovalAction, door exchange.ApprovalDoor, code exchange.Code) error {
	return step(s.crash, "RecordRefusedDecision", func() error {
		return s.ApprovalStore.RecordRefusedDecision(ctx, id, action, door, code)
	})
}
