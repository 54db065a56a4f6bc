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
	return c.json(http.StatusOK, orderWire(o, c.who))
}

func (c *call) orders(in []exchange.Order) []wireOrder {
	return each(in, func(o exchange.Order) wireOrder { return orderWire(o, c.who) })
}

// orderStatuses and the like are the words that filters take.
var (
	orderStatuses = []string{"pending", "processing", "confirming", "completed", "cancelled", "failed"}
	orderTypes    = []string{"ON_RAMP_BUY", "ON_RAMP_SELL", "OFF_RAMP_BUY", "OFF_RAMP_SELL"}
	orderSubtypes = []string{
		"standard_onramp", "standard_offramp", "remittance_offramp", "custodial_remittance_offramp", "treasury_offramp",
	}
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

// told answers a verb with the order as it is now.
func (s *server) told(c *call, id uuid.UUID) error {
	o, err := s.Store.Order(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, orderWire(o, c.who))
}

// ended words the answer of a flow that is over: what the order became.
func (s *server) ended(c *call, o exchange.Order, err error) error {
	if exchange.CodeOf(err) != exchange.CodeNotFound {
		return err
	}
	now, readErr := s.Store.Order(c.ctx, c.view(), o.ID)
	if readErr != nil {
		return readErr
	}
	return exchange.Errorf(exchange.CodeStateConflict, "The order is %s (%s) and its flow has ended; nothing can be done with it any more.",
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
		return exchange.Errorf(exchange.CodeForbidden, "A merchant can cancel the orders that it opened. This one is the customer's.")
	}
	cancel := s.Flows.CancelOrder
	if o.OffRamp() {
		cancel = s.Flows.CancelOffRamp
	}
	if err := cancel(c.ctx, o.ID, c.objectID, c.who); err != nil {
		return s.ended(c, o, err)
	}
	return s.told(c, o.ID)
}

func (s *server) retryPayment(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	o, err := s.visible(c)
	if err != nil {
		return err
	}
	if o.OffRamp() {
		return exchange.Errorf(exchange.CodeStateConflict, "Off-ramp orders have no payment to retry.")
	}
	if err := s.Flows.RetryPayment(c.ctx, o.ID, c.objectID, c.who); err != nil {
		return s.ended(c, o, err)
	}
	return s.told(c, o.ID)
}

// The verbs of operators on parked flows.
const (
	verbRetry   = "retry"
	verbRefund  = "refund"
	verbResolve = "resolve"
)

// operate records an operator's decision and hands its id to the flow, which acts on the row alone.
func (s *server) operate(verb string) func(*call) error {
	return func(c *call) error {
		f, err := c.body()
		if err != nil {
			return err
		}
		// A retry changes nothing about the money; the other verbs must say why.
		note := f.line("note", verb != verbRetry, maxNoteLength)
		address := ""
		if verb == verbRefund {
			address = f.line("address", false, maxAddressText)
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
		if answered, err := s.needsSecond(c, o, verb, note); answered || err != nil {
			return err
		}
		if err := s.saveCommand(c, "order", o.ID, verb, note); err != nil {
			return err
		}
		if err := s.command(c, o, c.objectID); err != nil {
			return s.ended(c, o, err)
		}
		return s.told(c, o.ID)
	}
}

// command hands an operator's decision to the order's flow. Where that is over, or waits for no decision, it
// goes to the flows that watch over late money of the order's prompts: to the first that takes it. A
// decision that was taken up before counts only once, so it is not handed on.
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
	used, readErr := s.Store.CommandUsed(c.ctx, command)
	switch {
	case readErr != nil:
		return readErr
	case used && code == exchange.CodeNotFound:
		return exchange.Errorf(exchange.CodeStateConflict, "This command was taken up before; the order's timeline shows what came of it.")
	case used:
		return err
	}
	return s.commandLate(c, o.ID, command, err)
}

// commandLate asks the watches over late money, and over late words about payouts, and returns the refusal that says most when none obeys.
func (s *server) commandLate(c *call, order, command uuid.UUID, refusal error) error {
	prompts, err := s.Store.Collections(c.ctx, order)
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
		case exchange.CodeNotFound: // nobody watches over this one
		case exchange.CodeStateConflict:
			refusal = err
		default:
			return err
		}
	}
	return refusal
}

// saveCommand records an operator's decision about an object under the request's id, so that a retried request finds
// its own.
func (s *server) saveCommand(c *call, object string, id uuid.UUID, verb, note string) error {
	return s.Store.SaveCommand(c.ctx, exchange.OperatorCommand{
		ID: c.objectID, ObjectType: object, ObjectID: id, Verb: verb, Note: note, ActorID: c.who.UserID,
	}, c.who)
}
