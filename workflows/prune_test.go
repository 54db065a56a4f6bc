package workflows_test

import (
	"testing"

	"kivuko/activities"
	"kivuko/workflows"
)

// A run deletes all batches up to its limit, and leaves the rest to the next run.
func TestPruneGoesOnWhileThereIsMore(t *testing.T) {
	for name, c := range map[string]struct {
		stale, deleted int
		more           bool
	}{"little": {stale: 7, deleted: 7}, "batches": {stale: 2500, deleted: 2500}, "too much": {stale: 250_000, deleted: 100_000, more: true}} {
		t.Run(name, func(t *testing.T) {
			w := newHarness()
			w.book.stale, w.book.fault = c.stale, once("Prune")
			w.env.ExecuteWorkflow(workflows.Prune)
			if err := w.env.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			var got activities.Pruned
			if err := w.env.GetWorkflowResult(&got); err != nil || got.IdempotencyKeys != c.deleted || got.More != c.more {
				t.Errorf("deleted %+v, %v", got, err)
			}
		})
	}
}
