package api

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// refundRoutes are the routes for decisions about refunds in crypto.
func (s *server) refundRoutes() []route {
	decide := func(action exchange.ApprovalAction) route {
		return route{
			method: post, path: "/api/v1/auth/refunds/{id}/" + string(action), action: exchange.ActApprove, limit: limitGeneral,
			key: keyRequired, timeout: flowTimeout, handle: s.decideRefund(action),
		}
	}
	return []route{decide(exchange.Approve), decide(exchange.Reject)}
}

// address returns the canonical form of the address in a field. An absent one stays empty.
func (s *server) address(f *form, name string, n exchange.Network, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	check := s.Addresses[n]
	if check == nil {
		return "", exchange.Errorf(exchange.CodeUnsupported, "The network %s is not enabled here.", n)
	}
	address, err := check(text)
	if err != nil {
		f.fail(name, "address", exchange.MessageOf(addressError(n, err)))
	}
	return address, f.done()
}

// returnAddress returns the address that an exception's crypto goes back to; "" for mobile money, which goes back to the
// phone. Crypto that arrived on the wrong network has no refund address, so the request must name one.
func (s *server) returnAddress(f *form, x exchange.PaymentException, text string) (string, error) {
	if x.Kind == exchange.ExcWrongNetwork && x.Status == exchange.ExcOpen && text == "" {
		f.fail("address", "required", "is required: there is no refund address on this network")
		return "", f.done()
	}
	if n, found := x.ChainOf(); found && x.Amount.Asset() != money.KES {
		return s.address(f, "address", n, text)
	}
	return "", f.noAddress(text)
}

// noAddress refuses an address for money that goes back to its payer.
func (f *form) noAddress(text string) error {
	if text != "" {
		f.fail("address", "conflict", "must be left out: the money goes back to the payer")
	}
	return f.done()
}

// returnCrypto starts the refund of unmatched crypto. The flow opens the refund and completes it. The money goes to the
// order's refund address, or to the address of the request, which another officer has to approve. A repeated request
// changes the address as long as nothing was sent.
func (s *server) returnCrypto(c *call, x exchange.PaymentException, reason, address string) error {
	n, found := x.ChainOf()
	switch {
	case !found, x.Kind == exchange.ExcReconciliation, x.Kind == exchange.ExcPaidTwice:
		return exchange.Errorf(exchange.CodeStateConflict, "No money was received that could be refunded.")
	case x.Status != exchange.ExcOpen && x.Status != exchange.ExcRefunding && x.Status != exchange.ExcRefunded:
		return exchange.Errorf(exchange.CodeStateConflict, "The payment exception is already %s.", x.Status)
	case x.Status == exchange.ExcRefunded, x.Status == exchange.ExcRefunding && address == "":
		return nil
	case x.InFlow():
		return exchange.Errorf(exchange.CodeStateConflict, "The order's flow refunds this money. Name the address with POST /orders/%s/refund.", x.OrderID)
	}
	request := exchange.RefundRequest{ID: c.objectID, ExceptionID: x.ID, Address: address, Reason: reason}
	if err := s.Store.SaveRefundRequest(c.ctx, request, c.who); err != nil {
		return err
	}
	if x.Status == exchange.ExcOpen {
		return s.Flows.ReturnDeposit(c.ctx, x.ID, request.ID, n)
	}
	if err := s.saveCommand(c, "payment_exception", x.ID, verbRefund, reason); err != nil {
		return err
	}
	err := s.Flows.CommandReturn(c.ctx, x.ID, c.objectID)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return s.Flows.ReturnDeposit(c.ctx, x.ID, request.ID, n) // its flow has ended
	}
	return err
}

// awaitsOfficer answers 202 when the refund in crypto of an exception, or else of an order, waits for another officer. The
// refund is no control change: it is approved at its own path.
func (s *server) awaitsOfficer(c *call, order, exception uuid.UUID, addressed bool) (answered bool, err error) {
	refund, err := s.Store.AwaitedRefund(c.ctx, order, exception, addressed)
	if err != nil || refund == uuid.Nil {
		return false, err
	}
	path := "/api/v1/auth/refunds/" + refund.String()
	c.fc.Set(fiber.HeaderLocation, path)
	return true, c.json(http.StatusAccepted, wirePendingChange{[]wireChange{}, []string{path + "/approve"}})
}

// sweepKept starts the sweep of what the house keeps of an exception, from its escrow address to the treasury.
func (s *server) sweepKept(c *call, exception uuid.UUID) {
	n, found, err := s.Store.KeptOnEscrow(c.ctx, exception)
	if err == nil && found {
		err = s.Flows.KeepDeposit(c.ctx, exception, n)
	}
	if err != nil { // the decision is stored; a repeated request starts the sweep
		s.log.Warn("the sweep of what the house keeps to the treasury was not started", "exception", exception, "error", err)
	}
}

// refundByTwo answers a request about refunds by mobile money that one officer can't decide alone: it then waits for a second
// officer. It reports whether it has answered, and otherwise the decision whose flow is the only one that may get the request, if there is
// one. With several decisions, the request is about the first of those that one officer can take.
func (s *server) refundByTwo(c *call, object uuid.UUID, note string) (of store.RefundDecision, answered bool, err error) {
	all, err := s.Store.RefundDecisions(c.ctx, object, c.who.UserID)
	if err != nil {
		return of, false, err
	}
	alone := slices.IndexFunc(all, func(d store.RefundDecision) bool { return !d.Second })
	switch {
	case len(all) == 0:
		return of, false, nil
	case alone >= 0 && len(all) > 1:
		return all[alone], false, nil
	case alone >= 0:
		return of, false, nil
	}
	var waits []exchange.ControlChange
	for _, d := range all {
		proposed, err := s.Store.ProposeRefund(c.ctx, d, note, c.who)
		if err != nil {
			return of, false, err
		}
		waits = append(waits, proposed)
	}
	return of, true, answerPending(c, waits...)
}

// passRefundOn sends a decision of two officers about a refund by mobile money to the flow that carries it out, as a command
// of the officer who proposed it. If the flow can't be notified, an officer repeats the request, which needs no second
// officer any more.
func (s *server) passRefundOn(c *call, change exchange.ControlChange) {
	if change.Kind != exchange.ControlRefundDecision || change.Status != exchange.ControlConfirmed {
		return
	}
	var about struct {
		ObjectType string    `json:"object_type"`
		ObjectID   uuid.UUID `json:"object_id"`
		OrderID    uuid.UUID `json:"order_id"`
		Note       string    `json:"note"`
	}
	err := json.Unmarshal(change.Change, &about)
	if err == nil {
		command := exchange.OperatorCommand{ID: change.ID, ObjectType: "order", ObjectID: about.OrderID, Verb: verbRefund, Note: about.Note, ActorID: change.ProposedBy}
		if about.ObjectType == "payment_exception" {
			command.ObjectType, command.ObjectID = about.ObjectType, about.ObjectID
		}
		err = s.Store.SaveCommand(c.ctx, command, c.who)
	}
	if err == nil {
		err = s.commandDecided(c, about.ObjectType, about.ObjectID, change.ID)
	}
	if err != nil {
		s.log.Warn("the flow of a refund was not notified of a decision", "change", change.ID, "order", about.OrderID, "error", err)
	}
}

// commandDecided sends the command only to the flow of the object that it is about: another flow would refund other money.
func (s *server) commandDecided(c *call, objectType string, object, command uuid.UUID) error {
	switch objectType {
	case "order":
		return s.Flows.Command(c.ctx, object, command)
	case "refund":
		return s.commandRefund(c, object, command, true)
	}
	x, err := s.Store.Exception(c.ctx, object)
	if err != nil {
		return err
	}
	return s.Flows.CommandLate(c.ctx, x.AttemptID, command)
}

// decideRefund takes an officer's decision about a refund in crypto. The flow's handler also takes those from the Web UI.
func (s *server) decideRefund(action exchange.ApprovalAction) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		note, digest := f.line("note", action == exchange.Reject, maxNoteLength), f.line("digest", true, digestLength)
		if err := f.done(); err != nil {
			return err
		}
		r, err := s.Store.Refund(c.ctx, id)
		if err != nil {
			return hideAbsence(err)
		}
		if r.Rail != exchange.RefundOnChain {
			return exchange.Errorf(exchange.CodeStateConflict, "Mobile money refunds need no approval.")
		}
		k, token := s.ownTicket(c, exchange.ApproveRefund, r.ID, action, note)
		k.Amount, k.Digest = r.Amount, digest
		if _, err = s.Store.IssueRefundTicket(c.ctx, k, c.who); err != nil {
			return err
		}
		if err := s.handDecision(c, r, action, token); err != nil {
			return err
		}
		if r, err = s.Store.Refund(c.ctx, id); err != nil {
			return err
		}
		return c.json(http.StatusOK, refundWire(r))
	}
}

// handDecision sends a decision to the flow that owes the refund.
func (s *server) handDecision(c *call, r exchange.Refund, action exchange.ApprovalAction, token string) error {
	order, exception, err := s.owes(c, r)
	if err != nil {
		return err
	}
	refusal := s.unlessCounted(c, s.Flows.DecideRefund(c.ctx, order, exception, c.objectID, action, token))
	if exchange.CodeOf(refusal) == exchange.CodeNotFound {
		return exchange.Errorf(exchange.CodeStateConflict, "The refund is %s and its flow has ended; it can't be approved or rejected any more.", r.Status)
	}
	return refusal
}

// owes returns the order or the exception whose flow owes a refund in crypto.
func (s *server) owes(c *call, r exchange.Refund) (order, exception uuid.UUID, err error) {
	if r.ExceptionID == uuid.Nil {
		return r.OrderID, uuid.Nil, nil
	}
	x, err := s.Store.Exception(c.ctx, r.ExceptionID)
	if err != nil {
		return uuid.Nil, uuid.Nil, err
	}
	if x.InFlow() {
		return r.OrderID, uuid.Nil, nil
	}
	return uuid.Nil, x.ID, nil
}

// refundFlow returns the id of that flow, for officers who decide by a signal.
func (s *server) refundFlow(c *call, r exchange.Refund) (string, error) {
	order, exception, err := s.owes(c, r)
	if exception != uuid.Nil {
		return workflows.ReturnDepositID(exception), err
	}
	return workflows.OffRampID(order), err
}

// wirePendingRefund is a refund in crypto that waits for the caller.
type wirePendingRefund struct {
	ObjectType   string     `json:"object_type"`
	ObjectID     uuid.UUID  `json:"object_id"`
	OrderID      *uuid.UUID `json:"order_id"`
	ExceptionID  *uuid.UUID `json:"payment_exception_id"`
	Network      string     `json:"network"`
	Asset        string     `json:"asset"`
	Amount       string     `json:"amount"`
	ToAddress    string     `json:"to_address"`
	FiatAmount   string     `json:"fiat_amount"`
	FiatCurrency string     `json:"fiat_currency"`
	Digest       string     `json:"digest"`
	RequestedBy  *uuid.UUID `json:"requested_by"`
	AddressedBy  *uuid.UUID `json:"addressed_by"`
	CreatedAt    timestamp  `json:"created_at"`
}

func pendingRefundWire(r exchange.Refund) wirePendingRefund {
	return wirePendingRefund{
		ObjectType: string(exchange.ApproveRefund), ObjectID: r.ID, OrderID: optID(r.OrderID), ExceptionID: optID(r.ExceptionID), Network: string(r.Network),
		Asset: string(r.Amount.Asset()), Amount: r.Amount.String(), ToAddress: r.Address, FiatAmount: r.Value.String(), FiatCurrency: string(r.Value.Asset()),
		Digest: r.Digest, RequestedBy: optID(r.RequestedBy), AddressedBy: optID(r.AddressedBy), CreatedAt: stamp(r.CreatedAt),
	}
}

// askForAddress stores the refund address that an operator names for a sale, under the id of the operator's command.
// Another officer has to approve it.
func (s *server) askForAddress(c *call, f *form, o exchange.Order, text, reason string) error {
	if !o.OffRamp() {
		return f.noAddress(text)
	}
	address, err := s.address(f, "address", o.Network, text)
	if err != nil {
		return err
	}
	return s.Store.SaveRefundRequest(c.ctx, exchange.RefundRequest{ID: c.objectID, OrderID: o.ID, Address: address, Reason: reason}, c.who)
}
