package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// The values that pricing accepts.
var (
	currencies   = []string{"KES"}
	quotePurpose = names(exchange.QuotePurposes())
	amountSides  = []string{string(exchange.AmountCrypto), string(exchange.AmountFiat)}
	quoteStates  = names(exchange.QuoteMachine.States())
)

// whole reads a whole number; fallback when absent.
func (f *form) whole(name string, fallback, least, most int) int {
	if n := f.integer(name, false, least, most); n != nil {
		return *n
	}
	return fallback
}

type wireRate struct {
	ID            uuid.UUID  `json:"id"`
	Base          string     `json:"base"`
	Quote         string     `json:"quote"`
	Bid           string     `json:"bid"`
	Ask           string     `json:"ask"`
	Mid           string     `json:"mid"`
	Source        string     `json:"source"`
	ValidFrom     timestamp  `json:"valid_from"`
	StaleAt       timestamp  `json:"stale_at"`
	InForce       bool       `json:"in_force"`
	Replaces      *uuid.UUID `json:"replaces"`
	ReplacedAt    *timestamp `json:"replaced_at"`
	JumpConfirmed bool       `json:"jump_confirmed"`
	CreatedBy     *uuid.UUID `json:"created_by"`
	CreatedAt     timestamp  `json:"created_at"`
}

func (s *server) rateWire(r exchange.FXRate) wireRate {
	return wireRate{
		ID: r.ID, Base: string(r.Base), Quote: string(r.Quote), Bid: r.Bid.String(), Ask: r.Ask.String(), Mid: r.Mid().String(), Source: r.Source,
		ValidFrom: stamp(r.ValidFrom), StaleAt: stamp(r.StaleAt), InForce: r.InForce(s.now()), Replaces: optID(r.Replaces),
		ReplacedAt: optTime(r.ReplacedAt), JumpConfirmed: r.JumpConfirmed, CreatedBy: optID(r.CreatedBy), CreatedAt: stamp(r.CreatedAt),
	}
}

func (s *server) listRates(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.RateFilter{Base: money.Asset(q.oneOf("base", cryptoNames...)), Source: q.text("source", false)}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "fx_rates", page, s.rateWire)(s.Store.FXRates(c.ctx, filter, page))
}

// enterRate stores a rate that an admin enters: bid and ask, or mid for both. One that strays from the market waits for a
// second officer.
func (s *server) enterRate(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	e := store.RateEntry{
		ID: c.objectID, Base: money.Asset(f.oneOf("base", true, cryptoNames...)), Quote: money.KES, Source: exchange.RateSourceAdmin,
		ValidFrom: f.time("valid_from", false),
	}
	f.oneOf("quote", false, currencies...)
	least, most := int(exchange.MinRateLife.Seconds()), int(exchange.MaxRateLife.Seconds())
	e.Life = time.Duration(f.whole("stale_after_seconds", int(exchange.DefaultRateLife.Seconds()), least, most)) * time.Second
	if f.has("mid") {
		e.Bid = f.rate("mid", true)
		e.Ask = e.Bid
		for _, side := range []string{"bid", "ask"} {
			if f.take(side, false); f.has(side) {
				f.fail(side, "conflict", "must be left out when mid is given")
			}
		}
	} else {
		f.take("mid", false)
		e.Bid, e.Ask = f.rate("bid", true), f.rate("ask", true)
	}
	if err := f.done(); err != nil {
		return err
	}
	r, err := s.Store.EnterRate(c.ctx, e, c.who)
	if errors.Is(err, exchange.ErrRateStrays) {
		waits, err := s.Store.ProposeRate(c.ctx, e, c.who)
		if err != nil {
			return err
		}
		return answerPending(c, waits)
	}
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, s.rateWire(r))
}
