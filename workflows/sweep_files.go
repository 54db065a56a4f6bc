package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// sweepSteps bounds the steps of one run of SweepFiles. What is left of the files is for the next run; the objects are gone through
// to their end.
const sweepSteps = 500

// SweepFilesInput says where a run goes on with the objects; a schedule starts without it.
type SweepFilesInput struct {
	From string `json:"from,omitempty"`
}

// SweptFiles is what a run of SweepFiles did.
type SweptFiles struct {
	Ended   int `json:"ended"`   // files whose retention ended
	Purged  int `json:"purged"`  // files whose bytes were deleted
	Removed int `json:"removed"` // objects that no row named
}

// SweepFiles ends the retention of files that are due and deletes their bytes, and objects that no row names. A schedule starts it.
func SweepFiles(ctx workflow.Context, in SweepFilesInput) (SweptFiles, error) {
	var all SweptFiles
	for range sweepSteps {
		ended, err := fetch(ctx, question, "End the retention of files", files.EndFiles)
		if err != nil {
			return all, err
		}
		all.Ended += ended.Ended
		all.Purged += ended.Purged
		if !ended.More {
			break
		}
	}
	from := in.From
	for range sweepSteps {
		swept, err := step(ctx, question, "Delete objects without a row", files.SweepObjects, activities.SweepObjectsInput{From: from})
		if err != nil {
			return all, err
		}
		all.Removed += swept.Removed
		if from = swept.Next; from == "" {
			return all, nil
		}
	}
	return all, workflow.NewContinueAsNewError(ctx, TypeSweepFiles, SweepFilesInput{From: from})
}
