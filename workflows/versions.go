package workflows

import "go.temporal.io/sdk/workflow"

// Changes that a running flow may meet.
//
// Flows are pinned: each runs to its end on the build that it began with, so that most changes need
// nothing here. A change that must reach running flows (a mistake that keeps them from ending, moved
// to the new build by an operator) is made behind workflow.GetVersion. Each has here a constant for
// its id, which is never used again, and a predicate that says in words what differs; the comment
// names the condition under which both may go.

// changeClosedDesk makes a flow that ends while it is parked take back that it calls for a person. It may go when no flow
// is under way, and no history is recorded, of a build from before 22 November 2026.
const changeClosedDesk = "closed-desk"

// closesDesk tells whether a flow that ends while it is parked calls for nobody any more.
func closesDesk(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, changeClosedDesk, workflow.DefaultVersion, 1) >= 1
}

// changeParkedRows makes a flow that parks write the row of the list of parked flows. It may go when no flow is under way, and
// no history is recorded, of a build from before 23 November 2026.
const changeParkedRows = "parked-rows"

// listsParked reports whether a flow writes that row.
func listsParked(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, changeParkedRows, workflow.DefaultVersion, 1) >= 1
}
