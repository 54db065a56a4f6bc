package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// wireOffer is an offer with every field of the interface description, plus network, wallet_id and status_detail.
type wireOffer struct {
	ID              uuid.UUID      `json:"id"`
	VendorID        uuid.UUID      `json:"vendor_id"`
	OfferType       string         `json:"offer_type"`
	Asset           string         `json:"asset"`
	Network         string         `json:"network"`
	WalletID        *uuid.UUID     `json:"wallet_id"`
	USDTAmount      string         `json:"usdt_amount"`
	AvailableAmount string         `json:"available_amount"`
	Rate            string         `json:"rate"`
	FiatCurrency    string         `json:"fiat_currency"`
	MinOrder        string         `json:"min_order"`
	MaxOrder        string         `json:"max_order"`
	Status          string         `json:"status"`
	StatusDetail    string         `json:"status_detail"`
	Description     NullableString `json:"description"`
	CreatedAt       timestamp      `json:"created_at"`
	UpdatedAt       timestamp      `json:"updated_at"`
	DeletedAt       NullableTime   `json:"deleted_at"`
}

func offerWire(o exchange.Offer) wireOffer {
	return wireOffer{
		ID: o.ID, VendorID: o.VendorID, OfferType: string(o.Type), Asset: string(o.Asset), Network: string(o.Network),
		WalletID: optID(o.WalletID), USDTAmount: o.Total.String(), AvailableAmount: o.Available.String(), Rate: o.Rate.String(),
		FiatCurrency: string(money.KES), MinOrder: o.MinOrder.String(), MaxOrder: o.MaxOrder.String(), Status: string(o.Status),
		StatusDetail: offerWaitsFor(o.Status), Description: nullString(o.Description), CreatedAt: stamp(o.CreatedAt),
		UpdatedAt: stamp(o.UpdatedAt), DeletedAt: nullTime(o.DeletedAt),
	}
}

// offerWaitsFor returns the status_detail of an offer: what it needs before it can be ordered.
func offerWaitsFor(s exchange.OfferStatus) string {
	switch s {
	case exchange.OfferDraft:
		return exchange.WaitPublish
	case exchange.OfferPaused:
		return exchange.WaitVendor
	case exchange.OfferExhausted:
		return exchange.WaitLiquidity
	case exchange.OfferSuspended:
		return exchange.WaitAdmin
	case exchange.OfferActive, exchange.OfferClosed:
	}
	return exchange.WaitNothing
}

var (
	offerTypes    = []string{"SELL", "BUY"}
	stablecoins   = []string{"USDT", "USDC"}
	networkNames  = names(exchange.Networks())
	offerStatuses = []string{"draft", "active", "paused", "exhausted", "suspended", "closed"}
)

func (s *server) listOffers(c *call) error {
	q := c.query()
	page := q.page(offersPage)
	filter := store.OfferFilter{
		Type: exchange.OfferType(q.oneOf("offer_type", offerTypes...)), Asset: money.Asset(q.oneOf("asset", stablecoins...)),
		Network: exchange.Network(q.oneOf("network", networkNames...)), Status: exchange.OfferStatus(q.oneOf("status", offerStatuses...)),
		VendorID: q.id("vendor_id"), Best: q.oneOf("sort", "newest", "best_rate") == "best_rate",
	}
	asset := filter.Asset
	if asset == "" {
		asset = money.USDT // both stablecoins have the same number of decimals
	}
	filter.Amount = q.amount("amount", asset)
	if err := q.done(); err != nil {
		return err
	}
	offers, total, err := s.Store.ListOffers(c.ctx, c.view(), filter, page)
	if err != nil {
		return err
	}
	return c.bare(each(offers, offerWire), total)
}

func (s *server) getOffer(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	o, err := s.Store.Offer(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.tagged(o.Version, offerWire(o))
}

// createOffer creates a draft. The crypto is held when the offer is published.
func (s *server) createOffer(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	o := exchange.Offer{
		ID: c.objectID, VendorID: c.who.VendorID, CreatedBy: c.who.UserID, Status: exchange.OfferDraft,
		Type: exchange.OfferType(f.oneOf("offer_type", true, offerTypes...)), Asset: money.Asset(f.oneOf("asset", true, stablecoins...)),
		Network: exchange.Network(f.oneOf("network", true, networkNames...)), WalletID: f.id("wallet_id", false),
		Rate: f.rate("rate", true), Description: f.text("description", false, exchange.MaxOfferDescription),
	}
	asset := o.Asset
	if asset == "" {
		asset = money.USDT
	}
	o.Total, o.MinOrder, o.MaxOrder = f.amount("usdt_amount", asset, true), f.amount("min_order", asset, true), f.amount("max_order", asset, true)
	if err := f.done(); err != nil {
		return err
	}
	o.Available = money.Zero(asset)
	if err := o.Validate(); err != nil {
		return err
	}
	if err := s.offered(o.Network, o.Asset); err != nil {
		return err
	}
	created, err := s.Store.CreateOffer(c.ctx, o, c.who)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, "/api/v1/auth/offers/"+created.ID.String())
	return c.json(http.StatusCreated, offerWire(created))
}

// patchOffer changes the fields that a vendor may change. The total can change only while the offer is a draft;
// afterwards the money is held.
func (s *server) patchOffer(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	// The form is read before the offer. Both stablecoins have the same number of decimals, so the amounts can be
	// checked without the offer's asset.
	total, least, most := f.amount("usdt_amount", money.USDT, false), f.amount("min_order", money.USDT, false), f.amount("max_order", money.USDT, false)
	rate, description := f.rate("rate", false), f.text("description", false, exchange.MaxOfferDescription)
	if err := f.done(); err != nil {
		return err
	}
	if len(f.values) == 0 {
		return exchange.Invalid(exchange.FieldError{Pointer: "", Code: "required", Message: "must change at least one field"})
	}
	offer, err := s.Store.Offer(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	p := store.OfferPatch{IfVersions: c.ifVersions}
	in := func(m money.Amount) *money.Amount {
		if !m.Positive() {
			return nil
		}
		same, err := money.New(offer.Asset, m.Decimal())
		if err != nil {
			return nil
		}
		return &same
	}
	p.Total, p.MinOrder, p.MaxOrder = in(total), in(least), in(most)
	if rate.IsPositive() {
		p.Rate = &rate
	}
	if _, given := f.values["description"]; given {
		p.Description = &description
	}
	changed, err := s.Store.PatchOffer(c.ctx, c.view(), id, p, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	return c.tagged(changed.Version, offerWire(changed))
}

func (s *server) deleteOffer(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	if err := s.Store.DeleteOffer(c.ctx, c.view(), id, c.who); err != nil {
		return hideAbsence(err)
	}
	return c.empty()
}

// offerVerb is a transition of an offer's state machine.
type offerVerb func(context.Context, store.View, uuid.UUID, exchange.Principal) (exchange.Offer, error)

func (s *server) moveOffer(do offerVerb) func(*call) error {
	return func(c *call) error {
		id, err := c.idAlone()
		if err != nil {
			return err
		}
		o, err := do(c.ctx, c.view(), id, c.who)
		if err == nil && o.Type == exchange.OfferSell && o.Status == exchange.OfferActive {
			s.bringGas(c, o)
		}
		return answer(c, http.StatusOK, offerWire)(o, err)
	}
}

// gasAsked bounds how long an answer waits until gas is asked for.
const gasAsked = 2 * time.Second

// bringGas has gas brought to the wallet of an offer that became active, so that its first purchase need not wait for it.
func (s *server) bringGas(c *call, o exchange.Offer) {
	if o.Network.Sponsored() {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, gasAsked)
	defer cancel()
	if err := s.Flows.BringGas(ctx); err != nil {
		s.log.Warn("gas was not asked for; the next run of the schedule brings it", "offer", o.ID, "error", err)
	}
}
