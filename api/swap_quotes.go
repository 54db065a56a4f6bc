package api

import (
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const swapQuotesPath = swapsPath + "/quotes"

var swapSides = []string{string(exchange.AmountFrom), string(exchange.AmountTo)}

// wireSwapQuote is the frozen price of a swap.
type wireSwapQuote struct {
	ID           uuid.UUID  `json:"id"`
	OwnerID      uuid.UUID  `json:"owner_id"`
	WalletID     uuid.UUID  `json:"wallet_id"`
	Network      string     `json:"network"`
	Status       string     `json:"status"`
	StatusDetail string     `json:"status_detail"`
	FromAsset    string     `json:"from_asset"`
	FromAmount   string     `json:"from_amount"`
	ToAsset      string     `json:"to_asset"`
	ToAmount     string     `json:"to_amount"`
	AmountSide   string     `json:"amount_side"`
	Rate         string     `json:"rate"`
	FeeAmount    string     `json:"fee_amount"`
	FromRate     quotedRate `json:"from_fx_rate"`
	ToRate       quotedRate `json:"to_fx_rate"`
	FeeProfile   quotedFees `json:"fee_profile"`
	ProfileID    *uuid.UUID `json:"pricing_profile_id"`
	FeeProfileID *uuid.UUID `json:"fee_profile_id"` // an alias
	Formula      string     `json:"formula"`
	Hash         string     `json:"hash"`
	CreatedAt    timestamp  `json:"created_at"`
	ExpiresAt    timestamp  `json:"expires_at"`
	SwapID       *uuid.UUID `json:"swap_id"`
}

func swapQuoteWire(q exchange.SwapQuote, at time.Time) wireSwapQuote {
	t, p := q.Terms, q.Price
	return wireSwapQuote{
		ID: q.ID, OwnerID: q.AskedBy, WalletID: q.WalletID, Network: string(t.Network), Status: string(q.Status(at)), StatusDetail: q.WaitsFor(at),
		FromAsset: string(t.From), FromAmount: p.From.String(), ToAsset: string(t.To), ToAmount: p.To.String(), AmountSide: string(t.AmountSide()),
		Rate: p.Rate.String(), FeeAmount: p.Fee.String(), FromRate: rateWire(t.FromRate), ToRate: rateWire(t.ToRate), FeeProfile: feesWire(t.Profile),
		ProfileID: optID(t.Profile.ID), FeeProfileID: optID(t.Profile.ID), Formula: t.Formula, Hash: q.Hash, CreatedAt: stamp(q.CreatedAt),
		ExpiresAt: stamp(q.ExpiresAt), SwapID: optID(q.SwapID),
	}
}

// swapQuoteNow converts a quote as it is at this moment.
func (s *server) swapQuoteNow(q exchange.SwapQuote) wireSwapQuote { return swapQuoteWire(q, s.now()) }

// quoteSwap freezes the price of a swap.
func (s *server) quoteSwap(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	r := exchange.SwapQuoteRequest{
		ID: c.objectID, WalletID: f.id("wallet_id", true), From: money.Asset(f.oneOf("from_asset", true, stablecoins...)),
		To: money.Asset(f.oneOf("to_asset", true, stablecoins...)),
	}
	given := r.From
	if f.oneOf("amount_side", false, swapSides...) == string(exchange.AmountTo) {
		given = r.To
	}
	r.Amount = f.amount("amount", given, true)
	if err := f.done(); err != nil {
		return err
	}
	q, err := s.Store.OpenSwapQuote(c.ctx, r, c.who)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, swapQuotesPath+"/"+q.ID.String())
	return c.json(http.StatusCreated, s.swapQuoteNow(q))
}

func (s *server) getSwapQuote(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, s.swapQuoteNow)(s.Store.SwapQuote(c.ctx, c.view(), id))
}

// wireSwapPrice is the price that the formula gives for a quote's terms.
type wireSwapPrice struct {
	Rate       string `json:"rate"`
	FromAmount string `json:"from_amount"`
	ToAmount   string `json:"to_amount"`
	FeeAmount  string `json:"fee_amount"`
}

// wireSwapReplay is the result of a replay. Recomputed is null when the terms can't be priced at all.
type wireSwapReplay struct {
	Agrees     bool           `json:"agrees"`
	Differs    []string       `json:"differs"`
	Recomputed *wireSwapPrice `json:"recomputed"`
	Hash       string         `json:"hash"`
	Quote      wireSwapQuote  `json:"quote"`
}

// replaySwapQuote computes a quote again. A mismatch is a normal answer, and is logged as an error.
func (s *server) replaySwapQuote(c *call) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	r, err := s.Store.ReplaySwapQuote(c.ctx, c.view(), id, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	w := wireSwapReplay{Agrees: len(r.Differs) == 0, Differs: each(r.Differs, func(n string) string { return n }), Hash: r.Quote.Fingerprint(), Quote: s.swapQuoteNow(r.Quote)}
	if r.Price.To.Positive() {
		w.Recomputed = &wireSwapPrice{r.Price.Rate.String(), r.Price.From.String(), r.Price.To.String(), r.Price.Fee.String()}
	}
	if !w.Agrees {
		s.log.Error("a quote of a swap does not agree with its replay", "quote_id", id, "differs", r.Differs, "request_id", c.who.RequestID)
	}
	return c.json(http.StatusOK, w)
}
