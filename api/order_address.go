package api

import (
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// correctAddress proposes another address for the crypto of a purchase whose payment is parked. After a second officer
// confirms it, the order's flow sends the crypto there.
func (s *server) correctAddress(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	address, note := f.line("wallet_address", true, maxAddressText), f.line("note", true, maxNoteLength)
	if err := f.done(); err != nil {
		return err
	}
	o, err := s.visible(c)
	if err != nil {
		return err
	}
	request := exchange.OrderRequest{Seen: exchange.SeenOffer{Network: o.Network}}
	if err := s.readAddresses(f, &request, address, ""); err != nil {
		return err
	}
	if err := f.done(); err != nil {
		return err
	}
	proposed, err := s.Store.ProposeOrderAddress(c.ctx, o.ID, request.WalletAddress, note, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, proposed)
}

// passAddressOn lets the flow of a purchase go on with the address that two officers agreed on, as a retry of the second
// one. The address is stored already: if the flow can't be notified, an operator sends retry.
func (s *server) passAddressOn(c *call, change exchange.ControlChange) {
	if change.Kind != exchange.ControlOrderAddress || change.Status != exchange.ControlConfirmed {
		return
	}
	var about struct {
		OrderID uuid.UUID `json:"order_id"`
	}
	err := json.Unmarshal(change.Change, &about)
	if err == nil {
		err = s.Store.SaveCommand(c.ctx, exchange.OperatorCommand{
			ID: change.ID, ObjectType: "order", ObjectID: about.OrderID, Verb: verbRetry, Note: "another address", ActorID: c.who.UserID, CreatedAt: s.now().UTC(),
		}, c.who)
	}
	if err == nil {
		err = s.Flows.Command(c.ctx, about.OrderID, change.ID) // a retry of any other flow would repeat something else
	}
	if err != nil {
		s.log.Warn("a purchase's flow was not notified of its address", "change", change.ID, "order", about.OrderID, "error", err)
	}
}
