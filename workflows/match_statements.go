package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// maxMatchBatches bounds one run; the next run settles the rest.
const maxMatchBatches = 200

// MatchStatements matches the lines of banks' statements with what explains them, and sets the others aside. A schedule starts it.
func MatchStatements(ctx workflow.Context) (activities.MatchedLines, error) {
	var all activities.MatchedLines
	for range maxMatchBatches {
		m, err := fetch(ctx, database, "Match statement lines", house.MatchStatements)
		if err != nil {
			return all, err
		}
		all.Settled += m.Settled
		if all.More = m.More; !m.More {
			break
		}
	}
	return all, nil
}
