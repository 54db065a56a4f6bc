package activities

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// DepositWaitStore stores which flows wait for deposits.
type DepositWaitStore interface {
	AwaitDeposits(ctx context.Context, n exchange.Network, address, workflowID string, since time.Time) (exchange.DepositWait, error)
	EndDepositWait(ctx context.Context, n exchange.Network, address, workflowID string) error
	ChainDeposit(ctx context.Context, id uuid.UUID) (exchange.ChainDeposit, error)
	RecordWoken(ctx context.Context, ids []uuid.UUID) error
}

// DepositWaits lets flows wait for deposits on a chain.
type DepositWaits struct{ Store DepositWaitStore }

// AwaitInput names the flow that waits, the address of ours, and the start of the wait.
type AwaitInput struct {
	Network    exchange.Network `json:"network"`
	Address    string           `json:"address"`
	WorkflowID string           `json:"workflow_id"`
	Since      time.Time        `json:"since"`
}

// AwaitDeposits makes the watch send the flow the signal "chain-deposit" whenever a movement into the address is seen, final
// or orphaned, including movements since the given time.
func (w *DepositWaits) AwaitDeposits(ctx context.Context, in AwaitInput) error {
	_, err := w.Store.AwaitDeposits(ctx, in.Network, in.Address, in.WorkflowID, in.Since)
	return Failure(ctx, err)
}

// EndDepositWait ends the wait.
func (w *DepositWaits) EndDepositWait(ctx context.Context, in AwaitInput) error {
	return Failure(ctx, w.Store.EndDepositWait(ctx, in.Network, in.Address, in.WorkflowID))
}

// DepositInput names a movement.
type DepositInput struct {
	DepositID uuid.UUID `json:"deposit_id"`
}

// DepositState is the part of a movement that flows may know.
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

// LookAtDeposit reads the movement that a signal named. Only the row proves it.
func (w *DepositWaits) LookAtDeposit(ctx context.Context, in DepositInput) (DepositState, error) {
	d, err := w.Store.ChainDeposit(ctx, in.DepositID)
	return DepositState{
		DepositID: d.ID, Network: d.Network, TxID: d.TxID, WalletID: d.WalletID, Asset: d.Amount.Asset(), Amount: d.Amount, Kind: d.Kind,
		Status: d.Status, Block: d.Block,
	}, Failure(ctx, err)
}

// WokenInput names the signals that were sent.
type WokenInput struct {
	IDs []uuid.UUID `json:"ids"`
}

// RecordWoken records that signals were sent, so that they are not sent again.
func (w *DepositWaits) RecordWoken(ctx context.Context, in WokenInput) error {
	return Failure(ctx, w.Store.RecordWoken(ctx, in.IDs))
}
