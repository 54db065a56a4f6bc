package workflows_test

import (
	"context"
	"testing"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// stale is a database with more old rows than a test would write.
type stale struct {
	activities.OrderStore
	rows  int
	fault func(string) error
}

func (s *stale) Prune(_ context.Context, limit int) (exchange.Pruned, error) {
	if err := s.fault("Prune"); err != nil {
		return exchange.Pruned{}, err
	}
	n := min(limit, s.rows)
	s.rows -= n
	return exchange.Pruned{IdempotencyKeys: n, Sessions: min(n, 1)}, nil
}

// A run deletes all batches up to its limit, and leaves the rest to the next run.
func TestPruneGoesOnWhileThereIsMore(t *testing.T) {
	for name, c := range map[string]struct {
		stale, deleted int
		more           bool
	}{"little": {stale: 7, deleted: 7}, "batches": {stale: 2500, deleted: 2500}, "too much": {stale: 250_000, deleted: 100_000, more: true}} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment(nil)
			env.RegisterActivity(&activities.Orders{Store: &stale{rows: c.stale, fault: once("Prune")}})
			env.ExecuteWorkflow(workflows.Prune)
			if err := env.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			var got activities.Pruned
			if err := env.GetWorkflowResult(&got); err != nil || got.IdempotencyKeys != c.deleted || got.More != c.more {
				t.Errorf("deleted %+v, %v", got, err)
			}
		})
	}
}
