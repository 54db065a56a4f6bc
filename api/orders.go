package api

import (
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

func (s *server) getOrder(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	o, err := s.Store.Order(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.tagged(o.Version, orderWire(o, c.who))
}

func (c *call) orders(in []exchange.Order) []wireOrder {
	return each(in, func(o exchange.Order) wireOrder { return orderWire(o, c.who) })
}

// The values that filters accept.
var (
	orderStatuses = []string{"pending", "processing", "confirming", "completed", "cancelled", "failed"}
	orderTypes    = []string{"ON_RAMP_BUY", "ON_RAMP_SELL", "OFF_RAMP_BUY", "OFF_RAMP_SELL"}
	orderSubtypes = names(exchange.OrderSubtypes())
)

func (s *server) listOrders(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.OrderFilter{
		Status: exchange.OrderStatus(q.oneOf("status", orderStatuses...)), Type: exchange.OrderType(q.oneOf("order_type", orderTypes...)),
		Subtype: exchange.OrderSubtype(q.oneOf("order_subtype", orderSubtypes...)), OfferID: q.id("offer_id"),
		Network: exchange.Network(q.oneOf("network", networkNames...)), Asset: money.Asset(q.oneOf("asset", stablecoins...)),
		CustomerID: q.id("customer_id"), VendorID: q.id("vendor_id"), Least: q.amount("min_amount", money.USDT), Most: q.amount("max_amount", money.USDT),
		CreatedFrom: q.time("created_from"), CreatedTo: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	orders, total, err := s.Store.ListOrders(c.ctx, c.view(), filter, page)
	if err != nil {
		return err
	}
	return c.list("orders", c.orders(orders), page, total)
}

func (s *server) searchOrders(c *call) error {
	q := c.query()
	text := q.text("query", true)
	page := q.page(searchPage)
	if err := q.done(); err != nil {
		return err
	}
	orders, total, err := s.Store.SearchOrders(c.ctx, c.view(), text, page)
	if err != nil {
		return err
	}
	return c.bare(c.orders(orders), total)
}

func (s *server) orderTimeline(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	events, err := s.Store.OrderTimeline(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, map[string]any{"order_id": id, "events": each(events, c.eventWire)})
}

// visible reads the order that a verb acts on.
func (s *server) visible(c *call) (exchange.Order, error) {
	id, err := c.pathID("id")
	if err != nil {
		return exchange.Order{}, err
	}
	o, err := s.Store.Order(c.ctx, c.view(), id)
	return o, hideAbsence(err)
}

// answerOrder answers a verb with the order as it is now.
func (s *server) answerOrder(c *call, id uuid.UUID) error {
	o, err := s.Store.Order(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, orderWire(o, c.who))
}

// retryRequested in the answer of a retry means that the flow has accepted it. The object is shown as it is now, before the
// result of the retry.
const retryRequested = "requested"

func (s *server) answerRetried(c *call, id uuid.UUID) error {
	o, err := s.Store.Order(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	w := orderWire(o, c.who)
	w.Retry = retryRequested
	return c.json(http.StatusAccepted, w)
}

// ended replaces the error of a flow that has ended with one that names the order's state.
func (s *server) ended(c *call, o exchange.Order, err error) error {
	if exchange.CodeOf(err) != exchange.CodeNotFound {
		return err
	}
	now, readErr := s.Store.Order(c.ctx, c.view(), o.ID)
	if readErr != nil {
		return readErr
	}
	return exchange.Errorf(exchange.CodeStateConflict, "The order is %s (%s) and its flow has ended; it can't be changed any more.",
		now.Status, now.StatusDetail)
}

func (s *server) cancelOrder(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	o, err := s.visible(c)
	if err != nil {
		return err
	}
	if !mayCancel(o, c.who) {
		return exchange.Errorf(exchange.CodeForbidden, "A merchant can only cancel orders that it opened. The customer opened this order.")
	}
	kind, cancel := exchange.IntendPurchaseCancel, s.Flows.CancelOrder
	if o.OffRamp() {
		kind, cancel = exchange.IntendSaleCancel, s.Flows.CancelOffRamp
	}
	err = s.ask(c, kind, o.ID, nil, func(intent uuid.UUID) error { return cancel(c.ctx, o.ID, intent) })
	if err != nil {
		return s.ended(c, o, err)
	}
	return s.answerOrder(c, o.ID)
}

func (s *server) retryPayment(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	o, err := s.visible(c)
	if err != nil {
		return err
	}
	if !o.OwnedBy(c.who) {
		return exchange.Errorf(exchange.CodeForbidden, "Only the customer of an order can ask for another prompt.")
	}
	if o.OffRamp() {
		return exchange.Errorf(exchange.CodeStateConflict, "Off-ramp orders have no payment to retry.")
	}
	err = s.ask(c, exchange.IntendPrompt, o.ID, nil, func(intent uuid.UUID) error { return s.Flows.RetryPayment(c.ctx, o.ID, intent) })
	if err != nil {
		return s.ended(c, o, err)
	}
	return s.answerOrder(c, o.ID)
}

// The verbs of operators on parked flows.
const (
	verbRetry   = "retry"
	verbRefund  = "refund"
	verbResolve = "resolve"
)

// operate records an operator's decision and sends its id to the flow, which acts only on the row.
func (s *server) operate(verb string) func(*call) error {
	return func(c *call) error {
		f, err := c.body()
		if err != nil {
			return err
		}
		// A retry changes nothing about the money; the other verbs need a reason.
		note := f.line("note", verb != verbRetry, maxNoteLength)
		address, refund := "", uuid.Nil
		switch verb {
		case verbRefund:
			address = f.line("address", false, maxAddressText)
		case verbResolve:
			refund = f.id("refund_id", false)
		}
		if err := f.done(); err != nil {
			return err
		}
		o, err := s.visible(c)
		if err != nil {
			return err
		}
		if address != "" {
			if err := s.askForAddress(c, f, o, address, note); err != nil {
				return err
			}
		}
		var answered bool
		var of store.RefundDecision
		switch verb {
		case verbRefund:
			of, answered, err = s.refundByTwo(c, o.ID, note)
		case verbResolve:
			of.ObjectType = "refund"
			of.ObjectID, answered, err = s.needsSecond(c, o, note, refund)
		}
		if answered || err != nil {
			return err
		}
		if err := s.saveCommand(c, "order", o.ID, verb, note); err != nil {
			return err
		}
		if err := s.deliver(c, o, of); err != nil {
			return s.ended(c, o, err)
		}
		switch {
		case verb == verbRetry:
			return s.answerRetried(c, o.ID)
		case verb == verbRefund && o.OffRamp():
			if answered, err := s.awaitsOfficer(c, o.ID, uuid.Nil, address != ""); answered || err != nil {
				return err
			}
		}
		return s.answerOrder(c, o.ID)
	}
}

// deliver sends the request's decision to the flow that it names, or to the order's flow if it names none.
func (s *server) deliver(c *call, o exchange.Order, of store.RefundDecision) error {
	if of.ObjectID != uuid.Nil {
		return s.commandDecided(c, of.ObjectType, of.ObjectID, c.objectID)
	}
	return s.command(c, o, c.objectID)
}

// command sends an operator's decision to the order's flow. If that flow has ended, or waits for no decision,
// the first flow that watches for late money of the order and accepts the decision gets it. A decision that
// was applied before is not sent again.
func (s *server) command(c *call, o exchange.Order, command uuid.UUID) error {
	hand := s.Flows.Command
	if o.OffRamp() {
		hand = s.Flows.CommandOffRamp
	}
	err := hand(c.ctx, o.ID, command)
	code := exchange.CodeOf(err)
	if code != exchange.CodeNotFound && code != exchange.CodeStateConflict {
		return err
	}
	if refusal := s.unused(c, command, err); refusal != nil {
		return refusal
	}
	return s.commandLate(c, o.ID, command, err)
}

// unused returns nil if a flow's refusal of a decision lets it go to another flow: the decision was not applied before.
func (s *server) unused(c *call, command uuid.UUID, refusal error) error {
	used, err := s.Store.CommandUsed(c.ctx, command)
	switch {
	case err != nil:
		return err
	case used && exchange.CodeOf(refusal) == exchange.CodeNotFound:
		return exchange.Errorf(exchange.CodeStateConflict, "This command was applied before; the order's timeline shows the result.")
	case used:
		return refusal
	}
	return nil
}

// commandLate sends a decision to the flows that watch for late money and for late notices about payouts. When none
// accepts it, commandLate returns the most specific refusal.
func (s *server) commandLate(c *call, order, command uuid.UUID, refusal error) error {
	prompts, err := s.Store.Collections(c.ctx, exchange.OrderObject(order))
	if err != nil {
		return err
	}
	payouts, err := s.Store.Payouts(c.ctx, order)
	if err != nil {
		return err
	}
	for _, a := range append(prompts, payouts...) {
		err := s.Flows.CommandLate(c.ctx, a.ID, command)
		switch exchange.CodeOf(err) {
		case exchange.CodeNotFound: // no flow watches this attempt
		case exchange.CodeStateConflict:
			refusal = err
		default:
			return err
		}
	}
	return refusal
}

// saveCommand records an operator's decision about an object under the request's id, so that a retried request finds it.
func (s *server) saveCommand(c *call, object string, id uuid.UUID, verb, note string) error {
	return s.Store.SaveCommand(c.ctx, exchange.OperatorCommand{
		ID: c.objectID, ObjectType: object, ObjectID: id, Verb: verb, Note: note, ActorID: c.who.UserID,
	}, c.who)
}

// commandRow records an operator's decision about a row and sends it to the flow that carries the row to its end. called is the row's name in
// the refusal when that flow has ended.
func (s *server) commandRow(c *call, object string, id uuid.UUID, verb, note, flow, called string) error {
	if err := s.saveCommand(c, object, id, verb, note); err != nil {
		return err
	}
	err := s.Flows.CommandFlow(c.ctx, flow, c.objectID)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return exchange.Errorf(exchange.CodeStateConflict, "The flow of the %s has ended; it can't be changed any more.", called)
	}
	return err
}
