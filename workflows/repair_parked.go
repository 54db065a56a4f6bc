package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// Repaired is what a comparison of the rows with Temporal's flows changed.
type Repaired struct {
	activities.RepairedParked
	Gone    int `json:"gone,omitempty"`    // live rows whose flow was missing
	Started int `json:"started,omitempty"` // flows that were started for them
}

// resumeAfter is how long a row must be unchanged before its flow is looked for: a step that changes it may be under way.
const resumeAfter = 10 * time.Minute

// resumePages is how many pages of live rows one run compares before it continues as new.
const resumePages = 100

// RepairParked makes the list of parked flows agree with the flows' search attributes, and starts the missing flows of live
// rows. A schedule starts it, without an input: that is the place where a run before this one stopped comparing rows.
func RepairParked(ctx workflow.Context, in activities.ResumeInput) (Repaired, error) {
	var done Repaired
	if in == (activities.ResumeInput{}) {
		var err error
		if done.RepairedParked, err = fetch(ctx, database, "Compare the list of parked flows with Temporal's", orders.RepairParked); err != nil {
			return done, err
		}
		if workflow.GetVersion(ctx, "resume", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
			return done, nil
		}
		in.Since = workflow.Now(ctx).Add(-resumeAfter)
	}
	for range resumePages {
		page, err := step(ctx, database, "Compare the live rows with their flows", orders.ResumeFlows, in)
		if err != nil {
			return done, err
		}
		done.Gone, done.Started = done.Gone+page.Gone, done.Started+page.Started
		in.After, in.Gone = page.After, in.Gone+page.Gone
		if !page.More {
			return done, nil
		}
	}
	return done, goOn(ctx, TypeRepairParked, in)
}
