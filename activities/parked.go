package activities

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// ParkedStore is what the list of parked flows needs of the database. Every method may be called again.
type ParkedStore interface {
	KeepParked(ctx context.Context, p exchange.ParkedFlow) error
	DropParked(ctx context.Context, workflowID string) error
	DropStaleParked(ctx context.Context, p exchange.ParkedFlow) error
	ListParked(ctx context.Context, f exchange.ParkedFilter) ([]exchange.ParkedFlow, int, error)
}

// ParkedIndex is Temporal's own list of the flows whose search attributes say that they are parked, which is right when it
// differs from the rows. It follows what happens within about a second.
type ParkedIndex interface {
	ParkedFlows(ctx context.Context) ([]exchange.ParkedFlow, error)
}

// ListParkedInput says that a flow is parked with a reason, or, without one, that it is not parked any more.
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

// ListParked writes or deletes the row of a flow that parks or goes on. Called again it changes nothing.
func (o *Orders) ListParked(ctx context.Context, in ListParkedInput) error {
	if in.Reason == "" {
		return Failure(ctx, o.Store.DropParked(ctx, in.WorkflowID))
	}
	return Failure(ctx, o.Store.KeepParked(ctx, exchange.ParkedFlow{
		WorkflowID: in.WorkflowID, RunID: in.RunID, Type: in.Type, ObjectType: in.ObjectType, ObjectID: in.ObjectID, Reason: in.Reason,
		Network: in.Network, Since: in.Since,
	}))
}

// parkedGrace is how old a difference between the rows and Temporal's list must be: the list lags, and a flow's row is written
// a moment after its search attribute.
const parkedGrace = 2 * time.Minute

// RepairedParked is how many rows a comparison with Temporal's list changed.
type RepairedParked struct {
	Added   int `json:"added,omitempty"`
	Removed int `json:"removed,omitempty"`
}

// RepairParked makes the rows what Temporal's list says: a flow that was terminated leaves its row behind, and a flow that was
// reset may have none. What changed within parkedGrace is left for the next comparison. A flow that parks or goes on meanwhile
// writes its own row, and a stale row is deleted only as it was read.
func (o *Orders) RepairParked(ctx context.Context) (RepairedParked, error) {
	var done RepairedParked
	// The rows are read first: what parks between the two reads is then only added, which KeepParked takes twice.
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
