package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// approvalHandler receives the officers' decisions about a transfer, by updates of the API or by signals of the Web UI.
// Both call one function, which accepts only a token that the API gave to one officer for one decision.
//
// A token is in the history of the flow. It is encrypted there like every payload, and it is valid for one use and for
// minutes, so that a later reader of the history can't decide with it.
type approvalHandler struct {
	transfer uuid.UUID
	waiting  func() bool // reports whether the transfer waits for a decision, or will soon
	learn    func(workflow.Context, activities.TransferState)
	commands *commands // whose details show what was refused
	refused  int       // signals without a valid token
}

// maxRefused bounds the signals without a valid token that a flow checks. More of them would only lengthen the history;
// after that, officers decide through the API.
const maxRefused = 100

var errTooManyRefused = refuse(exchange.CodeLimitReached, "There were too many signals without a valid token; decide through the API.")

// openApprovalHandler registers the handlers. It is called before the first wait.
func openApprovalHandler(h *handlers, d *approvalHandler) {
	for _, u := range []struct {
		name   string
		action exchange.ApprovalAction
	}{{UpdateApprove, exchange.Approve}, {UpdateReject, exchange.Reject}} {
		h.update(u.name, "An officer's decision, with a token that the API issued for it.", func(ctx workflow.Context, ref ApprovalRef) (TransferAck, error) {
			return d.decide(ctx, u.action, exchange.ChannelAPI, ref)
		}, d.admit)
	}
	for _, s := range []struct {
		name   string
		action exchange.ApprovalAction
	}{{SignalApprove, exchange.Approve}, {SignalReject, exchange.Reject}} {
		signal(h.ctx, "signal "+s.name, s.name, func(ctx workflow.Context, sent any) { d.listen(ctx, s.name, s.action, sent) })
	}
}

// admit refuses decisions while the transfer does not wait for one.
func (d *approvalHandler) admit(ApprovalRef) error {
	if !d.waiting() {
		return refuse(exchange.CodeStateConflict, "The transfer does not wait for a decision.")
	}
	return nil
}

// listen handles the signals of the Web UI. Their argument is free text; one that is no token is refused and recorded like
// a wrong token.
func (d *approvalHandler) listen(ctx workflow.Context, name string, action exchange.ApprovalAction, sent any) {
	if d.refused >= maxRefused {
		d.commands.refuseSignal(ctx, name, errTooManyRefused)
		return
	}
	ref := tokenIn(sent)
	if _, err := d.decide(ctx, action, exchange.ChannelSignal, ref); err != nil {
		d.refused++
		d.commands.refuseSignal(ctx, name, withoutToken(ref, err))
	}
}

// decide proves a decision and applies it. A decision without proof changes nothing and is recorded for the auditor.
func (d *approvalHandler) decide(ctx workflow.Context, action exchange.ApprovalAction, channel exchange.ApprovalChannel, ref ApprovalRef) (TransferAck, error) {
	in := activities.DecideInput{TransferID: d.transfer, Action: action, Token: ref.Token}
	s, err := step(ctx, database, "Prove the officer's decision", approvals.DecideTransfer, in)
	if err == nil {
		d.learn(ctx, s)
		return TransferAck{Status: s.Status, Detail: s.Detail}, nil
	}
	refusal := activities.RefusedDecisionInput{TransferID: d.transfer, Action: action, Channel: channel, Code: exchange.CodeOf(AsExchangeError(err))}
	if err := do(ctx, database, "Record a decision without proof", approvals.RecordRefusedDecision, refusal); err != nil {
		workflow.GetLogger(ctx).Error("a decision without proof could not be recorded", "error", err)
	}
	return TransferAck{}, passOn(err)
}

// withoutToken returns why a decision is refused: the token is missing, or err.
func withoutToken(ref ApprovalRef, err error) error {
	if ref.Token != "" {
		return err
	}
	return refuse(exchange.CodeInvalid, "It carries no token; use POST "+api+"/api/v1/auth/approvals/tokens to get one.")
}

// tokenIn returns the token in the argument of a signal, {"token": "…"}.
func tokenIn(sent any) ApprovalRef {
	fields, _ := sent.(map[string]any)
	token, _ := fields["token"].(string)
	return ApprovalRef{Token: token}
}
