package api

import (
	"kivuko/exchange"
)

// mayCancel reports whether a caller who may see an order may also cancel it. A merchant sees the orders of
// customers against its offers, but may cancel only those that it opened.
func mayCancel(o exchange.Order, who exchange.Principal) bool {
	if !who.Role.Merchant() {
		return true
	}
	return o.Kind().VendorOpens && o.VendorID == who.VendorID || o.CustomerID == who.VendorID
}

// setRefundAddress stores the refund address of a sale that has none yet.
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
	if o, err = s.Store.SetRefundAddress(c.ctx, c.view(), o.ID, address, c.ifVersions, c.who); err != nil {
		return hideAbsence(err)
	}
	// The address is stored: a flow that misses the signal polls for it.
	if err := s.Flows.RefundAddressSet(c.ctx, o.ID); err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
		s.log.Warn("a sale's flow was not notified of its refund address", "order", o.ID, "error", err)
	}
	return c.tagged(o.Version, orderWire(o, c.who))
}
