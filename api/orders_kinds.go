package api

import (
	"net/http"

	"kivuko/exchange"
)

// mayCancel tells whether somebody who may see an order may also ask for its end. A merchant sees the orders of
// customers against its offers, and cancels only those that it opened.
func mayCancel(o exchange.Order, who exchange.Principal) bool {
	if !who.Role.Merchant() {
		return true
	}
	return o.Kind().VendorOpens && o.VendorID == who.VendorID || o.CustomerID == who.VendorID
}

// setRefundAddress says where the crypto of a sale goes back to, where its customer did not say it before.
func (s *server) setRefundAddress(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	address := f.line("refund_address", true, maxAddressText)
	if err := f.done(); err != nil {
		return err
	}
	o, err := s.visible(c)
	if err != nil {
		return err
	}
	if address, err = s.address(f, "refund_address", o.Network, address); err != nil {
		return err
	}
	if o, err = s.Store.SetRefundAddress(c.ctx, c.view(), o.ID, address, c.who); err != nil {
		return hideAbsence(err)
	}
	// It is stored: a flow that waits for it and does not hear of it looks again by itself.
	if err := s.Flows.RefundAddressSet(c.ctx, o.ID); err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
		s.log.Warn("a sale's flow was not told of its refund address", "order", o.ID, "error", err)
	}
	return c.json(http.StatusOK, orderWire(o, c.who))
}
