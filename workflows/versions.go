package workflows

// Changes that a running flow may meet.
//
// Flows are pinned: each runs to its end on the build that it began with, so that most changes need
// nothing here. A change that must reach running flows (a mistake that keeps them from ending, moved
// to the new build by an operator) is made behind workflow.GetVersion. Each has here a constant for
// its id, which is never used again, and a predicate that says in words what differs; the comment
// names the condition under which both may go.
//
// There is none so far.
