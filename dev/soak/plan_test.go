package soak

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kivuko/momo/sandbox"
)

// The same seed makes the same plan, another seed another plan.
func TestPlansRepeat(t *testing.T) {
	t.Parallel()
	const length = 5 * time.Minute
	first, again, other := fmt.Sprint(Plan(7, length, 3, "")), fmt.Sprint(Plan(7, length, 3, "")), fmt.Sprint(Plan(8, length, 3, ""))
	if first != again || first == other {
		t.Error("a seed does not name its plan")
	}
}

// Only plans of swaps have the troubles of swaps, and they have each on every network and about both assets.
func TestSwapsHaveTroublesOfTheirOwn(t *testing.T) {
	t.Parallel()
	of := func(only Kind) map[string]bool {
		seen := map[string]bool{}
		for _, s := range Plan(1, 10*time.Hour, 3, only) {
			seen[fmt.Sprint(s.Fault, s.Network, s.Inside)] = true
		}
		return seen
	}
	swaps, others := of(Swap), of("")
	for _, w := range swapWeights {
		for network := range 3 {
			for _, usdt := range []bool{false, true} {
				if key := fmt.Sprint(w.fault, network, usdt); !swaps[key] || others[key] {
					t.Errorf("%q on %d: in plans of swaps %t, in all others %t", w.fault, network, swaps[key], others[key])
				}
			}
		}
	}
}

// Every planned fault is one of the sandbox's for the planned service, and a long plan has every kind of step on every
// network.
func TestPlansAskForWhatThereIs(t *testing.T) {
	t.Parallel()
	known := sandbox.Behaviours()
	seen := map[string]bool{}
	for _, s := range Plan(1, 10*time.Hour, 3, "") {
		if s.Operator != "" && !slices.ContainsFunc(known, func(b sandbox.Behaviour) bool { return b.Name == s.Operator && slices.Contains(b.Ops, s.operation()) }) {
			t.Fatalf("%q is no behaviour of the operator's for a %s", s.Operator, s.Kind)
		}
		seen[string(s.Fault)], seen[s.Operator] = true, true
		for _, what := range []any{s.Kind, s.Odd, s.Inside, s.Bank, s.Refuses, s.Returns} {
			seen[fmt.Sprintf("%s %v on %d", s.Kind, what, s.Network)] = true
		}
	}
	for _, w := range weights {
		if !seen[string(w.fault)] {
			t.Errorf("%q never comes", w.fault)
		}
	}
	for _, name := range slices.Concat(collecting, paying, unhurried) {
		if !seen[name] {
			t.Errorf("%q never comes", name)
		}
	}
	for network := range 3 {
		for _, o := range odds {
			if what := fmt.Sprintf("%s %v on %d", Sale, o, network); !seen[what] {
				t.Errorf("%q never comes", what)
			}
		}
		for _, s := range shares {
			if what := fmt.Sprintf("%s %v on %d", s.kind, s.kind, network); !seen[what] {
				t.Errorf("%q never comes", what)
			}
		}
	}
}
