package workflows

import (
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// decision is what an operator wants of a parked flow.
type decision struct {
	verb  string
	proof activities.Proof // zero for a mere nudge
}

// desk is where operators reach a flow. Its two doors, the update "command" of the API and the
// signals of the Web UI, lead to one function. Neither carries authority: refund and resolve count
// only with a command that the API wrote, and retry can do no harm.
type desk struct {
	flow    string // the flow's own id, for the details
	about   string // what the flow is about, for the details
	objects func() []activities.ObjectRef
	reason  Reason // empty while the flow is not parked
	decided *decision
	// only narrows the commands that are taken, where what a reason offers is not all possible; nil takes them all.
	only []string
	// pass hands a command on to a child that needs attention by itself; nil when there is none.
	pass func(ctx workflow.Context, name string, ref CommandRef) error
}

// openDesk registers the handlers. It is called before the first wait.
func openDesk(ctx workflow.Context, flow string, objects func() []activities.ObjectRef) (*desk, error) {
	d := &desk{flow: flow, objects: objects}
	err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateCommand, d.command, workflow.UpdateHandlerOptions{
		Validator: d.admit, Description: "An operator's retry, refund or resolve, by the id of a command that the API wrote.",
	})
	if err != nil {
		return nil, err
	}
	for _, name := range []string{SignalRetry, SignalRefund, SignalResolve} {
		workflow.GoNamed(ctx, "signal "+name, func(ctx workflow.Context) { d.listen(ctx, name) })
	}
	return d, nil
}

// admit refuses commands while nothing waits for one.
func (d *desk) admit(CommandRef) error {
	if d.reason == "" && d.pass == nil {
		return refuse(exchange.CodeStateConflict, "Nothing waits for an operator here.")
	}
	return nil
}

// command is the API's door.
func (d *desk) command(ctx workflow.Context, ref CommandRef) (Ack, error) {
	return d.obey(ctx, ref, "")
}

// listen is the Web UI's door. What can't be proven is dropped.
func (d *desk) listen(ctx workflow.Context, name string) {
	ch := workflow.GetSignalChannel(ctx, name)
	for {
		var ref CommandRef
		ch.Receive(ctx, &ref) // a signal without a readable argument gives the zero reference
		switch {
		case d.admit(ref) != nil:
		case name == SignalRetry:
			d.nudge(ctx)
		default:
			if _, err := d.obey(ctx, ref, name); err != nil {
				workflow.GetLogger(ctx).Warn("a signal without a valid command was ignored", "signal", name)
			}
		}
	}
}

// wantsReceipt tells whether resolving means naming a payment: of the refund that commands are handed on to,
// or of what the flow is parked with.
func (d *desk) wantsReceipt() bool { return d.reason == "" || d.reason.wantsReceipt() }

// refuseNote is the refusal of a resolve whose note is no receipt, which would change nothing.
func refuseNote() error {
	return temporal.NewNonRetryableApplicationError("The request breaks one or more rules.", string(exchange.CodeInvalid), nil, []exchange.FieldError{
		{Pointer: "/note", Code: "receipt", Message: "must be the receipt of the payment: 8 to 20 capital letters and digits"},
	})
}

func (d *desk) nudge(ctx workflow.Context) {
	if d.reason == "" {
		if err := d.pass(ctx, SignalRetry, CommandRef{}); err != nil {
			workflow.GetLogger(ctx).Warn("a nudge could not be handed on", "error", err)
		}
		return
	}
	if slices.Contains(guide[d.reason].verbs, activities.VerbRetry) {
		d.decided = &decision{verb: activities.VerbRetry}
	}
}

// obey proves a command and takes it over. Where a verb is given, the command must have that one.
func (d *desk) obey(ctx workflow.Context, ref CommandRef, verb string) (Ack, error) {
	in := activities.ProveInput{CommandID: ref.CommandID, Objects: d.objects()}
	proof, err := step(ctx, database, "Prove the operator's command", orders.ProveCommand, in)
	if err != nil {
		return Ack{}, passOn(err)
	}
	switch {
	case verb != "" && proof.Verb != verb:
		return Ack{}, refuse(exchange.CodeStateConflict, "The command says "+proof.Verb+".")
	case d.reason == "" && d.pass == nil:
		return Ack{}, refuse(exchange.CodeStateConflict, "Nothing waits for an operator here any more.")
	case proof.Verb == activities.VerbResolve && proof.NoReceipt && d.wantsReceipt():
		return Ack{}, refuseNote()
	case d.reason == "":
		if err := d.pass(ctx, proof.Verb, ref); err != nil {
			workflow.GetLogger(ctx).Warn("a command could not be handed on", "verb", proof.Verb, "error", err)
			return Ack{}, refuse(exchange.CodeStateConflict, "Nothing waits for an operator here now.")
		}
		return Ack{Detail: proof.Verb}, nil
	case !slices.Contains(guide[d.reason].verbs, proof.Verb), d.only != nil && !slices.Contains(d.only, proof.Verb):
		return Ack{}, refuse(exchange.CodeStateConflict, "A flow that is parked with "+string(d.reason)+" takes no "+proof.Verb+".")
	}
	d.decided = &decision{verb: proof.Verb, proof: proof}
	return Ack{Detail: proof.Verb}, nil
}

// park asks for a person. Parking with the same reason again only tells the newest cause.
func (d *desk) park(ctx workflow.Context, r Reason, cause error) {
	if d.reason == r {
		if cause != nil {
			describe(ctx, parkedCard(d.about, d.flow, r, cause))
		}
		return
	}
	d.reason = r
	describe(ctx, parkedCard(d.about, d.flow, r, cause))
	workflow.GetLogger(ctx).Error("the flow is parked", "reason", string(r))
	markParked(ctx, r, AttrWaitingFor.ValueSet(WaitsForOperator))
}

// unpark goes on by itself or after a decision.
func (d *desk) unpark(ctx workflow.Context, waitsFor string) {
	d.decided = nil
	if d.reason == "" {
		return
	}
	d.reason = ""
	markParked(ctx, "", AttrWaitingFor.ValueSet(waitsFor))
}

// attended runs a flow that has a desk to its end. A flow that is over calls for nobody: whoever was to be called hears of
// it from the flow that goes on.
func attended[R any](ctx workflow.Context, d *desk, run func(workflow.Context) (R, error)) (R, error) {
	result, err := run(ctx)
	if d.reason != "" && closesDesk(ctx) {
		d.unpark(ctx, WaitsForNobody)
	}
	return result, err
}

// hasDecision tells whether an operator has spoken.
func (d *desk) hasDecision() bool { return d.decided != nil }

// take hands the decision over.
func (d *desk) take() decision {
	taken := *d.decided
	d.decided = nil
	return taken
}

// refuse is a refusal in the vocabulary of exchange codes.
func refuse(code exchange.Code, message string) error {
	return temporal.NewNonRetryableApplicationError(message, string(code), nil)
}

// passOn gives the answer to an update the form of the activity's own failure.
func passOn(err error) error {
	if e, ok := asApplication(err); ok {
		return e
	}
	return refuse(exchange.CodeUnavailable, "The step could not be done now.")
}
