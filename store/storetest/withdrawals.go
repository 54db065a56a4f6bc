package storetest

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// Destination is one that a merchant saved and confirmed, and that has rested.
func Destination(t testing.TB, s *store.Store, d exchange.Destination, by exchange.Principal) exchange.Destination {
	t.Helper()
	d.ID, d.MerchantID = NewID(t), by.UserID
	_, err := s.AddDestination(t.Context(), d, by)
	if err == nil {
		_, err = s.ConfirmDestination(t.Context(), store.ViewOf(by, exchange.ActConfirmDestinations), d.ID, by)
	}
	if err != nil {
		t.Fatalf("seed a destination: %v", err)
	}
	Rested(t, s)
	if d, err = s.Destination(t.Context(), store.Everything(), d.ID); err != nil {
		t.Fatal(err)
	}
	return d
}

// OpenWithdrawal requests a withdrawal.
func OpenWithdrawal(ctx context.Context, s *store.Store, r exchange.WithdrawalRequest, by exchange.Principal) (exchange.Withdrawal, error) {
	a, err := Ask(ctx, s, exchange.IntendWithdrawal, r.ID, r.ID, r.Terms(), by)
	if err != nil {
		return exchange.Withdrawal{}, err
	}
	return s.OpenWithdrawal(ctx, a)
}

// StepWithdrawal carries out a verb on a withdrawal.
func StepWithdrawal(ctx context.Context, s *store.Store, kind exchange.IntentKind, id uuid.UUID, step exchange.WithdrawalStep, by exchange.Principal) (exchange.Withdrawal, error) {
	request, err := uuid.NewV7()
	if err != nil {
		return exchange.Withdrawal{}, err
	}
	a, err := Ask(ctx, s, kind, request, id, step.Terms(), by)
	if err != nil {
		return exchange.Withdrawal{}, err
	}
	return s.StepWithdrawal(ctx, id, a)
}

// DecideWithdrawal has an officer approve or reject a withdrawal.
func DecideWithdrawal(ctx context.Context, s *store.Store, w exchange.Withdrawal, action exchange.ApprovalAction, by exchange.Principal) (exchange.WithdrawalStanding, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return exchange.WithdrawalStanding{}, err
	}
	k := exchange.ApprovalTicket{
		ID: id, OfficerID: by.UserID, ObjectType: exchange.ApproveWithdrawal, ObjectID: w.ID, Action: action, Amount: w.Payout, Digest: w.Digest, Channel: exchange.ChannelAPI,
		Note: "seen", TokenHash: sha256.Sum256([]byte(id.String())), CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
	}
	if _, err := s.IssueWithdrawalTicket(ctx, k, by); err != nil {
		return exchange.WithdrawalStanding{}, err
	}
	return s.DecideWithdrawal(ctx, w.ID, id.String(), action)
}
