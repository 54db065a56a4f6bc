package workflows_test

import (
	"context"
	"slices"
	"testing"

	"kivuko/activities"
	"kivuko/exchange"
)

// The list of parked flows, by the ids of the flows; was keeps what was ever on it.

func (b *book) KeepParked(_ context.Context, p exchange.ParkedFlow) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault != nil {
		if err := b.fault("KeepParked"); err != nil {
			return err
		}
	}
	if b.parked == nil {
		b.parked = map[string]exchange.ParkedFlow{}
	}
	b.parked[p.WorkflowID] = p
	b.wasParked = append(b.wasParked, p.WorkflowID+" "+p.Reason)
	return nil
}

func (b *book) DropParked(_ context.Context, workflowID string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.parked, workflowID)
	return nil
}

func (b *book) DropStaleParked(ctx context.Context, p exchange.ParkedFlow) error {
	return b.DropParked(ctx, p.WorkflowID)
}

func (b *book) ListParked(context.Context, exchange.ParkedFilter) ([]exchange.ParkedFlow, int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []exchange.ParkedFlow
	for _, p := range b.parked {
		all = append(all, p)
	}
	return all, len(all), nil
}

// listed takes the row of a flow that parks or goes on, where a test has no use for the list.
func listed(context.Context, activities.ListParkedInput) error { return nil }

// wantListed checks that a flow was on the list with a reason, and that nothing is on it any more.
func (b *book) wantListed(t *testing.T, flow, reason string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.wasParked, flow+" "+reason) || len(b.parked) > 0 {
		t.Errorf("%s was to be listed with %s and taken off: listed were %v, %v are still", flow, reason, b.wasParked, b.parked)
	}
}
