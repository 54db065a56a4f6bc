package exchange

import (
	"fmt"
	"slices"
	"strings"
)

// Who may cause a transition, besides the roles. These are parts of the service or officers.
const (
	ByFlow     = "flow"     // the object's own workflow
	ByOperator = "operator" // an admin or treasury officer acting on a parked flow
)

// Transition is one arrow of a state machine.
type Transition[S ~string] struct {
	From S      `json:"from"`
	To   S      `json:"to"`
	By   string `json:"by"`  // who may cause it: a role, ByFlow or ByOperator
	Why  string `json:"why"` // the guard: what must be true
}

// Machine is a state machine as data. The same value guards the code (Allow), the SQL (Sources),
// the documentation (Mermaid) and GET /api/v1/auth/state-machines.
type Machine[S ~string] struct {
	Name        string          `json:"name"`
	Initial     S               `json:"initial"`
	Transitions []Transition[S] `json:"transitions"`
	Final       []S             `json:"final"`
}

// Allow returns a CodeStateConflict error unless the machine has a transition between the two states.
func (m Machine[S]) Allow(from, to S) error {
	for _, t := range m.Transitions {
		if t.From == from && t.To == to {
			return nil
		}
	}
	return Errorf(CodeStateConflict, "The %s is %s and can't become %s.", strings.ReplaceAll(m.Name, "_", " "), from, to)
}

// Sources lists the states with a transition to the given state, for `status = ANY(...)`.
func (m Machine[S]) Sources(to S) []S {
	var from []S
	for _, t := range m.Transitions {
		if t.To == to && !slices.Contains(from, t.From) {
			from = append(from, t.From)
		}
	}
	return from
}

// Terminal reports whether s is a final state.
func (m Machine[S]) Terminal(s S) bool { return slices.Contains(m.Final, s) }

// States lists every state in the order in which the machine names them.
func (m Machine[S]) States() []S {
	all := []S{m.Initial}
	add := func(s S) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	for _, t := range m.Transitions {
		add(t.From)
		add(t.To)
	}
	for _, s := range m.Final {
		add(s)
	}
	return all
}

// Mermaid draws the machine for docs/states.md.
func (m Machine[S]) Mermaid() string {
	var b strings.Builder
	fmt.Fprintf(&b, "stateDiagram-v2\n    [*] --> %s\n", m.Initial)
	for _, t := range m.Transitions {
		fmt.Fprintf(&b, "    %s --> %s : %s (%s)\n", t.From, t.To, t.Why, t.By)
	}
	for _, s := range m.Final {
		fmt.Fprintf(&b, "    %s --> [*]\n", s)
	}
	return b.String()
}
