package activities

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// SwapStore stores swaps for flows. Every method is one transaction and may be called again: a swap that has gone on already is returned
// unchanged.
type SwapStore interface {
	// OpenSwap and CancelSwap carry out an intent about a swap, DecideSwap an officer's decision.
	OpenSwap(ctx context.Context, a exchange.Asked) (exchange.Swap, error)
	CancelSwap(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Swap, error)
	DecideSwap(ctx context.Context, id uuid.UUID, token string, action exchange.ApprovalAction) (exchange.SwapStanding, error)
	// CollectSwap, PayOutSwap and RefundSwap approve the payment of a leg, or find it.
	CollectSwap(ctx context.Context, id uuid.UUID) (exchange.SwapStanding, error)
	PayOutSwap(ctx context.Context, id uuid.UUID) (exchange.SwapStanding, error)
	RefundSwap(ctx context.Context, id uuid.UUID) (exchange.SwapStanding, error)
	ExpireSwap(ctx context.Context, id uuid.UUID) (exchange.Swap, error)
	StallSwap(ctx context.Context, id uuid.UUID) (exchange.Swap, error)
	// GiveUpSwap and RetrySwapPayout carry out an operator's command.
	GiveUpSwap(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.Swap, error)
	RetrySwapPayout(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.SwapStanding, error)
	SwapByID(ctx context.Context, id uuid.UUID) (exchange.Swap, error)
	SwapInventory(ctx context.Context) ([]exchange.SwapInventory, error)
	WatchSwapInventory(ctx context.Context) ([]exchange.SwapInventory, error)
	refusalStore
	actingStore
}

// Swaps changes the rows of swaps. It is registered on the flows queue.
type Swaps struct{ Store SwapStore }

// SwapState is the state of a swap. Version grows with every change, so that of two answers the newer one is known.
type SwapState struct {
	SwapID    uuid.UUID           `json:"swap_id"`
	Status    exchange.SwapStatus `json:"status"`
	Detail    string              `json:"detail,omitempty"`
	PaymentID uuid.UUID           `json:"payment_id,omitzero"` // of the leg that is under way
	Approvals int                 `json:"approvals,omitempty"`
	Required  int                 `json:"approvals_required,omitempty"`
	Expires   time.Time           `json:"expires_at,omitzero"` // unless something is signed before
	PayoutDue time.Time           `json:"payout_due,omitzero"` // until when the second leg is waited for
	Version   int64               `json:"version"`
}

// OpenedSwap is a swap as it was asked for: what the flow needs for its decisions and its details.
type OpenedSwap struct {
	SwapState
	Network    exchange.Network `json:"network"`
	From       money.Amount     `json:"from"`
	To         money.Amount     `json:"to"`
	MerchantID uuid.UUID        `json:"merchant_id,omitzero"`
}

func swapState(s exchange.Swap) SwapState {
	return SwapState{
		SwapID: s.ID, Status: s.Status, Detail: s.StatusDetail, Expires: s.ExpiresAt, PayoutDue: s.PayoutDue(), Version: s.Version,
	}
}

func swapStanding(s exchange.SwapStanding) SwapState {
	out := swapState(s.Swap)
	out.PaymentID, out.Approvals, out.Required = s.PaymentID, s.Approvals, s.Needed
	return out
}

// OpenSwap stores the swap that an intent asks for and holds both sides. Refusals have the codes of the store's OpenSwap.
func (a *Swaps) OpenSwap(ctx context.Context, in IntentInput) (OpenedSwap, error) {
	s, err := a.Store.OpenSwap(ctx, in.asked(ctx))
	if err != nil {
		return OpenedSwap{}, Failure(ctx, err)
	}
	return OpenedSwap{SwapState: swapState(s), Network: s.Network, From: s.From, To: s.To, MerchantID: s.VendorID}, nil
}

// SwapInput names a swap.
type SwapInput struct {
	SwapID uuid.UUID `json:"swap_id"`
}

// ReadSwap returns the state of a swap.
func (a *Swaps) ReadSwap(ctx context.Context, in SwapInput) (SwapState, error) {
	s, err := a.Store.SwapByID(ctx, in.SwapID)
	return swapState(s), Failure(ctx, err)
}

// CollectSwap approves the first leg when the rule about all that leaves allows it.
func (a *Swaps) CollectSwap(ctx context.Context, in SwapInput) (SwapState, error) {
	s, err := a.Store.CollectSwap(ctx, in.SwapID)
	return swapStanding(s), Failure(ctx, err)
}

// ExpireSwap ends a swap of which nothing was signed in time.
func (a *Swaps) ExpireSwap(ctx context.Context, in SwapInput) (SwapState, error) {
	s, err := a.Store.ExpireSwap(ctx, in.SwapID)
	return swapState(s), Failure(ctx, err)
}

// PayOutSwap approves the second leg of a swap whose first is final.
func (a *Swaps) PayOutSwap(ctx context.Context, in SwapInput) (SwapState, error) {
	s, err := a.Store.PayOutSwap(ctx, in.SwapID)
	return swapStanding(s), Failure(ctx, err)
}

// StallSwap has officers look at a swap whose second leg stands still.
func (a *Swaps) StallSwap(ctx context.Context, in SwapInput) (SwapState, error) {
	s, err := a.Store.StallSwap(ctx, in.SwapID)
	return swapState(s), Failure(ctx, err)
}

// RefundSwap brings back what a swap collected. CodeStateConflict while the second leg may move money.
func (a *Swaps) RefundSwap(ctx context.Context, in SwapInput) (SwapState, error) {
	s, err := a.Store.RefundSwap(ctx, in.SwapID)
	return swapStanding(s), Failure(ctx, err)
}

// CancelSwapInput is a cancellation, by the intent that asks for it.
type CancelSwapInput struct {
	SwapID   uuid.UUID `json:"swap_id"`
	IntentID uuid.UUID `json:"intent_id"`
}

// CancelSwap gives a swap up while nothing is signed.
func (a *Swaps) CancelSwap(ctx context.Context, in CancelSwapInput) (SwapState, error) {
	s, err := a.Store.CancelSwap(ctx, in.SwapID, Behalf{IntentID: in.IntentID}.asked(ctx))
	return swapState(s), Failure(ctx, err)
}

// DecideSwapInput is a decision that claims to be an officer's, see DecideInput.
type DecideSwapInput struct {
	SwapID uuid.UUID               `json:"swap_id"`
	Action exchange.ApprovalAction `json:"action"`
	Token  string                  `json:"token"`
}

// DecideSwap accepts only the token, as DecideTransfer does.
func (a *Swaps) DecideSwap(ctx context.Context, in DecideSwapInput) (SwapState, error) {
	if err := plausible(in.Action, in.Token); err != nil {
		return SwapState{}, Failure(ctx, err)
	}
	s, err := a.Store.DecideSwap(ctx, in.SwapID, in.Token, in.Action)
	return swapStanding(s), Failure(ctx, err)
}

// RefusedSwapDecisionInput describes a decision about a swap without proof.
type RefusedSwapDecisionInput struct {
	SwapID  uuid.UUID                `json:"swap_id"`
	Action  exchange.ApprovalAction  `json:"action"`
	Channel exchange.ApprovalChannel `json:"channel"`
	Code    exchange.Code            `json:"code"`
}

// RecordRefusedSwapDecision records an attempt to decide about a swap without the right to, for the auditor.
func (a *Swaps) RecordRefusedSwapDecision(ctx context.Context, in RefusedSwapDecisionInput) error {
	return Failure(ctx, a.Store.RecordRefusedDecision(ctx, exchange.ApproveSwap, in.SwapID, in.Action, in.Channel, in.Code))
}

// SwapCommandInput is an operator's command about a swap.
type SwapCommandInput struct {
	SwapID uuid.UUID `json:"swap_id"`
	Proof  Proof     `json:"proof"`
}

// GiveUpSwap ends a swap whose first leg can't be carried out. CodeStateConflict while a transaction of it may move the money.
func (a *Swaps) GiveUpSwap(ctx context.Context, in SwapCommandInput) (SwapState, error) {
	by, err := actor(ctx, a.Store, in.Proof.Behalf())
	if err != nil {
		return SwapState{}, Failure(ctx, err)
	}
	s, err := a.Store.GiveUpSwap(ctx, in.SwapID, by)
	return swapState(s), Failure(ctx, err)
}

// RetrySwapPayout lets a second leg go on that stands still: one that was given up by its flow is approved again, and one on its way is
// waited for.
func (a *Swaps) RetrySwapPayout(ctx context.Context, in SwapCommandInput) (SwapState, error) {
	by, err := actor(ctx, a.Store, in.Proof.Behalf())
	if err != nil {
		return SwapState{}, Failure(ctx, err)
	}
	s, err := a.Store.RetrySwapPayout(ctx, in.SwapID, by)
	return swapStanding(s), Failure(ctx, err)
}

// InventoryWatched is what a comparison of the treasury's wallets with their water marks found.
type InventoryWatched struct {
	Low []InventoryLow `json:"low,omitempty"`
}

// InventoryLow is an asset of which a treasury wallet has too little for swaps.
type InventoryLow struct {
	Network exchange.Network `json:"network"`
	Asset   money.Asset      `json:"asset"`
}

// WatchInventory compares what the treasury's wallets have for swaps with their water marks. Events tell of what fell below its low mark
// and of what has enough again; a gauge has what is low now.
func (a *Swaps) WatchInventory(ctx context.Context) (InventoryWatched, error) {
	var out InventoryWatched
	low, err := a.Store.WatchSwapInventory(ctx)
	if err != nil {
		return out, Failure(ctx, err)
	}
	for _, i := range low {
		out.Low = append(out.Low, InventoryLow{i.Network, i.Asset})
	}
	all, err := a.Store.SwapInventory(ctx)
	for _, i := range all {
		short := 0
		if i.IsLow() {
			short = 1
		}
		of := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"network": string(i.Network), "asset": string(i.Asset)})
		of.Gauge("kivuko_swap_inventory_low").Update(float64(short)) //nolint:forbidigo // a gauge of the SDK takes nothing else, and yes or no is no money
	}
	return out, Failure(ctx, err)
}
