package workflows_test

import (
	"context"
	"testing"

	"kivuko/activities"
	"kivuko/workflows"
)

// unsettled is a database with more lines of statements than a test would write.
type unsettled struct {
	lines int
	fault func(string) error
}

func (u *unsettled) MatchLines(context.Context) (int, error) {
	if err := u.fault("MatchLines"); err != nil {
		return 0, err
	}
	n := min(100, u.lines)
	u.lines -= n
	return n, nil
}

// A run settles all lines up to its limit, and leaves the rest to the next run.
func TestStatementsAreMatchedWhileThereAreMoreLines(t *testing.T) {
	for name, c := range map[string]struct {
		lines, settled int
		more           bool
	}{"nothing": {}, "a few": {lines: 7, settled: 7}, "batches": {lines: 2_550, settled: 2_550}, "too many": {lines: 150_000, settled: 100_000, more: true}} {
		t.Run(name, func(t *testing.T) {
			env := newEnvironment(nil)
			env.RegisterActivity(&activities.House{Store: &unsettled{lines: c.lines, fault: once("MatchLines")}})
			env.ExecuteWorkflow(workflows.MatchStatements)
			if err := env.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			var got activities.MatchedLines
			if err := env.GetWorkflowResult(&got); err != nil || got.Settled != c.settled || got.More != c.more {
				t.Errorf("settled %+v, %v", got, err)
			}
		})
	}
}
