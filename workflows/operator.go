package workflows

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// decision is what an operator wants of a parked flow.
type decision struct {
	verb  string
	proof activities.Proof // zero for a retry signal alone
}

// commands receives the operators' commands to a flow, by the API's update "command" or by the Web UI's signals.
// Neither carries authority: refund and resolve count only with a command that the API wrote, and retry can do no harm.
type commands struct {
	*ears
	about   subject // what the flow is about, for the details
	objects func() []activities.ObjectRef
	reason  Reason // empty while the flow is not parked
	card    card   // what the details show
	refused string // the newest signal that was refused or came too late, and why; empty when a later command was taken
	decided *decision
	// only lists the accepted commands where not every command of the reason is possible; nil accepts them all.
	only []string
	// pass forwards a command to a child that may be parked itself; nil when there is none.
	pass func(ctx workflow.Context, name string, ref CommandRef) error
}

// openCommands registers the handlers. It is called before the first wait.
func openCommands(ctx workflow.Context, flow string, objects func() []activities.ObjectRef) (*commands, error) {
	d := &commands{ears: listens(ctx), about: subject{flow: flow}, objects: objects}
	err := workflow.SetUpdateHandlerWithOptions(ctx, UpdateCommand, apart(d.command), workflow.UpdateHandlerOptions{
		Validator: d.admit, Description: "An operator's retry, refund or resolve, by the id of a command that the API wrote.",
	})
	if err != nil {
		return nil, err
	}
	for _, name := range []string{SignalRetry, SignalRefund, SignalResolve} {
		// A signal without a readable argument gives the zero one.
		signal(d.ears, "signal "+name, name, func(ctx workflow.Context, typed OperatorSignal) { d.signalled(ctx, name, typed) })
	}
	return d, nil
}

// admit refuses commands while nothing waits for one.
func (d *commands) admit(CommandRef) error {
	if d.reason == "" && d.pass == nil {
		return refuse(exchange.CodeStateConflict, "The flow does not wait for a command.")
	}
	return nil
}

// command handles the update of the API.
func (d *commands) command(ctx workflow.Context, ref CommandRef) (Ack, error) {
	return d.apply(ctx, ref, "")
}

// signalled handles a signal of the Web UI. A refused one changes only the details, which show why.
func (d *commands) signalled(ctx workflow.Context, name string, typed OperatorSignal) {
	if err := d.execute(ctx, name, CommandRef{CommandID: typed.CommandID}); err != nil {
		d.refuseSignal(ctx, name, err)
	}
}

// execute applies a signal.
func (d *commands) execute(ctx workflow.Context, name string, ref CommandRef) error {
	if err := d.admit(ref); err != nil {
		return err
	}
	if name == SignalRetry {
		return d.retry(ctx)
	}
	if ref.CommandID == uuid.Nil {
		return refuse(exchange.CodeInvalid, "It carries no command id"+d.route(name)+".")
	}
	_, err := d.apply(ctx, ref, name)
	return err
}

// route names the request of the API that records the command which a signal needs, and delivers it. Only an order can be
// resolved by one.
func (d *commands) route(verb string) string {
	routes := map[string]string{
		activities.ObjectOrder: "orders", activities.ObjectTransfer: "transfers", activities.ObjectException: "payment-exceptions",
		activities.ObjectFeeSweep: "treasury/fee-sweeps", activities.ObjectRefund: "refunds", activities.ObjectSwap: "swaps",
		activities.ObjectMultisig: "multisig/accounts", activities.ObjectProposal: "multisig/proposals",
	}
	all := d.objects()
	o := all[max(0, slices.IndexFunc(all, func(o activities.ObjectRef) bool { return o.Type == activities.ObjectOrder }))]
	if o.Type != activities.ObjectOrder && verb == activities.VerbResolve {
		return ""
	}
	return "; use POST " + api + "/api/v1/auth/" + routes[o.Type] + "/" + o.ID.String() + "/" + verb
}

// refuseSignal shows in the details that a signal changed nothing, and why.
func (d *commands) refuseSignal(ctx workflow.Context, name string, why error) {
	workflow.GetLogger(ctx).Warn("a signal was refused", "signal", name)
	message := why.Error()
	if e, ok := asApplication(why); ok {
		message = e.Message()
	}
	d.refused = fmt.Sprintf("Signal %q refused at %s: %s", name, moment(workflow.Now(ctx)), message)
	d.describe(ctx, d.card)
}

// describe shows a card and the newest refused signal.
func (d *commands) describe(ctx workflow.Context, c card) {
	d.card = c
	c.lines = slices.Clip(c.lines)
	c.add("Refused", d.refused)
	describe(ctx, c)
}

// wantsReceipt reports whether the note of a resolve must be a receipt: always when the command is forwarded to a refund,
// otherwise by the park reason.
func (d *commands) wantsReceipt() bool { return d.reason == "" || d.reason.wantsReceipt() }

// refuseNote returns the refusal of a resolve whose note is not a receipt.
func refuseNote() error {
	return temporal.NewNonRetryableApplicationError("The request breaks one or more rules.", string(exchange.CodeInvalid), nil, []exchange.FieldError{
		{Pointer: "/note", Code: "receipt", Message: "must be the receipt of the payment: 8 to 20 capital letters and digits"},
	})
}

func (d *commands) retry(ctx workflow.Context) error {
	if d.reason == "" {
		return d.pass(ctx, SignalRetry, CommandRef{})
	}
	if !slices.Contains(guide[d.reason].verbs, activities.VerbRetry) {
		return d.notAccepted(activities.VerbRetry)
	}
	d.decide(decision{verb: activities.VerbRetry})
	return nil
}

// notAccepted refuses a command that the park reason does not offer.
func (d *commands) notAccepted(verb string) error {
	return refuse(exchange.CodeStateConflict, "A flow that is parked with "+string(d.reason)+" does not accept "+verb+".")
}

// decide accepts a command.
func (d *commands) decide(taken decision) { d.decided, d.refused = &taken, "" }

// apply proves a command and accepts it. If a verb is given, the command must have that verb.
func (d *commands) apply(ctx workflow.Context, ref CommandRef, verb string) (Ack, error) {
	in := activities.ProveInput{CommandID: ref.CommandID, Objects: d.objects()}
	proof, err := step(ctx, database, "Prove the operator's command", orders.ProveCommand, in)
	if err != nil {
		return Ack{}, passOn(err)
	}
	switch {
	case verb != "" && proof.Verb != verb:
		return Ack{}, refuse(exchange.CodeStateConflict, "The signal does not match the command, which is "+proof.Verb+".")
	case d.reason == "" && d.pass == nil:
		return Ack{}, refuse(exchange.CodeStateConflict, "The flow no longer waits for a command.")
	case proof.Verb == activities.VerbResolve && proof.NoReceipt && d.wantsReceipt():
		return Ack{}, refuseNote()
	case d.reason == "":
		if err := d.pass(ctx, proof.Verb, ref); err != nil {
			workflow.GetLogger(ctx).Warn("a command could not be forwarded to the child flow", "verb", proof.Verb, "error", err)
			if e, ok := asApplication(err); ok { // it was refused, with the reason
				return Ack{}, e
			}
			return Ack{}, refuse(exchange.CodeStateConflict, "The flow does not wait for a command now.")
		}
		return Ack{Detail: proof.Verb}, nil
	case !slices.Contains(guide[d.reason].verbs, proof.Verb), d.only != nil && !slices.Contains(d.only, proof.Verb):
		return Ack{}, d.notAccepted(proof.Verb)
	}
	d.decide(decision{verb: proof.Verb, proof: proof})
	return Ack{Detail: proof.Verb}, nil
}

// park asks for an operator. Parking again with the same reason only updates the error in the details.
func (d *commands) park(ctx workflow.Context, r Reason, cause error) {
	if d.reason == r {
		if cause != nil {
			d.describe(ctx, parkedCard(d.about, r, cause))
		}
		return
	}
	d.drop(ctx) // a command was given for the reason before
	d.reason = r
	d.describe(ctx, parkedCard(d.about, r, cause)) // at once, and again when the rows have said more
	workflow.GetLogger(ctx).Error("the flow is parked", "reason", string(r), "error", cause)
	d.about.object = markParked(ctx, r, AttrWaitingFor.ValueSet(WaitsForOperator))
	d.describe(ctx, parkedCard(d.about, r, cause))
}

// drop forgets an accepted command that the flow did not come to, and says so in the details.
func (d *commands) drop(ctx workflow.Context) {
	if d.decided == nil {
		return
	}
	workflow.GetLogger(ctx).Warn("a command came too late and was not carried out", "verb", d.decided.verb, "reason", string(d.reason))
	d.refused = fmt.Sprintf("%q was not carried out, because the flow no longer waits for %s.", d.decided.verb, d.reason)
	d.decided = nil
}

// unpark ends the wait for an operator, after a decision or because the flow can go on by itself.
func (d *commands) unpark(ctx workflow.Context, waitsFor string) {
	if d.reason == "" {
		return
	}
	d.refused = ""
	d.drop(ctx)
	d.reason = ""
	markParked(ctx, "", AttrWaitingFor.ValueSet(waitsFor))
}

// attended runs a flow that accepts commands to its end. A flow that has ended is never parked; if an operator is still
// needed, the parent flow parks.
func attended[R any](ctx workflow.Context, d *commands, run func(workflow.Context) (R, error)) (R, error) {
	result, err := run(ctx)
	if d.reason != "" {
		d.unpark(ctx, WaitsForNothing)
	}
	return result, err
}

// decisionPause is for how long a decision is first tried that waits for the deposit watch.
const decisionPause = 15 * time.Second

// carryOut carries out an operator's decision to give a payment up. While it is not known yet what the payment has moved, the store
// refuses (CodeUnavailable): the flow keeps the decision, tries again, and the details say what it waits for.
func (d *commands) carryOut(ctx workflow.Context, try func(kind) error) error {
	began := workflow.Now(ctx)
	for {
		err := try(database.within(slower(ctx, decisionPause, began)))
		if err == nil || !passing(err) {
			return err
		}
		c := card{title: "The decision is kept and carried out later"}
		c.add("About", d.about.about)
		c.add("Waits for", words(err))
		d.describe(ctx, c)
	}
}

// hasDecision reports whether an operator has sent a command that was accepted.
func (d *commands) hasDecision() bool { return d.decided != nil }

// take returns the decision and clears it.
func (d *commands) take() decision {
	taken := *d.decided
	d.decided = nil
	return taken
}

// refuse returns a refusal with an exchange code.
func refuse(code exchange.Code, message string) error {
	return temporal.NewNonRetryableApplicationError(message, string(code), nil)
}

// passOn returns the activity's own failure as the answer to an update. It is written anew: the API has the flows' key, and none of
// the worker's that failed.
func passOn(err error) error {
	if e, ok := asApplication(err); ok {
		o := temporal.ApplicationErrorOptions{NonRetryable: e.NonRetryable()}
		var fields []exchange.FieldError
		if e.HasDetails() && e.Details(&fields) == nil { // details of another form are left out
			o.Details = []any{fields}
		}
		return temporal.NewApplicationErrorWithOptions(e.Message(), e.Type(), o)
	}
	return refuse(exchange.CodeUnavailable, "The step can't be carried out now. Try again later.")
}
