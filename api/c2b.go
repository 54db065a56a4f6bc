package api

import (
	"context"
	"net/http"
	"regexp"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

var (
	c2bStatuses = []string{string(exchange.C2BUnmatched), string(exchange.C2BMatched)}
	c2bDetails  = []string{exchange.WaitNothing, exchange.WaitOperator, "statement", "source"}
	phoneHash   = regexp.MustCompile(`^[0-9a-f]{64}$`)
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
	AttemptID    *uuid.UUID `json:"attempt_id"`
	ExceptionID  *uuid.UUID `json:"payment_exception_id"`
	PaidAt       timestamp  `json:"paid_at"`
	CreatedAt    timestamp  `json:"created_at"`
	UpdatedAt    timestamp  `json:"updated_at"`
}

func c2bWire(p exchange.C2BPayment) wireC2B {
	w := wireC2B{
		ID: p.ID, Receipt: p.Receipt, Status: string(p.Status), StatusDetail: c2bDetail(p), Currency: string(p.Amount.Asset()), Amount: p.Amount.String(),
		Reference: optText(p.Reference), PhoneHash: optText(p.PartyHash), Channels: []string{}, Disputed: p.Disputed, OrderID: optID(p.OrderID),
		AttemptID: optID(p.AttemptID), ExceptionID: optID(p.ExceptionID), PaidAt: stamp(p.PaidAt), CreatedAt: stamp(p.CreatedAt), UpdatedAt: stamp(p.UpdatedAt),
	}
	for _, c := range []struct {
		name string
		at   time.Time
	}{{"booking", p.BookedAt}, {"confirmation", p.NotifiedAt}, {"statement", p.ListedAt}} {
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
		PartyHash: q.text("phone_hash", false), OrderID: q.id("order_id"), Least: q.amount("min_amount", money.KES), Most: q.amount("max_amount", money.KES),
		From: q.time("paid_from"), To: q.time("paid_to"), Listed: q.yesNo("listed"), Disputed: q.yesNo("disputed"),
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
	all, total, err := s.Store.ListC2B(c.ctx, filter, page)
	if err != nil {
		return err
	}
	return c.list("payments", each(all, c2bWire), page, total)
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

// ReadNotice reads what the operator posted to an address of a kind.
type ReadNotice func(kind exchange.CallbackKind, body []byte) ([]exchange.Observation, error)

// takes reports whether a notice reports a payment to our number and is trusted enough to record the payment. A notice from
// outside the operator's addresses is only stored: the operator's statement lists the payment if it exists.
func (s *Spool) takes(n spooled) bool {
	return s.Notices != nil && n.Standing && !n.OffRange && n.Kind == exchange.CallbackConfirmation
}

// note stores a payment to our number that a notice reports, and wakes the flow that waits for it. Nothing is lost when it
// fails: the notice is stored, and the operator's statement, which is read every half hour, lists the payment too.
func (s *Spool) note(ctx context.Context, n spooled) {
	seen, err := s.Notices(n.Kind, n.Body)
	if err != nil {
		s.log.Warn("ALERT a notice of a payment can't be read", "callback_id", n.ID, "error", err)
		return
	}
	for _, o := range seen {
		taken, err := s.store.TakeReceipt(ctx, o)
		if err != nil {
			s.log.Error("a payment that the operator reported was not recorded; the operator's statement will list it again", "callback_id", n.ID, "error", err)
			continue
		}
		if taken.Payment.Disputed {
			s.log.Error("ALERT two channels contradict each other about a payment", "payment_id", taken.Payment.ID)
		}
		if taken.Waiting.ID != uuid.Nil {
			s.wake(ctx, taken.Waiting, n.ID)
		}
	}
}

func (s *server) c2bRoutes() []route {
	return []route{{method: http.MethodGet, path: "/api/v1/auth/otc/c2b/payments", action: exchange.ActReadC2B, limit: limitGeneral, handle: s.listC2B}}
}
