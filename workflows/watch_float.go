package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// MoveFloatSummary is the one line that the Web UI shows of a movement of float.
const MoveFloatSummary = "Move float to the account that payouts leave"

// MoveFloatAttributes are the search attributes with which a movement of float starts.
func MoveFloatAttributes() temporal.SearchAttributes {
	return temporal.NewSearchAttributes(AttrNeedsAttention.ValueSet(false), AttrWaitingFor.ValueSet(WaitsForMomo))
}

// The operator answers a question for our balances within minutes. Answers that come later are left: the next run asks
// again.
var balancePauses = []time.Duration{15 * time.Second, 45 * time.Second, 90 * time.Second}

// FloatWatched is what a run found.
type FloatWatched struct {
	Asked     bool `json:"asked"`
	Told      bool `json:"told"`
	Disagrees bool `json:"disagrees,omitempty"`
	Charges   int  `json:"charges,omitempty"` // booked other than the operator's terms say
	Moves     int  `json:"moves,omitempty"`   // that had no flow any more
}

// WatchFloat asks the operator for our balances, holds its answer against the books, books what it charged beside its
// terms, and takes up movements of float whose flow was never started. A schedule starts it.
func WatchFloat(ctx workflow.Context) (FloatWatched, error) {
	var found FloatWatched
	charges, err := fetch(ctx, look, "Book charges beside the terms", float.FixCharges)
	if err != nil {
		return found, err
	}
	found.Charges = charges
	open, err := fetch(ctx, look, "List movements of float", float.OpenFloatMoves)
	if err != nil {
		return found, err
	}
	for _, id := range open {
		if takeUp(ctx, id) {
			found.Moves++
		}
	}
	asked, err := fetch(ctx, look, "Ask for our balances", float.AskBalance)
	if err != nil {
		return found, err
	}
	found.Asked = asked.Ticket != ""
	for _, pause := range balancePauses {
		if !found.Asked || found.Told {
			break
		}
		if err := workflow.Sleep(ctx, pause); err != nil {
			return found, err
		}
		taken, err := step(ctx, look, "Hold the balances against the books", float.TakeFloatReport, asked)
		if err != nil {
			return found, err
		}
		found.Told, found.Disagrees = taken.Found, taken.Disagrees
	}
	return found, nil
}

// takeUp starts the flow of a movement unless it has one, and tells whether it did.
func takeUp(ctx workflow.Context, move uuid.UUID) bool {
	c := child{id: MoveFloatID(move), summary: MoveFloatSummary, shown: MoveFloatAttributes()}
	started, _ := start(ctx, c, MoveFloat, MoveFloatInput{MoveID: move}) // one that could not be started now is found by the next run
	return started
}

// MoveFloatInput names a movement. Looks is how often it was looked at by runs before.
type MoveFloatInput struct {
	MoveID uuid.UUID `json:"move_id"`
	Looks  int       `json:"looks,omitempty"`
}

// MoveFloatResult is how a movement ended.
type MoveFloatResult struct {
	Status exchange.FloatMoveStatus `json:"status"`
	Code   string                   `json:"code,omitempty"`
}

// How often a movement is looked at: soon at first, for float is moved when payouts wait for it.
const (
	moveSoon     = 10 * time.Second
	moveLook     = 2 * time.Minute
	moveSlowLook = 30 * time.Minute
	moveSoonLook = 6
	moveRunLooks = 200 // after which a run hands over to the next
)

// MoveFloat moves float from the working account to the utility account. The operator is asked once; after that the
// flow asks what became of it for as long as that takes. A person may say it too (POST /momo/float/moves/{id}/settle),
// which the flow finds at its next look.
func MoveFloat(ctx workflow.Context, in MoveFloatInput) (MoveFloatResult, error) {
	began := workflow.Now(ctx)
	c := card{title: "Float on its way"}
	c.add("Movement", in.MoveID.String())
	c.add("Waits for", "the operator's word")
	describe(ctx, c)
	moved, err := step(ctx, rail, "Ask the operator to move float", float.SubmitFloatMove, in.MoveID)
	if err != nil {
		return MoveFloatResult{}, err
	}
	for looks := in.Looks; ; looks++ {
		switch moved.Status {
		case exchange.FloatRefused, exchange.FloatCompleted, exchange.FloatFailed:
			show(ctx, AttrStage.ValueSet(StageDone), AttrWaitingFor.ValueSet(WaitsForNobody))
			return MoveFloatResult{Status: moved.Status, Code: moved.Code}, nil
		case exchange.FloatCreated, exchange.FloatUnknown, exchange.FloatAccepted:
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
		if now, err := step(ctx, look, "See what became of the movement", float.CheckFloatMove, check); err == nil {
			moved = now
		} else {
			workflow.GetLogger(ctx).Warn("a movement of float could not be looked at", "error", err)
		}
	}
}
