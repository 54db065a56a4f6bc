package api

import (
	"cmp"
	"net/http"
	"regexp"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

var (
	c2bStatuses = names(exchange.C2BMachine.States())
	c2bChannels = []string{channelBooking, channelConfirmation, channelStatement}
	c2bDetails  = []string{exchange.WaitNothing, exchange.WaitOperator, exchange.WaitSecond, "statement", "source"}
	phoneHash   = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// What reports a payment.
const (
	channelBooking      = "booking"      // the prompt of an order
	channelConfirmation = "confirmation" // a notice of the operator
	channelStatement    = "statement"    // the operator's list
)

// wireC2B is a payment to our number. The payer's number is a hash: for most payments the operator reports no more.
type wireC2B struct {
	ID           uuid.UUID  `json:"id"`
	Receipt      string     `json:"receipt"`
	Status       string     `json:"status"`
	StatusDetail string     `json:"status_detail"`
	Currency     string     `json:"currency"`
	Amount       string     `json:"amount"`
	Reference    *string    `json:"reference"`
	PhoneHash    *string    `json:"phone_hash"`
	Channels     []string   `json:"channels"`
	Disputed     bool       `json:"disputed"`
	OrderID      *uuid.UUID `json:"order_id"`
	DepositID    *uuid.UUID `json:"otc_deposit_id"`
	AttemptID    *uuid.UUID `json:"attempt_id"`
	ExceptionID  *uuid.UUID `json:"payment_exception_id"`
	PaidAt       timestamp  `json:"paid_at"`
	CreatedAt    timestamp  `json:"created_at"`
	UpdatedAt    timestamp  `json:"updated_at"`
}

func c2bWire(p exchange.C2BPayment) wireC2B {
	w := wireC2B{
		ID: p.ID, Receipt: p.Receipt, Status: string(p.Status), StatusDetail: c2bDetail(p), Currency: string(p.Amount.Asset()), Amount: p.Amount.String(),
		Reference: optText(p.Reference), PhoneHash: optText(p.PartyHash), Channels: []string{}, Disputed: p.Disputed, OrderID: optID(p.Object.OrderID()), DepositID: optID(cmp.Or(p.Object.DepositID(), p.NamedFor)),
		AttemptID: optID(p.AttemptID), ExceptionID: optID(p.ExceptionID), PaidAt: stamp(p.PaidAt), CreatedAt: stamp(p.CreatedAt), UpdatedAt: stamp(p.UpdatedAt),
	}
	for _, c := range []struct {
		name string
		at   time.Time
	}{{channelBooking, p.BookedAt}, {channelConfirmation, p.NotifiedAt}, {channelStatement, p.ListedAt}} {
		if !c.at.IsZero() {
			w.Channels = append(w.Channels, c.name)
		}
	}
	return w
}

// c2bDetail is what a payment waits for.
func c2bDetail(p exchange.C2BPayment) string {
	switch {
	case p.Status == exchange.C2BMatched:
		return exchange.WaitNothing
	case p.NamedFor != uuid.Nil:
		return exchange.WaitSecond
	case p.ExceptionID != uuid.Nil:
		return exchange.WaitOperator
	case p.ListedAt.IsZero():
		return "statement"
	}
	return "source"
}

// listC2B reads the payments to our number.
func (s *server) listC2B(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.C2BFilter{
		Status: exchange.C2BStatus(q.oneOf("status", c2bStatuses...)), Receipt: q.text("receipt", false), Reference: q.text("reference", false),
		PartyHash: q.text("phone_hash", false), Least: q.amount("min_amount", money.KES), Most: q.amount("max_amount", money.KES),
		From: q.time("paid_from"), To: q.time("paid_to"), Listed: q.yesNo("listed"), Disputed: q.yesNo("disputed"),
	}
	if order := q.id("order_id"); order != uuid.Nil {
		filter.Object = exchange.OrderObject(order)
	}
	if deposit := q.id("otc_deposit_id"); deposit != uuid.Nil {
		if filter.Object.ID != uuid.Nil {
			q.fail("otc_deposit_id", "forbidden", "must be left out: a payment is for one thing")
		}
		filter.Object = exchange.DepositObject(deposit)
	}
	if filter.PartyHash != "" && !phoneHash.MatchString(filter.PartyHash) {
		q.fail("phone_hash", "format", "must be the SHA-256 of the number in the form 254712345678, as 64 lower-case hexadecimal digits")
	}
	if filter.Least != nil && filter.Most != nil && filter.Most.Cmp(*filter.Least) < 0 {
		q.fail("max_amount", "out_of_range", "must not be below min_amount")
	}
	if !filter.From.IsZero() && !filter.To.IsZero() && !filter.From.Before(filter.To) {
		q.fail("paid_to", "out_of_range", "must be after paid_from")
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "payments", page, c2bWire)(s.Store.ListC2B(c.ctx, filter, page))
}

// matchC2B names the OTC deposit that a payment to our number is for. Above the merchant's limit another officer has to name the same.
func (s *server) matchC2B(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	deposit := f.id("otc_deposit_id", true)
	step := exchange.OTCStep{PaymentID: id}
	if err := f.checked(step.Check(exchange.IntendOTCMatch)); err != nil {
		return err
	}
	if _, err := s.Store.C2BPayment(c.ctx, id); err != nil {
		return hideAbsence(err)
	}
	if _, err := s.Store.OTCDeposit(c.ctx, c.view(), deposit); err != nil {
		return exchange.Invalid(exchange.FieldError{Pointer: "/otc_deposit_id", Code: "not_found", Message: "must be the id of an OTC deposit"})
	}
	if err := s.sendOTC(c, exchange.IntendOTCMatch, deposit, step.Terms()); err != nil {
		return err
	}
	p, err := s.Store.C2BPayment(c.ctx, id)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c2bWire(p))
}

// yesNo reads true or false; nil when absent.
func (q *query) yesNo(name string) *bool {
	s := q.oneOf(name, "true", "false")
	if s == "" {
		return nil
	}
	yes := s == "true"
	return &yes
}

func (s *server) c2bRoutes() []route {
	const path, limits = "/api/v1/auth/otc/c2b/payments", "/api/v1/auth/otc/limits"
	return []route{
		{method: get, path: limits, action: exchange.ActReadLimits, limit: limitGeneral, handle: s.listOTCLimits},
		{method: post, path: limits, action: exchange.ActWriteLimits, limit: limitGeneral, key: keyOptional, handle: s.setOTCLimit},
		{method: get, path: path, action: exchange.ActReadC2B, limit: limitGeneral, handle: s.listC2B},
		{method: post, path: path + "/{id}/match", action: exchange.ActMatchC2B, limit: limitGeneral, key: keyRequired, timeout: flowTimeout, handle: s.matchC2B},
	}
}
