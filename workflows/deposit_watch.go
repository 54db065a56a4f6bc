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

// DepositWatchSummary is the summary of a deposit watch in the Web UI.
func DepositWatchSummary(n exchange.Network) string { return "Watch " + string(n) + " for deposits" }

// DepositWatchAttributes are the search attributes with which a watch starts.
func DepositWatchAttributes(n exchange.Network) temporal.SearchAttributes {
	return attributes(StageWatch, WaitsForChain, AttrNetwork.ValueSet(string(n)), AttrStatus.ValueSet(WatchFollowing), AttrLag.ValueSet(0))
}

// AttrLag is the number of final blocks of a network that are not booked yet.
var AttrLag = temporal.NewSearchAttributeKeyInt64("KivukoBlockLag")

// The status of a watch, in AttrStatus.
const (
	WatchFollowing  = "following"
	WatchCatchingUp = "catching_up"
	WatchStalled    = "stalled"
)

// SignalDeposit notifies a flow that waits for a deposit that a movement changed: DepositRef.
const SignalDeposit = "chain-deposit"

// DepositRef names the row of a movement. It proves nothing: the receiver reads the row.
type DepositRef struct {
	DepositID uuid.UUID `json:"deposit_id"`
}

// DepositWatchInput continues the deposit watch of a network, which starts without one. Its progress is in the database; Status,
// Reason and Lag are only what the previous run has shown.
type DepositWatchInput struct {
	Network exchange.Network `json:"network"`
	Status  string           `json:"status,omitempty"`
	Reason  Reason           `json:"reason,omitempty"` // set while the watch needs an operator
	Lag     uint64           `json:"lag,omitempty"`
}

// Limits of the watch.
const (
	watchRounds = 240             // reports of one run, each about a minute after the other
	stallPause  = 5 * time.Minute // between tries after a permanent failure to read
)

// DepositWatch watches a network for deposits. It never ends: before its history grows long it continues as a new run on
// the newest build. When the chain can't be read, it is shown as parked and keeps trying.
func DepositWatch(ctx workflow.Context, in DepositWatchInput) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if in.Network == "" { // started by a worker of the chain, which has no key of the flows
		var err error
		if in.Network, err = depositWatchForm.network(ctx); err != nil {
			return err
		}
		in.Status = WatchFollowing
	}
	f := &depositWatch{in: in, id: DepositWatchID(in.Network)}
	workflow.GoNamed(ctx, "signal retry", f.listen)
	return f.run(ctx)
}

type depositWatch struct {
	in      DepositWatchInput
	id      string
	retried bool
}

// listen handles the Web UI's retry signal, which only ends a pause.
func (f *depositWatch) listen(ctx workflow.Context) {
	for {
		workflow.GetSignalChannel(ctx, SignalRetry).Receive(ctx, nil)
		f.retried = true
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

// stall shows operators that the chain can't be read. Nothing is lost meanwhile: reading goes on where it stopped.
func (f *depositWatch) stall(ctx workflow.Context, cause error) {
	describe(ctx, parkedCard(f.about(), ReasonDepositsStalled, cause))
	f.show(ctx, WatchStalled, ReasonDepositsStalled, f.in.Lag)
	if !passing(cause) {
		f.retried = false
		await(ctx, stallPause, "Read the chain again", func() bool { return f.retried })
	}
}

// about returns the subject of the parked watch.
func (f *depositWatch) about() subject {
	return subject{flow: f.id, about: "deposits on " + string(f.in.Network)}
}

// report shows the progress. The watch is parked while movements are in quarantine.
func (f *depositWatch) report(ctx workflow.Context, now activities.Followed) {
	status, reason := WatchFollowing, Reason("")
	if now.Lag() > 0 {
		status = WatchCatchingUp
	}
	c := card{title: "Watching " + string(f.in.Network) + " for deposits"}
	if now.Quarantined > 0 {
		reason = ReasonDepositQuarantine
		c = parkedCard(f.about(), reason, nil)
		c.add("In quarantine", strconv.Itoa(now.Quarantined)+" movements")
	}
	c.add("Booked up to", fmt.Sprintf("final block %d of %d", now.Final, now.HeadFinal))
	if !now.FinalTime.IsZero() {
		c.add("Time of that block", moment(now.FinalTime))
	}
	c.add("Read up to", fmt.Sprintf("block %d of %d", now.Seen, now.HeadLatest))
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

// wake signals the flows that wait for deposits, or for what else the blocks show. A flow that has ended needs no signal.
func (f *depositWatch) wake(ctx workflow.Context, due []exchange.DepositWakeup) {
	if len(due) == 0 {
		return
	}
	sent := make([]workflow.Future, len(due))
	woken := activities.WokenInput{}
	for i, w := range due {
		if w.DepositID == uuid.Nil {
			sent[i] = workflow.SignalExternalWorkflow(ctx, w.WorkflowID, "", SignalResume, nil)
		} else {
			sent[i] = workflow.SignalExternalWorkflow(ctx, w.WorkflowID, "", SignalDeposit, DepositRef{DepositID: w.DepositID})
		}
		woken.IDs = append(woken.IDs, w.ID)
	}
	for i, w := range due {
		if err := sent[i].Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("a flow could not be notified", "flow", w.WorkflowID, "deposit", w.DepositID, "error", err)
		}
	}
	if err := do(ctx, database, "Record which flows were notified", waits.RecordWoken, woken); err != nil {
		workflow.GetLogger(ctx).Error("the notified flows could not be recorded; they are notified again", "error", err)
	}
}
