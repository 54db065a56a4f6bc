package storetest

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// OpenSwap opens a swap at the price of a quote.
func OpenSwap(ctx context.Context, s *store.Store, r exchange.SwapRequest, by exchange.Principal) (exchange.Swap, error) {
	a, err := Ask(ctx, s, exchange.IntendSwap, r.ID, r.ID, r.Terms(), by)
	if err != nil {
		return exchange.Swap{}, err
	}
	return s.OpenSwap(ctx, a)
}

// CancelSwap gives a swap up.
func CancelSwap(ctx context.Context, s *store.Store, id uuid.UUID, by exchange.Principal) (exchange.Swap, error) {
	request, err := uuid.NewV7()
	if err != nil {
		return exchange.Swap{}, err
	}
	a, err := Ask(ctx, s, exchange.IntendSwapCancel, request, id, nil, by)
	if err != nil {
		return exchange.Swap{}, err
	}
	return s.CancelSwap(ctx, id, a)
}

// DecideSwap has an officer approve or reject a swap.
func DecideSwap(ctx context.Context, s *store.Store, o exchange.Swap, action exchange.ApprovalAction, by exchange.Principal) (exchange.SwapStanding, error) {
	token, err := SwapTicket(ctx, s, o, action, by)
	if err != nil {
		return exchange.SwapStanding{}, err
	}
	return s.DecideSwap(ctx, o.ID, token, action)
}

// SwapTicket gives an officer the right to one decision about a swap, and returns its token.
func SwapTicket(ctx context.Context, s *store.Store, o exchange.Swap, action exchange.ApprovalAction, by exchange.Principal) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	_, err = s.IssueSwapTicket(ctx, exchange.ApprovalTicket{
		ID: id, OfficerID: by.UserID, ObjectType: exchange.ApproveSwap, ObjectID: o.ID, Action: action, Amount: o.From, Digest: o.Digest, Channel: exchange.ChannelAPI,
		Note: "seen", TokenHash: sha256.Sum256([]byte(id.String())), CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
	}, by)
	return id.String(), err
}
