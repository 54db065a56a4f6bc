package activities

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// ParkedStore is the database interface of the list of parked flows. Every method may be called again.
type ParkedStore interface {
	KeepParked(ctx context.Context, p exchange.ParkedFlow) error
	DropParked(ctx context.Context, workflowID string) error
	DropStaleParked(ctx context.Context, p exchange.ParkedFlow) error
	ListParked(ctx context.Context, f exchange.ParkedFilter) ([]exchange.ParkedFlow, int, error)
	ParkedFlow(ctx context.Context, workflowID string) (exchange.ParkedFlow, error)
}

// ParkedIndex is Temporal's own list of the flows whose search attributes show them as parked. It takes precedence over the
// rows, and lags by about a second.
type ParkedIndex interface {
	ParkedFlows(ctx context.Context) ([]exchange.ParkedFlow, error)
}

// ListParkedInput names a flow that is parked with a reason, or, without one, is not parked any more.
type ListParkedInput struct {
	WorkflowID string           `json:"workflow_id"`
	RunID      string           `json:"run_id"`
	Type       string           `json:"type"`
	ObjectType string           `json:"object_type,omitempty"`
	ObjectID   uuid.UUID        `json:"object_id,omitzero"`
	Reason     string           `json:"reason,omitempty"`
	Network    exchange.Network `json:"network,omitempty"`
	Since      time.Time        `json:"since,omitzero"`
}

// ParkedObject identifies the object of a parked flow for its details: ids and an amount, no personal data.
type ParkedObject struct {
	OrderID     uuid.UUID    `json:"order_id,omitzero"`
	ExceptionID uuid.UUID    `json:"exception_id,omitzero"`
	RefundID    uuid.UUID    `json:"refund_id,omitzero"`
	TransferID  uuid.UUID    `json:"transfer_id,omitzero"`
	FeeSweepID  uuid.UUID    `json:"fee_sweep_id,omitzero"`
	SwapID      uuid.UUID    `json:"swap_id,omitzero"`
	MultisigID  uuid.UUID    `json:"multisig_id,omitzero"`
	ProposalID  uuid.UUID    `json:"proposal_id,omitzero"`
	CustomerID  uuid.UUID    `json:"customer_id,omitzero"`
	Amount      money.Amount `json:"amount,omitzero"`
	// WithdrawalID is that of a withdrawal, and of what belongs to one.
	WithdrawalID uuid.UUID `json:"withdrawal_id,omitzero"`
	DepositID    uuid.UUID `json:"otc_deposit_id,omitzero"`
}

// ListParked writes the row of a flow that parks and returns its object, or deletes the row of a flow that goes on. Called
// again it changes nothing.
func (o *Orders) ListParked(ctx context.Context, in ListParkedInput) (ParkedObject, error) {
	if in.Reason == "" {
		return ParkedObject{}, Failure(ctx, o.Store.DropParked(ctx, in.WorkflowID))
	}
	err := o.Store.KeepParked(ctx, exchange.ParkedFlow{
		WorkflowID: in.WorkflowID, RunID: in.RunID, Type: in.Type, ObjectType: in.ObjectType, ObjectID: in.ObjectID, Reason: in.Reason,
		Network: in.Network, Since: in.Since,
	})
	if err != nil {
		return ParkedObject{}, Failure(ctx, err)
	}
	p, err := o.Store.ParkedFlow(ctx, in.WorkflowID)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return ParkedObject{}, nil // RepairParked has removed a stale row, and writes it again
	}
	return ParkedObject{
		OrderID: p.OrderID, ExceptionID: p.ExceptionID, RefundID: p.RefundID, TransferID: p.TransferID, FeeSweepID: p.FeeSweepID, SwapID: p.SwapID, MultisigID: p.MultisigID, ProposalID: p.ProposalID, CustomerID: p.CustomerID, Amount: p.Amount,
		WithdrawalID: p.WithdrawalID, DepositID: p.DepositID,
	}, Failure(ctx, err)
}

// parkedGrace is the minimum age of a difference between the rows and Temporal's list before it is repaired: the list lags,
// and a flow's row is written a moment after its search attribute.
const parkedGrace = 2 * time.Minute

// RepairedParked is how many rows a comparison with Temporal's list changed.
type RepairedParked struct {
	Added   int `json:"added,omitempty"`
	Removed int `json:"removed,omitempty"`
}

// RepairParked makes the rows agree with Temporal's list: a terminated flow leaves its row behind, and a reset flow may have
// none. Changes within parkedGrace are left for the next comparison. A flow that parks or goes on meanwhile writes its own
// row, and a stale row is deleted only if it is unchanged since it was read.
func (o *Orders) RepairParked(ctx context.Context) (RepairedParked, error) {
	var done RepairedParked
	// The rows are read first: a flow that parks between the two reads is then added again, which KeepParked allows.
	rows, err := o.everyParked(ctx)
	if err != nil {
		return done, Failure(ctx, err)
	}
	listed, err := o.Index.ParkedFlows(ctx)
	if err != nil {
		return done, Failure(ctx, err)
	}
	for _, p := range listed {
		was, found := rows[p.WorkflowID]
		delete(rows, p.WorkflowID)
		if found && was.Reason == p.Reason || found && time.Since(was.Since) < parkedGrace || time.Since(p.Since) < parkedGrace {
			continue
		}
		p.Since = time.Now() // Temporal's list does not say when a flow parked
		if err := o.Store.KeepParked(ctx, p); err != nil {
			return done, Failure(ctx, err)
		}
		done.Added++
	}
	for _, p := range rows {
		if time.Since(p.Since) < parkedGrace {
			continue
		}
		if err := o.Store.DropStaleParked(ctx, p); err != nil {
			return done, Failure(ctx, err)
		}
		done.Removed++
	}
	if done != (RepairedParked{}) {
		activity.GetLogger(ctx).Warn("the list of parked flows was repaired", "added", done.Added, "removed", done.Removed)
	}
	return done, nil
}

// everyParked reads the whole list by the ids of its flows.
func (o *Orders) everyParked(ctx context.Context) (map[string]exchange.ParkedFlow, error) {
	all := map[string]exchange.ParkedFlow{}
	f := exchange.ParkedFilter{Size: parkedPage}
	for {
		page, _, err := o.Store.ListParked(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, p := range page {
			all[p.WorkflowID] = p
		}
		if len(page) < parkedPage {
			return all, nil
		}
		f.After = page[len(page)-1].Place()
	}
}

const parkedPage = 100
