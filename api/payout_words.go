package api

import (
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
)

func (s *server) payoutWordRoutes() []route {
	return []route{{
		method: post, path: "/api/v1/auth/orders/{id}/declare-unpaid", action: exchange.ActOperateFlows, limit: limitGeneral, key: keyRequired,
		handle: s.declareUnpaid,
	}}
}

// declareUnpaid proposes that an order's payout, of which nobody says what became of it, was not made. A second person
// confirms it; then the order's flow goes on.
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
	if !o.OffRamp() {
		return exchange.Errorf(exchange.CodeStateConflict, "A purchase pays nothing out by mobile money.")
	}
	proposed, err := s.Store.ProposeUnpaid(c.ctx, o.ID, note, c.who)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		err = exchange.Errorf(exchange.CodeStateConflict, "The order owes no payout.")
	}
	if err != nil {
		return err
	}
	return tellWaiting(c, proposed)
}

// needsSecond answers a resolve that names the receipt of a payout which is too large for one person's word: it waits
// for a second person. It reports whether it has answered.
func (s *server) needsSecond(c *call, o exchange.Order, verb, note string) (bool, error) {
	receipt := exchange.ReceiptIn(note)
	if verb != verbResolve || !o.OffRamp() || receipt == "" {
		return false, nil
	}
	second, err := s.Store.ReceiptNeedsSecond(c.ctx, o.ID, receipt)
	if err != nil || !second {
		return false, err
	}
	proposed, err := s.Store.ProposeReceipt(c.ctx, o.ID, receipt, c.who)
	if err != nil {
		return false, err
	}
	return true, tellWaiting(c, proposed)
}

// tellOfWord hands what two persons say of a payout to the order's flow, as a command of the second one. The word is
// stored already: a flow that can't be told finds that a payout was not made by itself, and one that was made is
// resolved again by anybody.
func (s *server) tellOfWord(c *call, change exchange.ControlChange) {
	if change.Kind != exchange.ControlPayoutWord || change.Status != exchange.ControlConfirmed {
		return
	}
	var about struct {
		OrderID uuid.UUID `json:"order_id"`
		Receipt string    `json:"receipt"`
	}
	err := json.Unmarshal(change.Change, &about)
	if err == nil {
		command := exchange.OperatorCommand{
			ID: change.ID, ObjectType: "order", ObjectID: about.OrderID, Verb: verbRetry, Note: "declared not made", ActorID: c.who.UserID, CreatedAt: s.now().UTC(),
		}
		if about.Receipt != "" {
			command.Verb, command.Note = verbResolve, about.Receipt
		}
		err = s.Store.SaveCommand(c.ctx, command, c.who)
	}
	if err == nil {
		err = s.command(c, exchange.Order{ID: about.OrderID, Type: exchange.OffRampSell}, change.ID)
	}
	if err != nil {
		s.log.Warn("an order's flow was not told what became of its payout", "change", change.ID, "order", about.OrderID, "error", err)
	}
}
