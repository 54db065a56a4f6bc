package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/exchange"
)

// approvalHandler receives the officers' decisions about an object, by updates of the API or by signals of the Web UI. Both
// call one function, which accepts only a token that the API gave to one officer for one decision. Ack answers an update.
//
// A token is in the history of the flow. It is encrypted there like every payload, and it is valid for one use and for
// minutes, so that a later reader of the history can't decide with it.
type approvalHandler[Ack any] struct {
	admit    func(ApprovalRef) error // refuses updates while the object does not wait for a decision, and will not soon
	idle     func() error            // refuses signals while there is no object; nil where there always is one
	about    func() decidable[Ack]   // the object, which may have changed when a decision is applied
	commands *commands               // whose details show what was refused
	refused  int                     // signals without a valid token
}

// decidable is an object that officers decide about.
type decidable[Ack any] interface {
	// prove applies a decision, and note records one without proof for the auditor.
	prove(ctx workflow.Context, action exchange.ApprovalAction, token string) (Ack, error)
	note(ctx workflow.Context, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code) error
}

// maxRefused bounds the signals without a valid token that a flow checks. More of them would only lengthen the history;
// after that, officers decide through the API.
const maxRefused = 100

var errTooManyRefused = refuse(exchange.CodeLimitReached, "There were too many signals without a valid token; decide through the API.")

// open registers the handlers. It is called before the first wait.
func (d *approvalHandler[Ack]) open(h *handlers) {
	for _, u := range []struct {
		update, signal string
		action         exchange.ApprovalAction
	}{{UpdateApprove, SignalApprove, exchange.Approve}, {UpdateReject, SignalReject, exchange.Reject}} {
		h.update(u.update, "An officer's decision, with a token that the API issued for it.", apart(func(ctx workflow.Context, ref ApprovalRef) (Ack, error) {
			return d.decide(ctx, u.action, exchange.ChannelAPI, ref)
		}), d.admit)
		signal(d.commands.ears, "signal "+u.signal, u.signal, func(ctx workflow.Context, typed OperatorSignal) {
			if err := d.listen(ctx, u.action, ApprovalRef{Token: typed.Token}); err != nil {
				d.commands.refuseSignal(ctx, u.signal, err)
			}
		})
	}
}

// listen handles the signals of the Web UI. Their argument is free text; one that is no token is refused and recorded like
// a wrong token.
func (d *approvalHandler[Ack]) listen(ctx workflow.Context, action exchange.ApprovalAction, ref ApprovalRef) error {
	if d.refused >= maxRefused {
		return errTooManyRefused
	}
	if d.idle != nil {
		if err := d.idle(); err != nil {
			return err
		}
	}
	_, err := d.decide(ctx, action, exchange.ChannelSignal, ref)
	if err != nil {
		d.refused++
		err = withoutToken(ref, err)
	}
	return err
}

// decide proves a decision and applies it. A decision without proof changes nothing and is recorded for the auditor.
func (d *approvalHandler[Ack]) decide(ctx workflow.Context, action exchange.ApprovalAction, channel exchange.ApprovalChannel, ref ApprovalRef) (Ack, error) {
	object := d.about()
	ack, err := object.prove(ctx, action, ref.Token)
	if err == nil {
		return ack, nil
	}
	if err := object.note(ctx, action, channel, exchange.CodeOf(AsExchangeError(err))); err != nil {
		workflow.GetLogger(ctx).Error("a decision without proof could not be recorded", "error", err)
	}
	return ack, passOn(err)
}

// withoutToken returns why a decision is refused: the token is missing, or err.
func withoutToken(ref ApprovalRef, err error) error {
	if ref.Token != "" {
		return err
	}
	return refuse(exchange.CodeInvalid, "It carries no token; use POST "+api+"/api/v1/auth/approvals/tokens to get one.")
}
