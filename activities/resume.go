package activities

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// FlowState is what Temporal knows of the flow of a live row.
type FlowState string

// The states of a flow.
const (
	FlowRuns     FlowState = "runs"
	FlowGone     FlowState = "gone"     // it was never started, or has ended
	FlowStranded FlowState = "stranded" // it runs, and waits for a child that has ended
)

// LiveFlows is what Temporal knows of the flows that carry live rows, and how to start one.
type LiveFlows interface {
	State(ctx context.Context, r exchange.LiveRow) (FlowState, error)
	// Start starts the row's flow. One that runs already is no error.
	Start(ctx context.Context, r exchange.LiveRow) error
	// Remind makes a running flow look again at what it waits for. One that has ended is no error.
	Remind(ctx context.Context, r exchange.LiveRow) error
}

// LiveStore is the database interface of Resume.
type LiveStore interface {
	LiveRows(ctx context.Context, unchangedSince time.Time, after exchange.LivePlace, limit int) ([]exchange.LiveRow, error)
}

// Resume compares every live row with its flow. A flow that was terminated, that ended in another way before its row did, or that
// was lost with Temporal's database is started again: it finds in the rows what was done. One that waits for a child whose end it
// never learnt, as after a reset, is reminded to look again.
type Resume struct {
	Store LiveStore
	Flows LiveFlows
	Log   *slog.Logger // nil in an activity, which has its own
}

// Resumed is what a comparison found.
type Resumed struct {
	Rows     int                `json:"rows,omitempty"`
	Gone     int                `json:"gone,omitempty"`     // rows whose flow was missing
	Started  int                `json:"started,omitempty"`  // flows that were started for them
	Reminded int                `json:"reminded,omitempty"` // flows that look again
	After    exchange.LivePlace `json:"after,omitzero"`     // where the next page begins
	More     bool               `json:"more,omitempty"`
}

// ResumeInput asks for a page. Gone is the number of missing flows on the pages before.
type ResumeInput struct {
	Since time.Time          `json:"since"` // rows that changed after it are left out
	After exchange.LivePlace `json:"after,omitzero"`
	Gone  int                `json:"gone,omitempty"`
}

const livePage = 200

// Page compares one page of the live rows. A flow that can't be started is counted as gone; the next comparison tries again.
func (r Resume) Page(ctx context.Context, in ResumeInput) (Resumed, error) {
	rows, err := r.Store.LiveRows(ctx, in.Since, in.After, livePage)
	if err != nil {
		return Resumed{}, err
	}
	done := Resumed{Rows: len(rows), More: len(rows) == livePage}
	for _, row := range rows {
		done.After = row.Place()
		state, err := r.Flows.State(ctx, row)
		if err == nil {
			err = r.mend(ctx, row, state, &done)
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (r Resume) mend(ctx context.Context, row exchange.LiveRow, state FlowState, done *Resumed) error {
	switch state {
	case FlowRuns:
	case FlowStranded:
		done.Reminded++
		return r.Flows.Remind(ctx, row)
	case FlowGone:
		done.Gone++
		if err := r.Flows.Start(ctx, row); err != nil {
			r.say(ctx, row, "can't be started again", err)
			return nil
		}
		done.Started++
		r.say(ctx, row, "was started again", nil)
	}
	return nil
}

func (r Resume) say(ctx context.Context, row exchange.LiveRow, outcome string, err error) {
	const gone = "ALERT a flow was gone"
	if r.Log != nil {
		r.Log.Error(gone, "outcome", outcome, "kind", row.Kind, "object", row.ObjectID, "error", err)
		return
	}
	activity.GetLogger(ctx).Error(gone, "outcome", outcome, "kind", row.Kind, "object", row.ObjectID, "error", err)
}

// ResumeFlows compares a page of the live rows with their flows. The last page sets the gauge of flows that were gone.
func (o *Orders) ResumeFlows(ctx context.Context, in ResumeInput) (Resumed, error) {
	done, err := Resume{Store: o.Store, Flows: o.Flows}.Page(ctx, in)
	if err != nil {
		return done, Failure(ctx, err)
	}
	if !done.More {
		gauge(ctx, "kivuko_flows_gone", int64(in.Gone+done.Gone))
	}
	return done, nil
}

// PurchaseProgress reads what was done for a purchase before its flow was started again.
func (o *Orders) PurchaseProgress(ctx context.Context, in OrderInput) (exchange.PurchaseProgress, error) {
	p, err := o.Store.PurchaseProgress(ctx, in.OrderID)
	return p, Failure(ctx, err)
}
