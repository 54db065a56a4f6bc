package workflows

import (
	"cmp"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// flow is what all flows that park have in common: operators' commands, waiting, and steps that fail.
type flow struct {
	id       string
	commands *commands

	opened  bool  // its object was created or refused
	refusal error // why it was refused

	// arrived reports whether a message came that must be handled even while the flow waits for something else, and
	// attend handles it. Both are nil where no message can come.
	arrived func() bool
	attend  func(workflow.Context)
	// mark writes what the object waits for into its row. It is nil where the row has no such column.
	mark func(ctx workflow.Context, detail string)

	resumed bool // a signal came to look again at what the flow waits for
	floated bool // a signal came that there may be more float, or that the breaker was closed

	payout *momoTries // that is, or was, made by mobile money; nil before the first
}

// reach registers the handlers of operators' commands about the objects. It is called before the first wait.
func (f *flow) reach(ctx workflow.Context, id, about string, objects func() []activities.ObjectRef) error {
	var err error
	f.id = id
	if f.commands, err = openCommands(ctx, id, objects); err != nil {
		return err
	}
	f.commands.about.about = about
	f.commands.ears.woken("resume", SignalResume, func(workflow.Context) { f.resumed = true })
	return nil
}

// hearsOfFloat registers the handler of the signal that a payout which waits may be tried again.
func (f *flow) hearsOfFloat() {
	f.commands.ears.woken("float", SignalFloat, func(workflow.Context) { f.floated = true })
}

// hearsOfPayouts registers the handler of callbacks about payouts. The API wakes a flow of its own (LatePayout) besides for one that was
// settled.
func (f *flow) hearsOfPayouts() {
	signal(f.commands.ears, "callbacks", SignalCallback, func(ctx workflow.Context, ref CallbackRef) { f.wakePayout(ctx, ref) })
}

// wakePayout hands a callback on to the payout.
func (f *flow) wakePayout(ctx workflow.Context, ref CallbackRef) {
	if f.payout != nil {
		f.payout.wake(ctx, ref)
	}
}

// of returns the one object that a flow is about.
func of(objectType string, id uuid.UUID) func() []activities.ObjectRef {
	return func() []activities.ObjectRef { return []activities.ObjectRef{{Type: objectType, ID: id}} }
}

// until waits until ready, and handles messages that arrive meanwhile.
func (f *flow) until(ctx workflow.Context, ready func() bool) {
	for {
		patiently(ctx, func() bool { return ready() || (f.arrived != nil && f.arrived()) })
		if ready() {
			return
		}
		f.attend(ctx)
	}
}

// parked waits for an operator's decision.
func (f *flow) parked(ctx workflow.Context, r Reason, cause error) decision {
	f.commands.park(ctx, r, cause)
	f.note(ctx, exchange.WaitOperator)
	f.until(ctx, f.commands.hasDecision)
	return f.commands.take()
}

// note writes what the object waits for, if its row has a column for that.
func (f *flow) note(ctx workflow.Context, detail string) {
	if f.mark != nil {
		f.mark(ctx, detail)
	}
}

// must runs a step until it succeeds. After each failure the flow is parked until an operator sends a command.
func (f *flow) must(ctx workflow.Context, what string, step func() error) {
	for {
		err := step()
		if err == nil {
			return
		}
		workflow.GetLogger(ctx).Error("a step failed", "step", what, "error", err)
		f.parked(ctx, ReasonStepFailed, err)
		f.commands.unpark(ctx, WaitsForNothing)
	}
}

// mustStep repeats step until it succeeds.
func mustStep[C, In, Out any](ctx workflow.Context, f *flow, k kind, summary string, activity func(C, In) (Out, error), in In) Out {
	var out Out
	f.must(ctx, summary, func() (err error) {
		out, err = step(ctx, k, summary, activity, in)
		return err
	})
	return out
}

// quickly is mustStep for a short transaction that operators need not see. As a local activity it costs one event instead of six. If that
// fails, it runs as a normal one, which they see in the history.
func quickly[C, In, Out any](ctx workflow.Context, f *flow, summary string, activity func(C, In) (Out, error), in In) Out {
	if out, err := step(ctx, local, summary, activity, in); err == nil {
		return out
	}
	return mustStep(ctx, f, database, summary, activity, in)
}

// open writes the flow's object; the update "open" returns the outcome. A business refusal ends the flow. After any other
// failure the object may exist, so the flow retries while the database is down, and parks if that does not help.
// If again is given, it reports whether to retry after a refusal.
func open[C, In, Out any](
	ctx workflow.Context, f *flow, summary string, activity func(C, In) (Out, error), in In, again func(error) bool,
) Out {
	out, err := step(ctx, local, summary, activity, in)
	if err != nil && passing(err) {
		out, err = step(ctx, database, summary, activity, in)
	}
	for err != nil && again != nil && again(err) {
		out, err = step(ctx, database, summary, activity, in)
	}
	for unforeseen(err) {
		f.parked(ctx, ReasonStepFailed, err)
		f.commands.unpark(ctx, WaitsForNothing)
		out, err = step(ctx, database, summary, activity, in)
	}
	f.opened, f.refusal = true, err
	return out
}

// unforeseen reports whether a failure is unexpected, not a refusal of the request.
func unforeseen(err error) bool {
	e, ok := asApplication(err)
	return err != nil && (!ok || e.Type() == activities.TypeInternal)
}

// isConflict reports whether a step was refused because of the state of its object.
func isConflict(err error) bool {
	e, ok := asApplication(err)
	return ok && e.Type() == string(exchange.CodeStateConflict)
}

// hasOpened waits until the object was created, or returns why it was refused.
func (f *flow) hasOpened(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool { return f.opened }); err != nil {
		return err
	}
	if f.refusal != nil {
		return passOn(f.refusal)
	}
	return nil
}

// checkIntent refuses a message whose intent is of another kind, is not for this flow, was refused before, or has lapsed.
func checkIntent(ctx workflow.Context, ref IntentRef, kind exchange.IntentKind) error {
	in := activities.IntentCheck{IntentID: ref.IntentID, Kind: kind}
	if err := do(ctx, database, "Check the request", intents.CheckIntent, in); err != nil {
		return passOn(err)
	}
	return nil
}

// lastHandlers handles the last messages and lets update handlers return before a flow ends.
func lastHandlers(ctx workflow.Context) error {
	letOthersRun(ctx)
	return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// approveAgain approves a chain payment without a pending transaction again, by an operator's command. Afterwards payment
// names the one that goes on, which is another one when officers corrected the address.
func approveAgain(ctx workflow.Context, payment *uuid.UUID, proof activities.Proof) error {
	in := activities.RetryPayoutInput{PaymentID: *payment, Proof: proof}
	approved, err := step(ctx, database, "Approve the payment again", orders.RetryPayout, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the chain payment could not be approved again", "error", err)
		return err
	}
	*payment = cmp.Or(approved.PaymentID, *payment) // older flows have no answer
	return nil
}

// handlers registers the update handlers of a flow.
type handlers struct {
	ctx workflow.Context
	err error
}

// update registers one handler, which is apart, unless an earlier registration failed.
func (h *handlers) update(name, description string, handler, validator any) {
	if h.err == nil {
		h.err = workflow.SetUpdateHandlerWithOptions(h.ctx, name, handler, workflow.UpdateHandlerOptions{Validator: validator, Description: description})
	}
}

// apart lets a handler work after somebody has cancelled the flow's execution, as the flow itself does: the SDK calls handlers
// with the context that was cancelled.
func apart[In, Out any](handler func(workflow.Context, In) (Out, error)) func(workflow.Context, In) (Out, error) {
	return func(ctx workflow.Context, in In) (Out, error) {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
		return handler(ctx, in)
	}
}

// apartOpen is apart for the handlers of "open", which take nothing.
func apartOpen[Out any](handler func(workflow.Context) (Out, error)) func(workflow.Context) (Out, error) {
	return func(ctx workflow.Context) (Out, error) {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
		return handler(ctx)
	}
}

// ears hear the signals of a flow. While none comes they share one routine, because each routine costs a waiting flow as much memory
// as ten events of its history.
type ears struct {
	ctx      workflow.Context // of the routine, once it runs
	selector workflow.Selector
	more     workflow.Channel // says that the selector has another signal to wait for
}

// listens makes the ears of a flow.
func listens(ctx workflow.Context) *ears {
	e := &ears{ctx: ctx, selector: workflow.NewNamedSelector(ctx, "signals"), more: workflow.NewBufferedChannel(ctx, 1)}
	e.selector.AddReceive(e.more, func(ch workflow.ReceiveChannel, _ bool) { ch.ReceiveAsync(nil) })
	workflow.GoNamed(ctx, "signals", func(ctx workflow.Context) {
		e.ctx = ctx
		for {
			e.selector.Select(ctx)
		}
	})
	return e
}

// signal calls received for each signal with the name, one after the other. A signal whose argument can't be read is dropped.
func signal[T any](e *ears, routine, name string, received func(workflow.Context, T)) {
	e.on(routine, name, func(ch workflow.ReceiveChannel) (func(workflow.Context), bool) {
		var sent T
		ok := ch.ReceiveAsync(&sent)
		return func(ctx workflow.Context) { received(ctx, sent) }, ok
	})
}

// woken is signal for signals without an argument.
func (e *ears) woken(routine, name string, received func(workflow.Context)) {
	e.on(routine, name, func(ch workflow.ReceiveChannel) (func(workflow.Context), bool) {
		return received, ch.ReceiveAsync(nil)
	})
}

// on handles what take takes from the channel of a signal, in a routine that ends when nothing is left.
func (e *ears) on(routine, name string, take func(workflow.ReceiveChannel) (func(workflow.Context), bool)) {
	var waiting []func(workflow.Context)
	e.selector.AddReceive(workflow.GetSignalChannel(e.ctx, name), func(ch workflow.ReceiveChannel, _ bool) {
		handle, ok := take(ch)
		if !ok {
			return
		}
		if waiting = append(waiting, handle); len(waiting) > 1 {
			return // the routine is at work on one before
		}
		workflow.GoNamed(e.ctx, routine, func(ctx workflow.Context) {
			for ; len(waiting) > 0; waiting = waiting[1:] {
				waiting[0](ctx)
			}
		})
	})
	e.more.SendAsync(true) // the registration of an update's handler lets the routine run, so it may wait already
}
