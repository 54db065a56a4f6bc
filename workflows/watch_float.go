package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// MoveFloatSummary is the summary of a float movement in the Web UI.
const MoveFloatSummary = "Move float to the payout account"

// MoveFloatAttributes are the search attributes with which a float movement starts.
func MoveFloatAttributes() temporal.SearchAttributes {
	return temporal.NewSearchAttributes(AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(WaitsForMomo))
}

// The mobile money operator answers a balance query within minutes. Later answers are ignored: the next run asks again.
var balancePauses = []time.Duration{15 * time.Second, 45 * time.Second, 90 * time.Second}

// FloatWatched is what a run found.
type FloatWatched struct {
	Asked     bool `json:"asked"`
	Notified  bool `json:"notified"`
	Disagrees bool `json:"disagrees,omitempty"`
	Charges   int  `json:"charges,omitempty"` // that differ from the operator's terms, and were booked
	Moves     int  `json:"moves,omitempty"`   // whose flow was missing, and was started
}

// WatchFloat asks the mobile money operator for our balances, compares the answer with the books, books charges that differ
// from the operator's terms, and starts missing flows of float movements. A schedule starts it.
func WatchFloat(ctx workflow.Context) (FloatWatched, error) {
	var found FloatWatched
	charges, err := fetch(ctx, look, "Book charges that differ from the terms", float.FixCharges)
	if err != nil {
		return found, err
	}
	found.Charges = charges
	open, err := fetch(ctx, look, "List open float movements", float.OpenFloatMoves)
	if err != nil {
		return found, err
	}
	for _, id := range open {
		if takeUp(ctx, id) {
			found.Moves++
		}
	}
	asked, err := fetch(ctx, look, "Ask the mobile money operator for our balances", float.AskBalance)
	if err != nil {
		return found, err
	}
	found.Asked = asked.Ticket != ""
	for _, pause := range balancePauses {
		if !found.Asked || found.Notified {
			break
		}
		if err := workflow.Sleep(ctx, pause); err != nil {
			return found, err
		}
		taken, err := step(ctx, look, "Compare the balances with the books", float.TakeFloatReport, asked)
		if err != nil {
			return found, err
		}
		found.Notified, found.Disagrees = taken.Found, taken.Disagrees
	}
	return found, nil
}

// takeUp starts the flow of a movement unless it runs, and reports whether it did.
func takeUp(ctx workflow.Context, move uuid.UUID) bool {
	c := child{id: MoveFloatID(move), summary: MoveFloatSummary, shown: MoveFloatAttributes()}
	started, _ := start(ctx, c, MoveFloat, MoveFloatInput{MoveID: move}) // after a failure the next run tries again
	return started
}

// MoveFloatInput names a movement. Looks is the number of checks by earlier runs.
type MoveFloatInput struct {
	MoveID uuid.UUID `json:"move_id"`
	Looks  int       `json:"looks,omitempty"`
}

// MoveFloatResult is how a movement ended.
type MoveFloatResult struct {
	Status exchange.FloatMoveStatus `json:"status"`
	Code   string                   `json:"code,omitempty"`
}

// How often a movement is checked: soon at first, because payouts may wait for the float.
const (
	moveSoon     = 10 * time.Second
	moveLook     = 2 * time.Minute
	moveSlowLook = 30 * time.Minute
	moveSoonLook = 6
	moveRunLooks = 200 // after which a run continues as new
)

// MoveFloat moves float from the working account to the utility account. The movement is requested once; after that the flow
// asks for its outcome until it is known. An officer may also settle it (POST /momo/float/moves/{id}/settle), which the
// flow finds at its next check.
func MoveFloat(ctx workflow.Context, in MoveFloatInput) (MoveFloatResult, error) {
	began := workflow.Now(ctx)
	c := card{title: "Float movement is pending"}
	c.add("Movement", in.MoveID.String())
	c.add("Waits for", "the mobile money operator")
	describe(ctx, c)
	moved, err := step(ctx, rail, "Ask the mobile money operator to move float", float.SubmitFloatMove, in.MoveID)
	if err != nil {
		return MoveFloatResult{}, err
	}
	for looks := in.Looks; ; looks++ {
		switch moved.Status {
		case exchange.FloatRefused, exchange.FloatCompleted, exchange.FloatFailed:
			show(ctx, AttrStage.ValueSet(StageDone), AttrWaitingFor.ValueSet(WaitsForNothing))
			return MoveFloatResult{Status: moved.Status, Code: moved.Code}, nil
		case exchange.FloatCreated: // nothing may be requested now; WatchFloat starts the next run
			return MoveFloatResult{Status: moved.Status, Code: moved.Code}, nil
		case exchange.FloatUnknown, exchange.FloatAccepted:
		}
		if looks-in.Looks >= moveRunLooks {
			return MoveFloatResult{}, workflow.NewContinueAsNewError(ctx, TypeMoveFloat, MoveFloatInput{MoveID: in.MoveID, Looks: looks})
		}
		pause := moveSoon
		if looks >= moveSoonLook {
			pause = slower(ctx, min(moveLook*time.Duration(looks-moveSoonLook+1), moveSlowLook), began)
		}
		if err := workflow.Sleep(ctx, pause); err != nil {
			return MoveFloatResult{}, err
		}
		check := activities.CheckFloatMoveInput{MoveID: in.MoveID, Ask: true, Questions: looks}
		if now, err := step(ctx, look, "Check the outcome of the movement", float.CheckFloatMove, check); err == nil {
			moved = now
		} else {
			workflow.GetLogger(ctx).Warn("a float movement could not be checked", "error", err)
		}
	}
}
