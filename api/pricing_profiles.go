package api

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// The values that fee profiles accept. Which of them go together is exchange's to say.
var (
	feeScopes  = names(exchange.FeeScopes())
	feeAssets  = []string{string(money.USDT), string(money.USDC), string(money.KES)}
	feeMethods = []string{exchange.FeeByMomo, exchange.FeeByBank, exchange.FeeByC2B, exchange.FeeByChain}
)

// charge reads an amount that may be zero; zero when absent. Without a currency there can be none.
func (f *form) charge(name string, currency money.Asset) money.Amount {
	s, ok := f.decimalText(name, false)
	if !ok {
		return money.Zero(currency)
	}
	if currency == "" {
		f.fail(name, "conflict", "must be left out without an asset, in which it would be")
		return money.Zero(currency)
	}
	if !currency.Valid() {
		return money.Zero(currency)
	}
	m, err := money.Parse(currency, s)
	if f.failDecimal(name, err); err != nil {
		return money.Zero(currency)
	}
	return m
}

type wireProfile struct {
	ID         uuid.UUID  `json:"id"`
	Scope      string     `json:"scope"`
	MerchantID *uuid.UUID `json:"merchant_id"`
	Asset      *string    `json:"asset"`
	Network    *string    `json:"network"`
	Method     *string    `json:"method"`
	Version    int        `json:"version"`
	Currency   *string    `json:"fee_currency"`
	Fixed      string     `json:"fixed"`
	Points     int64      `json:"basis_points"`
	Minimum    string     `json:"minimum"`
	Maximum    *string    `json:"maximum"`
	Spread     int64      `json:"spread_basis_points"`
	Retired    bool       `json:"retired"`
	Note       *string    `json:"note"`
	ValidFrom  timestamp  `json:"valid_from"`
	EndsAt     *timestamp `json:"ends_at"`
	InForce    bool       `json:"in_force"`
	CreatedBy  uuid.UUID  `json:"created_by"`
	CreatedAt  timestamp  `json:"created_at"`
}

// optAmount is an amount that may be absent.
func optAmount(m money.Amount) *string {
	if m.Asset() == "" {
		return nil
	}
	s := m.String()
	return &s
}

func (s *server) profileWire(p exchange.FeeProfile) wireProfile {
	return wireProfile{
		ID: p.ID, Scope: string(p.Scope), MerchantID: optID(p.MerchantID), Asset: optText(string(p.Asset)), Network: optText(string(p.Network)),
		Method: optText(p.Method), Version: p.Version, Currency: optText(string(p.Currency())), Fixed: p.Fixed.String(), Points: p.BasisPoints,
		Minimum: p.Minimum.String(), Maximum: optAmount(p.Maximum), Spread: p.Spread, Retired: p.Retired, Note: optText(p.Note), ValidFrom: stamp(p.ValidFrom),
		EndsAt: optTime(p.EndsAt), InForce: p.InForce(s.now()), CreatedBy: p.CreatedBy, CreatedAt: stamp(p.CreatedAt),
	}
}

func (s *server) listProfiles(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.ProfileFilter{
		Scope: exchange.FeeScope(q.oneOf("scope", feeScopes...)), MerchantID: q.id("merchant_id"), Asset: money.Asset(q.oneOf("asset", feeAssets...)),
		Network: exchange.Network(q.oneOf("network", networkNames...)), Method: q.oneOf("method", feeMethods...),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "profiles", page, s.profileWire)(s.Store.FeeProfiles(c.ctx, filter, page))
}

// enterProfile proposes the next version of a line of fees; a second officer confirms it.
func (s *server) enterProfile(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	line := exchange.FeeLine{
		Scope: exchange.FeeScope(f.oneOf("scope", true, feeScopes...)), MerchantID: f.id("merchant_id", false),
		Asset: money.Asset(f.oneOf("asset", false, feeAssets...)), Network: exchange.Network(f.oneOf("network", false, networkNames...)),
		Method: f.oneOf("method", false, feeMethods...),
	}
	currency := line.Scope.FeeCurrency(line.Asset)
	p := exchange.FeeProfile{
		ID: c.objectID, FeeLine: line, Fixed: f.charge("fixed", currency),
		BasisPoints: int64(f.whole("basis_points", 0, 0, exchange.MaxFeePoints)), Minimum: f.charge("minimum", currency),
		Spread: int64(f.whole("spread_basis_points", 0, 0, exchange.MaxSpreadPoints)),
		Note:   f.line("note", false, exchange.MaxProfileNote), ValidFrom: f.time("valid_from", false),
	}
	if f.has("maximum") {
		if p.Maximum = f.charge("maximum", currency); currency.Valid() && p.Maximum.IsZero() {
			f.fail("maximum", "out_of_range", "must be above zero")
		}
	} else {
		f.take("maximum", false)
	}
	if retired := f.boolean("retired", false); retired != nil {
		p.Retired = *retired
	}
	if err := f.done(); err != nil {
		return err
	}
	waits, err := s.Store.ProposeProfile(c.ctx, p, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}

type wireBankDay struct {
	Day       string     `json:"day"`
	IsOpen    bool       `json:"is_open"`
	Name      string     `json:"name"`
	Entry     int        `json:"entry"`
	ChangeID  *uuid.UUID `json:"change_id"`
	EnteredAt timestamp  `json:"entered_at"`
}

func bankDayWire(d exchange.BankDay) wireBankDay {
	return wireBankDay{
		Day: d.Day.Format(time.DateOnly), IsOpen: d.IsOpen, Name: d.Name, Entry: d.Entry, ChangeID: optID(d.ChangeID), EnteredAt: stamp(d.EnteredAt),
	}
}

func (s *server) listBankDays(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.BankDayFilter{From: q.day("from_day"), To: q.day("to_day")}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "bank_days", page, bankDayWire)(s.Store.BankDays(c.ctx, filter, page))
}

// proposeBankDay proposes that banks settle on a day, or don't; a second officer confirms it.
func (s *server) proposeBankDay(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	d := exchange.BankDay{Day: f.date("day"), Name: f.line("name", true, exchange.MaxBankDayName)}
	if open := f.boolean("is_open", true); open != nil {
		d.IsOpen = *open
	}
	if err := f.done(); err != nil {
		return err
	}
	waits, err := s.Store.ProposeBankDay(c.ctx, d, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}
