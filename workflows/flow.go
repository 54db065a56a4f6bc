package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// flow is what all flows that park have in common: how they are reached, how they wait, and what they do with a step that
// fails.
type flow struct {
	id   string
	desk *desk

	opened  bool  // its object is there, or refused
	refusal error // why it was refused

	// arrived reports whether something came that has to be looked at even while the flow waits for something else, and
	// attend looks at it. Both are nil where nothing can come.
	arrived func() bool
	attend  func(workflow.Context)
	// mark writes what the object waits for, for readers of its row. It is nil where no row says so.
	mark func(ctx workflow.Context, detail string)
}

// reach registers the handlers of operators' commands about the objects. It is called before the first wait.
func (f *flow) reach(ctx workflow.Context, id, about string, objects func() []activities.ObjectRef) error {
	var err error
	f.id = id
	if f.desk, err = openDesk(ctx, id, objects); err != nil {
		return err
	}
	f.desk.about = about
	return nil
}

// of names the one object that a flow is about.
func of(objectType string, id uuid.UUID) func() []activities.ObjectRef {
	return func() []activities.ObjectRef { return []activities.ObjectRef{{Type: objectType, ID: id}} }
}

// until waits, and attends to what comes meanwhile.
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
	f.desk.park(ctx, r, cause)
	if f.mark != nil {
		f.mark(ctx, exchange.WaitOperator)
	}
	f.until(ctx, f.desk.hasDecision)
	return f.desk.take()
}

// must runs a step until it succeeds. Between tries that an operator has to clear, the flow is parked.
func (f *flow) must(ctx workflow.Context, what string, step func() error) {
	for {
		err := step()
		if err == nil {
			return
		}
		workflow.GetLogger(ctx).Error("a step failed", "step", what, "error", err)
		f.parked(ctx, ReasonStepFailed, err)
		f.desk.unpark(ctx, WaitsForNobody)
	}
}

// mustStep is step, until it succeeds.
func mustStep[C, In, Out any](ctx workflow.Context, f *flow, k kind, summary string, activity func(C, In) (Out, error), in In) Out {
	var out Out
	f.must(ctx, summary, func() (err error) {
		out, err = step(ctx, k, summary, activity, in)
		return err
	})
	return out
}

// open writes the flow's object; the update "open" answers with what came of it. A business refusal ends the flow; after
// every other failure it is not known whether the object exists, so the flow keeps trying while the database is away, and
// waits for an operator where that does not help. Where again is given, it says whether a refusal is worth another try.
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
		f.desk.unpark(ctx, WaitsForNobody)
		out, err = step(ctx, database, summary, activity, in)
	}
	f.opened, f.refusal = true, err
	return out
}

// unforeseen reports whether a failure says nothing about what was asked for: it is no refusal of it.
func unforeseen(err error) bool {
	e, ok := asApplication(err)
	return err != nil && (!ok || e.Type() == activities.TypeInternal)
}

// isConflict reports whether a step was refused because of where its object stands.
func isConflict(err error) bool {
	e, ok := asApplication(err)
	return ok && e.Type() == string(exchange.CodeStateConflict)
}

// hasOpened waits until the object is there, and returns why it was refused.
func (f *flow) hasOpened(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool { return f.opened }); err != nil {
		return err
	}
	if f.refusal != nil {
		return passOn(f.refusal)
	}
	return nil
}

// lastHandlers lets everything that came in last have its turn, and the handlers of updates answer, before a flow ends.
func lastHandlers(ctx workflow.Context) error {
	letOthersRun(ctx)
	return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// approveAgain has a chain payment of which no transaction is alive approved again, by an operator's command.
func approveAgain(ctx workflow.Context, payment uuid.UUID, proof activities.Proof) error {
	in := activities.RetryPayoutInput{PaymentID: payment, Proof: proof}
	err := do(ctx, database, "Approve the payment again", orders.RetryPayout, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the payment was not approved again", "error", err)
	}
	return err
}

// handlers registers the update handlers of a flow.
type handlers struct {
	ctx workflow.Context
	err error
}

// update registers one of them, unless one before could not be.
func (h *handlers) update(name, description string, handler, validator any) {
	if h.err == nil {
		h.err = workflow.SetUpdateHandlerWithOptions(h.ctx, name, handler, workflow.UpdateHandlerOptions{Validator: validator, Description: description})
	}
}

// signal has a function called for each signal of a name.
func signal[T any](ctx workflow.Context, routine, name string, received func(workflow.Context, T)) {
	workflow.GoNamed(ctx, routine, func(ctx workflow.Context) {
		for {
			var sent T
			workflow.GetSignalChannel(ctx, name).Receive(ctx, &sent)
			received(ctx, sent)
		}
	})
}

// woken has a function called for each signal of a name that carries nothing.
func woken(ctx workflow.Context, routine, name string, received func(workflow.Context)) {
	workflow.GoNamed(ctx, routine, func(ctx workflow.Context) {
		for {
			workflow.GetSignalChannel(ctx, name).Receive(ctx, nil)
			received(ctx)
		}
	})
}
