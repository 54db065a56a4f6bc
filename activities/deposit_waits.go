package activities

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// DepositWaitStore is where flows say that they wait for money.
type DepositWaitStore interface {
	AwaitDeposits(ctx context.Context, n exchange.Network, address, workflowID string, since time.Time) (exchange.DepositWait, error)
	EndDepositWait(ctx context.Context, n exchange.Network, address, workflowID string) error
	ChainDeposit(ctx context.Context, id uuid.UUID) (exchange.ChainDeposit, error)
	RecordWoken(ctx context.Context, ids []uuid.UUID) error
}

// DepositWaits lets flows wait for money on a chain.
type DepositWaits struct{ Store DepositWaitStore }

// AwaitInput says which flow waits for money at which address of ours, and from when on.
type AwaitInput struct {
	Network    exchange.Network `json:"network"`
	Address    string           `json:"address"`
	WorkflowID string           `json:"workflow_id"`
	Since      time.Time        `json:"since"`
}

// AwaitDeposits has the flow woken by the signal "chain-deposit" whenever a movement into the address is
// seen, final or orphaned; what came since the given time wakes it too.
func (w *DepositWaits) AwaitDeposits(ctx context.Context, in AwaitInput) error {
	_, err := w.Store.AwaitDeposits(ctx, in.Network, in.Address, in.WorkflowID, in.Since)
	return Failure(ctx, err)
}

// EndDepositWait stops it.
func (w *DepositWaits) EndDepositWait(ctx context.Context, in AwaitInput) error {
	return Failure(ctx, w.Store.EndDepositWait(ctx, in.Network, in.Address, in.WorkflowID))
}

// DepositInput names a movement.
type DepositInput struct {
	DepositID uuid.UUID `json:"deposit_id"`
}

// DepositState is what a flow may know of a movement.
type DepositState struct {
	DepositID uuid.UUID                   `json:"deposit_id"`
	Network   exchange.Network            `json:"network"`
	TxID      string                      `json:"tx_id"`
	WalletID  uuid.UUID                   `json:"wallet_id,omitzero"`
	Asset     money.Asset                 `json:"asset"`
	Amount    money.Amount                `json:"amount"`
	Kind      exchange.DepositKind        `json:"kind"`
	Status    exchange.ChainDepositStatus `json:"status"`
	Block     uint64                      `json:"block"`
}

// LookAtDeposit reads a movement that a flow was woken for. A signal proves nothing; the row does.
func (w *DepositWaits) LookAtDeposit(ctx context.Context, in DepositInput) (DepositState, error) {
	d, err := w.Store.ChainDeposit(ctx, in.DepositID)
	return DepositState{
		DepositID: d.ID, Network: d.Network, TxID: d.TxID, WalletID: d.WalletID, Asset: d.Amount.Asset(), Amount: d.Amount, Kind: d.Kind,
		Status: d.Status, Block: d.Block,
	}, Failure(ctx, err)
}

// WokenInput names signals that were sent.
type WokenInput struct {
	IDs []uuid.UUID `json:"ids"`
}

// RecordWoken notes that signals were sent, so that they are not sent again.
func (w *DepositWaits) RecordWoken(ctx context.Context, in WokenInput) error {
	return Failure(ctx, w.Store.RecordWoken(ctx, in.IDs))
}
