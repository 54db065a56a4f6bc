package api

import (
	"errors"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// The values that pricing accepts.
var (
	currencies   = []string{"KES"}
	quotePurpose = []string{string(exchange.QuoteForTransfer), string(exchange.QuoteForSale)}
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

// quotedRate is the rate that a quote froze.
type quotedRate struct {
	ID        uuid.UUID `json:"id"`
	Bid       string    `json:"bid"`
	Ask       string    `json:"ask"`
	Source    string    `json:"source"`
	ValidFrom timestamp `json:"valid_from"`
	StaleAt   timestamp `json:"stale_at"`
}

// quotedFees is the fee profile that a quote froze; id is null for the zero profile.
type quotedFees struct {
	ID      *uuid.UUID `json:"id"`
	Version int        `json:"version"`
	Fixed   string     `json:"fixed"`
	Points  int64      `json:"basis_points"`
	Minimum string     `json:"minimum"`
	Maximum *string    `json:"maximum"`
	Spread  int64      `json:"spread_basis_points"`
}

type wireQuote struct {
	ID           uuid.UUID  `json:"id"`
	OwnerID      uuid.UUID  `json:"owner_id"`
	Purpose      string     `json:"purpose"`
	OfferType    string     `json:"offer_type"`
	Status       string     `json:"status"`
	StatusDetail string     `json:"status_detail"`
	Asset        string     `json:"asset"`
	Amount       string     `json:"amount"`
	FiatCurrency string     `json:"fiat_currency"`
	FiatAmount   string     `json:"fiat_amount"`
	Rate         string     `json:"rate"`
	Fee          string     `json:"fee"`
	TotalAmount  string     `json:"total_amount"`
	FXRate       quotedRate `json:"fx_rate"`
	FeeProfile   quotedFees `json:"fee_profile"`
	ProfileID    *uuid.UUID `json:"pricing_profile_id"`
	FeeProfileID *uuid.UUID `json:"fee_profile_id"` // an alias
	Rounding     string     `json:"rounding"`
	Formula      string     `json:"formula"`
	Hash         string     `json:"hash"`
	CreatedAt    timestamp  `json:"created_at"`
	ExpiresAt    timestamp  `json:"expires_at"`
	ConsumedAt   *timestamp `json:"consumed_at"`
	ObjectType   *string    `json:"object_type"`
	ObjectID     *uuid.UUID `json:"object_id"`
	SupersededBy *uuid.UUID `json:"superseded_by"`
}

func quoteWire(q exchange.FXQuote) wireQuote {
	t, p := q.Terms, q.Price
	return wireQuote{
		ID: q.ID, OwnerID: q.OwnerID, Purpose: string(t.Purpose), OfferType: string(t.Side.OfferType()), Status: string(q.Status), StatusDetail: q.WaitsFor(),
		Asset:  string(t.Amount.Asset()),
		Amount: t.Amount.String(), FiatCurrency: string(p.Fiat.Asset()), FiatAmount: p.Fiat.String(), Rate: p.Rate.String(), Fee: p.Fee.String(),
		TotalAmount: p.Total.String(), Rounding: t.Rounding(), Formula: t.Formula, Hash: q.Hash, CreatedAt: stamp(q.CreatedAt), ExpiresAt: stamp(q.ExpiresAt),
		FXRate: quotedRate{
			ID: t.Rate.ID, Bid: t.Rate.Bid.String(), Ask: t.Rate.Ask.String(), Source: t.Rate.Source, ValidFrom: stamp(t.Rate.ValidFrom),
			StaleAt: stamp(t.Rate.StaleAt),
		},
		FeeProfile: quotedFees{
			ID: optID(t.Profile.ID), Version: t.Profile.Version, Fixed: t.Profile.Fixed.String(), Points: t.Profile.BasisPoints,
			Minimum: t.Profile.Minimum.String(), Maximum: optAmount(t.Profile.Maximum), Spread: t.Profile.Spread,
		},
		ProfileID: optID(t.Profile.ID), FeeProfileID: optID(t.Profile.ID), ConsumedAt: optTime(q.ConsumedAt), ObjectType: optText(q.ObjectType), ObjectID: optID(q.ObjectID), SupersededBy: optID(q.SupersededBy),
	}
}

func (s *server) openQuote(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	r := store.QuoteRequest{
		ID: c.objectID, Purpose: exchange.QuotePurpose(f.oneOf("purpose", true, quotePurpose...)),
		Amount: f.amount("amount", money.Asset(f.oneOf("asset", true, stablecoins...)), true), Supersedes: f.id("supersedes", false),
	}
	r.Side = exchange.QuoteSell
	if f.oneOf("offer_type", false, offerTypes...) == string(exchange.OfferSell) {
		r.Side = exchange.QuoteBuy
	}
	if err := f.done(); err != nil {
		return err
	}
	q, err := s.Store.OpenQuote(c.ctx, r, c.who)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, "/api/v1/auth/pricing/quotes/"+q.ID.String())
	return c.json(http.StatusCreated, quoteWire(q))
}

// quoteID reads the id of the quote that a request uses, from fx_rate_quote_id or its alias quote_id.
func (f *form) quoteID() uuid.UUID {
	id, alias := f.id("fx_rate_quote_id", false), f.id("quote_id", false)
	if f.has("fx_rate_quote_id") && f.has("quote_id") {
		f.fail("quote_id", "conflict", "is an alias of fx_rate_quote_id: give one of the two")
	}
	if id == uuid.Nil {
		return alias
	}
	return id
}

func (s *server) getQuote(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, quoteWire)(s.Store.Quote(c.ctx, c.view(), id))
}

// wirePrice is the price that the formula gives for a quote's terms.
type wirePrice struct {
	Rate        string `json:"rate"`
	FiatAmount  string `json:"fiat_amount"`
	Fee         string `json:"fee"`
	TotalAmount string `json:"total_amount"`
}

// wireReplay is the result of a replay. Recomputed is null when the terms can't be priced at all.
type wireReplay struct {
	Agrees     bool       `json:"agrees"`
	Differs    []string   `json:"differs"`
	Recomputed *wirePrice `json:"recomputed"`
	Hash       string     `json:"hash"`
	Quote      wireQuote  `json:"quote"`
}

// replayQuote computes a quote again. A mismatch is a normal answer, and is logged as an error.
func (s *server) replayQuote(c *call) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	r, err := s.Store.ReplayQuote(c.ctx, c.view(), id, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	w := wireReplay{Agrees: len(r.Differs) == 0, Differs: each(r.Differs, func(n string) string { return n }), Hash: r.Quote.Fingerprint(), Quote: quoteWire(r.Quote)}
	if r.Price.Total.Positive() {
		w.Recomputed = &wirePrice{r.Price.Rate.String(), r.Price.Fiat.String(), r.Price.Fee.String(), r.Price.Total.String()}
	}
	if !w.Agrees {
		s.log.Error("a quote does not agree with its replay", "quote_id", id, "differs", r.Differs, "request_id", c.who.RequestID)
	}
	return c.json(http.StatusOK, w)
}
