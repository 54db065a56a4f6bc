package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// approvalDoor is where officers decide about a transfer. Its two doors, the updates of the API and the
// signals of the Web UI, lead to one function, which believes nothing but a token that the API gave to one
// officer for one decision.
//
// A token passes through the history of the flow. It is encrypted there like every payload, good for one
// use and for minutes, so that nobody who reads a history later can decide with it.
type approvalDoor struct {
	transfer uuid.UUID
	waiting  func() bool // for a decision, or soon
	learn    func(workflow.Context, activities.TransferState)
	refused  int // signals without a valid token
}

// maxRefused bounds the signals without a valid token that a flow looks into. Whoever sends more than that
// would only lengthen the history; officers are heard through the API after that.
const maxRefused = 100

// openApprovalDoor registers the handlers. It is called before the first wait.
func openApprovalDoor(h *handlers, d *approvalDoor) {
	for _, u := range []struct {
		name   string
		action exchange.ApprovalAction
	}{{UpdateApprove, exchange.Approve}, {UpdateReject, exchange.Reject}} {
		h.update(u.name, "An officer's decision, with a token that the API made for it.", func(ctx workflow.Context, ref ApprovalRef) (TransferAck, error) {
			return d.decide(ctx, u.action, exchange.DoorAPI, ref)
		}, d.admit)
	}
	for _, s := range []struct {
		name   string
		action exchange.ApprovalAction
	}{{SignalApprove, exchange.Approve}, {SignalReject, exchange.Reject}} {
		signal(h.ctx, "signal "+s.name, s.name, func(ctx workflow.Context, sent any) { d.listen(ctx, s.name, s.action, sent) })
	}
}

// admit refuses decisions while nobody waits for one.
func (d *approvalDoor) admit(ApprovalRef) error {
	if !d.waiting() {
		return refuse(exchange.CodeStateConflict, "The transfer waits for no decision.")
	}
	return nil
}

// listen is the Web UI's door. Whatever was typed arrives; what can't be read as a token is refused and noted like a wrong one.
func (d *approvalDoor) listen(ctx workflow.Context, name string, action exchange.ApprovalAction, sent any) {
	if d.refused >= maxRefused {
		workflow.GetLogger(ctx).Warn("a signal was ignored: there were too many without a valid token", "signal", name)
		return
	}
	if _, err := d.decide(ctx, action, exchange.DoorSignal, tokenIn(sent)); err != nil {
		d.refused++
	}
}

// decide is the one handler. What is not proven is noted for the auditor and changes nothing.
func (d *approvalDoor) decide(ctx workflow.Context, action exchange.ApprovalAction, door exchange.ApprovalDoor, ref ApprovalRef) (TransferAck, error) {
	in := activities.DecideInput{TransferID: d.transfer, Action: action, Token: ref.Token}
	s, err := step(ctx, database, "Prove the officer's decision", approvals.DecideTransfer, in)
	if err == nil {
		d.learn(ctx, s)
		return TransferAck{Status: s.Status, Detail: s.Detail}, nil
	}
	refusal := activities.RefusedDecisionInput{TransferID: d.transfer, Action: action, Door: door, Code: exchange.CodeOf(AsExchangeError(err))}
	if err := do(ctx, database, "Note a decision without proof", approvals.RecordRefusedDecision, refusal); err != nil {
		workflow.GetLogger(ctx).Error("a decision without proof was not noted", "error", err)
	}
	return TransferAck{}, passOn(err)
}

// tokenIn finds the token in the argument of a signal, {"token": "…"}.
func tokenIn(sent any) ApprovalRef {
	fields, _ := sent.(map[string]any)
	token, _ := fields["token"].(string)
	return ApprovalRef{Token: token}
}
