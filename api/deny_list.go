package api

import (
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// wireDenied is an entry of the deny list.
type wireDenied struct {
	ID      uuid.UUID `json:"id"`
	Network string    `json:"network"`
	Address string    `json:"address"`
	Note    string    `json:"note"`
	AddedBy uuid.UUID `json:"added_by"`
	AddedAt timestamp `json:"added_at"`
}

func deniedWire(d exchange.DeniedAddress) wireDenied {
	return wireDenied{d.ID, string(d.Network), d.Address, d.Reason, d.AddedBy, stamp(d.AddedAt)}
}

func (s *server) listDenied(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	network := exchange.Network(q.oneOf("network", networkNames...))
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "denied", page, deniedWire)(s.Store.DenyList(c.ctx, network, page))
}

// deny puts an address on the deny list, in its canonical form, so that every spelling of it is denied. Senders are
// checked against the list too, so it accepts contracts and other addresses that can't be paid.
func (s *server) deny(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	d := exchange.DeniedAddress{ID: c.objectID, Network: exchange.Network(f.oneOf("network", true, networkNames...))}
	d.Reason = f.line("note", true, maxNoteLength)
	address := f.line("address", true, maxAddressText)
	if check := s.AnyAddresses[d.Network]; check != nil && address != "" {
		if d.Address, err = check(address); err != nil {
			f.fail("address", "address", exchange.MessageOf(addressError(d.Network, err)))
		}
	}
	if err := f.done(); err != nil {
		return err
	}
	if d.Address == "" {
		return exchange.Errorf(exchange.CodeUnsupported, "Addresses of the network %s can't be checked here yet.", d.Network)
	}
	listed, err := s.Store.Deny(c.ctx, d, c.who)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, deniedWire(listed))
}

// undeny proposes to remove an entry from the list; a second officer confirms it. Transfers that it blocked stay blocked.
func (s *server) undeny(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	waits, err := s.Store.ProposeUndeny(c.ctx, id, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	return answerPending(c, waits)
}
