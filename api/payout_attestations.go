package api

import (
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/workflows"
)

func (s *server) payoutAttestationRoutes() []route {
	return []route{{
		method: post, path: "/api/v1/auth/orders/{id}/declare-unpaid", action: exchange.ActOperateFlows, limit: limitGeneral, key: keyRequired,
		handle: s.declareUnpaid,
	}}
}

// declareUnpaid proposes to declare that a payout of an order, or of its refund, with an unknown outcome was not made.
// After a second officer confirms it, the order's flow continues.
func (s *server) declareUnpaid(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	note := f.line("note", true, exchange.MaxPayoutNote)
	if err := f.done(); err != nil {
		return err
	}
	o, err := s.visible(c)
	if err != nil {
		return err
	}
	proposed, err := s.Store.ProposeUnpaid(c.ctx, exchange.OrderObject(o.ID), note, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, proposed)
}

// needsSecond answers a resolve with the receipt of a payout that is too large for one officer's attestation: the receipt
// then waits for a second officer. It reports whether it has answered, and otherwise the refund whose flow is the only one that may get
// the receipt, if there is one.
func (s *server) needsSecond(c *call, o exchange.Order, note string, named uuid.UUID) (refund uuid.UUID, answered bool, err error) {
	receipt := exchange.ReceiptIn(note)
	switch {
	case receipt == "" && named != uuid.Nil:
		return named, false, exchange.Invalid(exchange.FieldError{Pointer: "/note", Code: "receipt", Message: "must be the receipt of the payment"})
	case receipt == "":
		return named, false, nil
	}
	of, sure, err := s.Store.PayoutToSettle(c.ctx, o, receipt, named)
	if err != nil || of.ID == uuid.Nil {
		return named, false, err
	}
	if sure {
		named = of.ID
	}
	second, err := s.Store.ReceiptNeedsSecond(c.ctx, of, receipt)
	if err != nil || !second {
		return named, false, err
	}
	proposed, err := s.Store.ProposeReceipt(c.ctx, of, receipt, c.who)
	if err != nil {
		return named, false, err
	}
	return named, true, answerPending(c, proposed)
}

// passAttestationOn sends what two officers attest about a payout to its flow, as a command of the second one. The
// attestation is stored already. If the flow can't be notified, it finds by itself that a payout was not made; for a
// payout that was made, an operator repeats the resolve.
func (s *server) passAttestationOn(c *call, change exchange.ControlChange) {
	if change.Kind != exchange.ControlPayoutAttestation || change.Status != exchange.ControlConfirmed {
		return
	}
	var about struct {
		ObjectType exchange.MomoObjectType `json:"object_type"`
		ObjectID   uuid.UUID               `json:"object_id"`
		OrderID    uuid.UUID               `json:"order_id"`
		RefundID   *uuid.UUID              `json:"refund_id"`
		Receipt    string                  `json:"receipt"`
	}
	err := json.Unmarshal(change.Change, &about)
	withdrawn := about.ObjectType == exchange.MomoWithdrawal
	if err == nil {
		command := exchange.OperatorCommand{
			ID: change.ID, ObjectType: "order", ObjectID: about.OrderID, Verb: verbRetry, Note: "declared not made", ActorID: c.who.UserID, CreatedAt: s.now().UTC(),
		}
		if withdrawn {
			command.ObjectType, command.ObjectID = withdrawalObject, about.ObjectID
		}
		if about.Receipt != "" {
			command.Verb, command.Note = verbResolve, about.Receipt
		}
		err = s.Store.SaveCommand(c.ctx, command, c.who)
	}
	switch {
	case err != nil:
	case withdrawn:
		err = s.commandWithdrawal(c.ctx, c, about.ObjectID, change.ID)
	case about.RefundID == nil:
		err = s.command(c, exchange.Order{ID: about.OrderID, Type: exchange.OffRampSell}, change.ID)
	default:
		// A retry of a flow that starts payouts could send one.
		err = s.commandRefund(c, *about.RefundID, change.ID, about.Receipt != "")
	}
	if err != nil {
		s.log.Warn("a payout's flow was not notified of its outcome", "change", change.ID, string(about.ObjectType), about.ObjectID, "error", err)
	}
}

// commandRefund sends an operator's decision only to flows of the refund: that of its payout or, when that one has ended, one
// that checks late notices about it or, if starters is set, started it. A decision that was applied before is not sent again.
func (s *server) commandRefund(c *call, refund, command uuid.UUID, starters bool) error {
	refusal := s.Flows.CommandFlow(c.ctx, workflows.MomoPayoutID(exchange.RefundObject(refund)), command)
	if exchange.CodeOf(refusal) != exchange.CodeNotFound {
		return refusal
	}
	if err := s.unused(c, command, refusal); err != nil {
		return err
	}
	flows, err := s.flowsOfRefund(c, refund, starters)
	if err != nil {
		return err
	}
	for _, flow := range flows {
		err := s.Flows.CommandFlow(c.ctx, flow, command)
		switch exchange.CodeOf(err) {
		case exchange.CodeNotFound: // it has ended
		case exchange.CodeStateConflict:
			refusal = err
		default:
			return err
		}
	}
	return refusal
}

// flowsOfRefund returns the ids of the flows that check late notices about the refund's payouts and, if starters is set, of
// those that started them. Before the first payout, that is the flow that owes the refund.
func (s *server) flowsOfRefund(c *call, id uuid.UUID, starters bool) ([]string, error) {
	r, err := s.Store.Refund(c.ctx, id)
	if err != nil {
		return nil, err
	}
	payouts, err := s.Store.PayoutsOf(c.ctx, exchange.RefundObject(id))
	var flows []string
	for _, a := range payouts {
		if starters {
			flows = append(flows, a.WorkflowID)
		}
		flows = append(flows, workflows.LatePayoutID(a.ID))
	}
	if len(flows) > 0 || err != nil || !starters {
		return flows, err
	}
	order, _, err := s.owes(c, r)
	if order == uuid.Nil {
		return []string{workflows.LatePaymentID(r.AttemptID)}, err
	}
	return []string{workflows.OnRampID(order)}, err
}
