package api

import (
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
)

func (s *server) freezeRoutes() []route {
	const freeze = "/api/v1/auth/freeze"
	return []route{
		{method: get, path: freeze, one: true, action: exchange.ActFreeze, limit: limitGeneral, handle: s.getFreeze},
		{method: post, path: freeze, action: exchange.ActFreeze, limit: limitGeneral, key: keyOptional, handle: s.pullFreeze},
		{method: post, path: freeze + "/lift", action: exchange.ActLiftFreeze, limit: limitGeneral, key: keyOptional, handle: s.proposal(exchange.MaxFreezeReason, s.Store.ProposeLift)},
	}
}

// wireFreeze is whether outgoing payments are frozen, and by whom.
type wireFreeze struct {
	Frozen   bool       `json:"frozen"`
	ID       *uuid.UUID `json:"id"`
	Note     *string    `json:"note"`
	PulledBy *uuid.UUID `json:"pulled_by"`
	PulledAt *timestamp `json:"pulled_at"`
}

func freezeWire(z exchange.Freeze) wireFreeze {
	return wireFreeze{true, optID(z.ID), optText(z.Reason), optID(z.PulledBy), optTime(z.PulledAt)}
}

func (s *server) getFreeze(c *call) error {
	z, frozen, err := s.Store.PresentFreeze(c.ctx)
	switch {
	case err != nil:
		return err
	case !frozen:
		return c.json(http.StatusOK, wireFreeze{})
	}
	return c.json(http.StatusOK, freezeWire(z))
}

// pullFreeze stops all outgoing payments at once.
func (s *server) pullFreeze(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	note := f.line("note", true, exchange.MaxFreezeReason)
	if err := f.done(); err != nil {
		return err
	}
	z, err := s.Store.Freeze(c.ctx, c.objectID, note, c.who)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, freezeWire(z))
}
