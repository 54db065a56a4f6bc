package workflows

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// DepositWatchSummary is the one line that the Web UI shows of the watch.
func DepositWatchSummary(n exchange.Network) string { return "Watch " + string(n) + " for deposits" }

// DepositWatchAttributes are the search attributes with which a watch starts.
func DepositWatchAttributes(n exchange.Network) temporal.SearchAttributes {
	return attributes(StageWatch, WaitsForChain, AttrNetwork.ValueSet(string(n)), AttrStatus.ValueSet(WatchFollowing), AttrLag.ValueSet(0))
}

// AttrLag is how many final blocks of a network are not booked yet.
var AttrLag = temporal.NewSearchAttributeKeyInt64("KivukoBlockLag")

// The status of a watch, in AttrStatus.
const (
	WatchFollowing  = "following"
	WatchCatchingUp = "catching_up"
	WatchStalled    = "stalled"
)

// SignalDeposit tells a flow that waits for money that a movement changed: DepositRef.
const SignalDeposit = "chain-deposit"

// DepositRef names the row of a movement. It proves nothing: who gets it reads the row.
type DepositRef struct {
	DepositID uuid.UUID `json:"deposit_id"`
}

// DepositWatchInput starts the watch over a network's deposits. How far it came is in the database; what
// follows the network is only what the run before has shown.
type DepositWatchInput struct {
	Network exchange.Network `json:"network"`
	Status  string           `json:"status,omitempty"`
	Reason  Reason           `json:"reason,omitempty"` // it needs a person
	Lag     uint64           `json:"lag,omitempty"`
}

// Limits of the watch.
const (
	watchRounds = 240             // reports of one run, each about a minute after the other
	stallPause  = 5 * time.Minute // between tries when reading fails in a way that does not pass
)

// DepositWatch sees what arrives on a network. It never ends: it goes on as a new run, on the newest build,
// before its history grows long. When the chain can't be read it says so and goes on trying.
func DepositWatch(ctx workflow.Context, in DepositWatchInput) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &depositWatch{in: in, id: DepositWatchID(in.Network)}
	workflow.GoNamed(ctx, "signal retry", f.listen)
	return f.run(ctx)
}

type depositWatch struct {
	in     DepositWatchInput
	id     string
	nudged bool
}

// listen takes the Web UI's nudge, which ends a pause and nothing else.
func (f *depositWatch) listen(ctx workflow.Context) {
	for {
		workflow.GetSignalChannel(ctx, SignalRetry).Receive(ctx, nil)
		f.nudged = true
	}
}

func (f *depositWatch) run(ctx workflow.Context) error {
	for n := 0; n < watchRounds && !workflow.GetInfo(ctx).GetContinueAsNewSuggested(); n++ {
		in := activities.FollowInput{Network: f.in.Network}
		now, err := step(ctx, watch(f.in.Network), "Follow the blocks", deposits.FollowDeposits, in)
		if err != nil {
			f.stall(ctx, err)
			continue
		}
		f.report(ctx, now)
		f.wake(ctx, now.Wakeups)
	}
	return goOn(ctx, TypeDepositWatch, f.in)
}

// stall tells a person that the chain can't be read. Nothing is lost meanwhile: reading goes on where it
// stopped.
func (f *depositWatch) stall(ctx workflow.Context, cause error) {
	describe(ctx, parkedCard("deposits on "+string(f.in.Network), f.id, ReasonDepositsStalled, cause))
	f.show(ctx, WatchStalled, ReasonDepositsStalled, f.in.Lag)
	if !passing(cause) {
		f.nudged = false
		await(ctx, stallPause, "Read the chain again", func() bool { return f.nudged })
	}
}

// report shows how far reading came. Movements that were set aside need a person until they are settled.
func (f *depositWatch) report(ctx workflow.Context, now activities.Followed) {
	status, reason := WatchFollowing, Reason("")
	if now.Lag() > 0 {
		status = WatchCatchingUp
	}
	c := card{title: "Watching " + string(f.in.Network) + " for deposits"}
	if now.Quarantined > 0 {
		reason = ReasonDepositQuarantine
		c = parkedCard("deposits on "+string(f.in.Network), f.id, reason, nil)
		c.add("Set aside", strconv.Itoa(now.Quarantined)+" movements")
	}
	c.add("Booked up to", fmt.Sprintf("block %d of %d final ones", now.Final, now.HeadFinal))
	if !now.FinalTime.IsZero() {
		c.add("Of", moment(now.FinalTime))
	}
	c.add("Seen up to", fmt.Sprintf("block %d of %d", now.Seen, now.HeadLatest))
	describe(ctx, c)
	f.show(ctx, status, reason, now.Lag())
}

// show writes the search attributes that changed.
func (f *depositWatch) show(ctx workflow.Context, status string, reason Reason, lag uint64) {
	var updates []temporal.SearchAttributeUpdate
	if status != f.in.Status {
		updates = append(updates, AttrStatus.ValueSet(status))
	}
	parks := reason != f.in.Reason
	if lag != f.in.Lag {
		updates = append(updates, AttrLag.ValueSet(int64(lag))) //nolint:gosec // G115: a number of blocks
	}
	f.in.Status, f.in.Reason, f.in.Lag = status, reason, lag
	switch {
	case parks:
		markParked(ctx, reason, updates...)
	case len(updates) > 0:
		show(ctx, updates...)
	}
}

// wake signals the flows that wait for money. A flow that is not there any more needs no signal.
func (f *depositWatch) wake(ctx workflow.Context, due []exchange.DepositWakeup) {
	if len(due) == 0 {
		return
	}
	sent := make([]workflow.Future, len(due))
	woken := activities.WokenInput{}
	for i, w := range due {
		sent[i] = workflow.SignalExternalWorkflow(ctx, w.WorkflowID, "", SignalDeposit, DepositRef{DepositID: w.DepositID})
		woken.IDs = append(woken.IDs, w.ID)
	}
	for i, w := range due {
		if err := sent[i].Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("a flow was not told of a deposit", "flow", w.WorkflowID, "deposit", w.DepositID, "error", err)
		}
	}
	if err := do(ctx, database, "Note who was told", waits.RecordWoken, woken); err != nil {
		workflow.GetLogger(ctx).Error("who was told was not noted; they are told again", "error", err)
	}
}
