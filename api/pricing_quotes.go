package api

import (
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

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

// wirePriced is a price, promised or not.
type wirePriced struct {
	Purpose      string     `json:"purpose"`
	OfferType    string     `json:"offer_type"`
	Network      *string    `json:"network"`
	Method       *string    `json:"method"`
	Asset        string     `json:"asset"`
	Amount       string     `json:"amount"`
	AmountSide   string     `json:"amount_side"`
	FiatCurrency string     `json:"fiat_currency"`
	FiatAmount   string     `json:"fiat_amount"`
	Rate         string     `json:"rate"`
	Fee          string     `json:"fee"`
	FeeCurrency  string     `json:"fee_currency"`
	TotalAmount  string     `json:"total_amount"`
	FXRate       quotedRate `json:"fx_rate"`
	FeeProfile   quotedFees `json:"fee_profile"`
	ProfileID    *uuid.UUID `json:"pricing_profile_id"`
	FeeProfileID *uuid.UUID `json:"fee_profile_id"` // an alias
	Rounding     string     `json:"rounding"`
	Formula      string     `json:"formula"`
}

type wireQuote struct {
	ID           uuid.UUID  `json:"id"`
	OwnerID      uuid.UUID  `json:"owner_id"`
	Status       string     `json:"status"`
	StatusDetail string     `json:"status_detail"`
	Hash         string     `json:"hash"`
	CreatedAt    timestamp  `json:"created_at"`
	ExpiresAt    timestamp  `json:"expires_at"`
	ConsumedAt   *timestamp `json:"consumed_at"`
	ObjectType   *string    `json:"object_type"`
	ObjectID     *uuid.UUID `json:"object_id"`
	SupersededBy *uuid.UUID `json:"superseded_by"`
	wirePriced
}

// wireIndication is a price without a promise.
type wireIndication struct {
	PricedAt timestamp `json:"priced_at"`
	wirePriced
}

func rateWire(r exchange.FXRate) quotedRate {
	return quotedRate{ID: r.ID, Bid: r.Bid.String(), Ask: r.Ask.String(), Source: r.Source, ValidFrom: stamp(r.ValidFrom), StaleAt: stamp(r.StaleAt)}
}

func feesWire(p exchange.FeeProfile) quotedFees {
	return quotedFees{
		ID: optID(p.ID), Version: p.Version, Fixed: p.Fixed.String(), Points: p.BasisPoints, Minimum: p.Minimum.String(), Maximum: optAmount(p.Maximum), Spread: p.Spread,
	}
}

func pricedWire(t exchange.QuoteTerms, p exchange.QuotePrice) wirePriced {
	return wirePriced{
		Purpose: string(t.Purpose), OfferType: string(t.Side.OfferType()), Network: optText(string(t.Network)), Method: optText(t.Method),
		Asset: string(p.Crypto.Asset()), Amount: p.Crypto.String(), AmountSide: string(t.AmountSide()), FiatCurrency: string(p.Fiat.Asset()),
		FiatAmount: p.Fiat.String(), Rate: p.Rate.String(), Fee: p.Fee.String(), FeeCurrency: string(p.Fee.Asset()), TotalAmount: p.Total.String(),
		FXRate: rateWire(t.Rate), FeeProfile: feesWire(t.Profile),
		ProfileID: optID(t.Profile.ID), FeeProfileID: optID(t.Profile.ID), Rounding: t.Rounding(), Formula: t.Formula,
	}
}

func quoteWire(q exchange.FXQuote) wireQuote {
	return wireQuote{
		ID: q.ID, OwnerID: q.OwnerID, Status: string(q.Status), StatusDetail: q.WaitsFor(), Hash: q.Hash, CreatedAt: stamp(q.CreatedAt),
		ExpiresAt: stamp(q.ExpiresAt), ConsumedAt: optTime(q.ConsumedAt), ObjectType: optText(q.ObjectType), ObjectID: optID(q.ObjectID),
		SupersededBy: optID(q.SupersededBy), wirePriced: pricedWire(q.Terms, q.Price),
	}
}

// sideOf is the side of a price that compares with offers of a type.
func sideOf(offerType string) exchange.QuoteSide {
	if offerType == string(exchange.OfferSell) {
		return exchange.QuoteBuy
	}
	return exchange.QuoteSell
}

func (s *server) openQuote(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	r := store.QuoteRequest{
		ID: c.objectID, Purpose: exchange.QuotePurpose(f.oneOf("purpose", true, quotePurpose...)), Side: sideOf(f.oneOf("offer_type", false, offerTypes...)),
		Asset: money.Asset(f.oneOf("asset", true, stablecoins...)), Network: exchange.Network(f.oneOf("network", false, networkNames...)),
		Method: f.oneOf("method", false, feeMethods...), Supersedes: f.id("supersedes", false),
	}
	given := r.Asset
	if f.oneOf("amount_side", false, amountSides...) == string(exchange.AmountFiat) {
		given = money.KES
	}
	r.Amount = f.amount("amount", given, true)
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

// indicativePrice computes the price that a quote would have, without a promise.
func (s *server) indicativePrice(c *call) error {
	q := c.query()
	r := store.QuoteRequest{
		Purpose: exchange.QuotePurpose(q.word("purpose", quotePurpose...)), Side: sideOf(q.oneOf("offer_type", offerTypes...)),
		Asset: money.Asset(q.word("asset", stablecoins...)), Network: exchange.Network(q.oneOf("network", networkNames...)),
		Method: q.oneOf("method", feeMethods...),
	}
	given := r.Asset
	if q.oneOf("amount_side", amountSides...) == string(exchange.AmountFiat) {
		given = money.KES
	}
	if !q.given("amount") {
		q.fail("amount", "required", "is required")
	} else if given.Valid() {
		if m := q.amount("amount", given); m != nil {
			r.Amount = *m
		}
	}
	if err := q.done(); err != nil {
		return err
	}
	priced, err := s.Store.IndicativePrice(c.ctx, r, c.who)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, wireIndication{PricedAt: stamp(priced.CreatedAt), wirePriced: pricedWire(priced.Terms, priced.Price)})
}

func (s *server) listQuotes(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.QuoteFilter{
		Status: exchange.QuoteStatus(q.oneOf("status", quoteStates...)), Purpose: exchange.QuotePurpose(q.oneOf("purpose", quotePurpose...)),
		OwnerID: q.id("owner_id"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "quotes", page, quoteWire)(s.Store.Quotes(c.ctx, store.ViewOf(c.who, exchange.ActReadQuotes), filter, page))
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
	Amount      string `json:"amount"`
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
		w.Recomputed = &wirePrice{r.Price.Rate.String(), r.Price.Crypto.String(), r.Price.Fiat.String(), r.Price.Fee.String(), r.Price.Total.String()}
	}
	if !w.Agrees {
		s.log.Error("a quote does not agree with its replay", "quote_id", id, "differs", r.Differs, "request_id", c.who.RequestID)
	}
	return c.json(http.StatusOK, w)
}
