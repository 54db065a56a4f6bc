package api

import (
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// wireOTCLimit is up to how much of a merchant's mobile money needs no officer in 24 hours.
type wireOTCLimit struct {
	MerchantID *uuid.UUID `json:"merchant_id"` // null for the house's
	Automatic  string     `json:"automatic"`
	ChangeID   *uuid.UUID `json:"change_id"`
	EnteredBy  *uuid.UUID `json:"entered_by"`
	EnteredAt  timestamp  `json:"entered_at"`
}

func otcLimitWire(l exchange.OTCLimit) wireOTCLimit {
	w := wireOTCLimit{Automatic: l.Automatic.String(), ChangeID: optID(l.ChangeID), EnteredBy: optID(l.EnteredBy), EnteredAt: stamp(l.EnteredAt)}
	if l.MerchantID != exchange.PlatformTreasury {
		w.MerchantID = &l.MerchantID
	}
	return w
}

func (s *server) listOTCLimits(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "limits", page, otcLimitWire)(s.Store.OTCLimits(c.ctx, page))
}

// setOTCLimit lowers a limit at once; a higher one waits for a second officer, and the answer is 202.
func (s *server) setOTCLimit(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	if !f.has("automatic") {
		f.fail("automatic", "required", "is required")
	}
	merchant, to := f.id("merchant_id", false), f.charge("automatic", money.KES) // zero: all of it needs an officer
	if err := f.done(); err != nil {
		return err
	}
	if merchant == uuid.Nil {
		merchant = exchange.PlatformTreasury
	}
	waits, err := s.Store.SetOTCLimit(c.ctx, merchant, to, c.who)
	if err != nil {
		return err
	}
	if waits.ID != uuid.Nil {
		return answerPending(c, waits)
	}
	return c.empty()
}
