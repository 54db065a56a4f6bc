package soak

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kivuko/momo/sandbox"
)

// A seed makes the same plan, and another one another.
func TestPlansRepeat(t *testing.T) {
	t.Parallel()
	const length = 5 * time.Minute
	first, again, other := fmt.Sprint(Plan(7, length, 3)), fmt.Sprint(Plan(7, length, 3)), fmt.Sprint(Plan(8, length, 3))
	if first != again || first == other {
		t.Error("a seed does not name its plan")
	}
}

// Every behaviour that a plan asks for is one of the sandbox's, for the service that it is asked of, and every kind of
// thing comes in a long plan.
func TestPlansAskForWhatThereIs(t *testing.T) {
	t.Parallel()
	known := sandbox.Behaviours()
	for kind, names := range map[Kind][]string{Purchase: collecting, Sale: paying} {
		for _, name := range names {
			if !slices.ContainsFunc(known, func(b sandbox.Behaviour) bool { return b.Name == name && slices.Contains(b.Ops, operations[kind]) }) {
				t.Errorf("%s is no behaviour for a %s", name, kind)
			}
		}
	}
	seen := map[string]bool{}
	for _, s := range Plan(1, 3*time.Hour, 3) {
		seen[string(s.Kind)], seen[string(s.Blow)], seen[s.Operator] = true, true, true
	}
	for _, w := range weights {
		if !seen[string(w.blow)] {
			t.Errorf("%q never comes", w.blow)
		}
	}
	for _, name := range slices.Concat(collecting, paying, []string{string(Purchase), string(Sale), string(Transfer)}) {
		if !seen[name] {
			t.Errorf("%q never comes", name)
		}
	}
}
