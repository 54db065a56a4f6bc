package workflows_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The list of parked flows, by the ids of the flows.

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

func (b *book) ParkedFlow(_ context.Context, workflowID string) (exchange.ParkedFlow, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, a := b.parked[workflowID], aboutParked
	p.OrderID, p.ExceptionID, p.CustomerID, p.Amount = a.OrderID, a.ExceptionID, a.CustomerID, a.Amount
	return p, nil
}

// listed accepts the row of a flow that parks or resumes, in tests that don't use the list.
func listed(context.Context, activities.ListParkedInput) (activities.ParkedObject, error) {
	return aboutParked, nil
}

// aboutParked is the content of every parked flow's row in a test.
var aboutParked = activities.ParkedObject{
	OrderID: uuid.MustParse("00000000-0000-4000-8000-0000000000a1"), ExceptionID: uuid.MustParse("00000000-0000-4000-8000-0000000000a2"),
	CustomerID: uuid.MustParse("00000000-0000-4000-8000-0000000000a3"), Amount: money.Must(money.KES, "1250"),
}

// wantListed checks that a flow was on the list with a reason, and that the list is empty now.
func (w *harness) wantListed(t *testing.T, flow, reason string) {
	t.Helper()
	left, _, err := w.store.ListParked(t.Context(), exchange.ParkedFilter{})
	if err != nil || !slices.Contains(w.store.wasParked, flow+" "+reason) || len(left) > 0 {
		t.Errorf("%s was to be listed with %s and taken off: listed were %v, %v are still; %v", flow, reason, w.store.wasParked, left, err)
	}
}
