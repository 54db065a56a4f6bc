package api

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/workflows"
)

// wireParked is a parked flow with what can be done about it.
type wireParked struct {
	WorkflowID string     `json:"workflow_id"`
	RunID      string     `json:"run_id"`
	Type       string     `json:"type"`
	ObjectType *string    `json:"object_type"`
	ObjectID   *uuid.UUID `json:"object_id"`
	Reason     string     `json:"reason"`
	What       string     `json:"what"`
	Do         string     `json:"do"`
	Commands   []string   `json:"commands"`
	Network    *string    `json:"network"`
	OrderID    *uuid.UUID `json:"order_id"`
	CustomerID *uuid.UUID `json:"customer_id"`
	MerchantID *uuid.UUID `json:"merchant_id"`
	Amount     *string    `json:"amount"`
	Asset      *string    `json:"asset"`
	Since      timestamp  `json:"since"`
	Runbook    string     `json:"runbook"`
}

func parkedWire(f exchange.ParkedFlow) wireParked {
	a := workflows.Reason(f.Reason).Advice()
	w := wireParked{
		WorkflowID: f.WorkflowID, RunID: f.RunID, Type: f.Type, ObjectType: optText(f.ObjectType), ObjectID: optID(f.ObjectID), Reason: f.Reason,
		What: a.What, Do: a.Do, Commands: append([]string{}, a.Verbs...), Network: optText(string(f.Network)), OrderID: optID(f.OrderID),
		CustomerID: optID(f.CustomerID), MerchantID: optID(f.MerchantID), Since: stamp(f.Since), Runbook: a.Runbook,
	}
	if f.Amount.Asset() != "" {
		w.Amount, w.Asset = optText(f.Amount.String()), optText(string(f.Amount.Asset()))
	}
	return w
}

// maxCursor is the length of the place where a page ended, as text.
const maxCursor = 2000

// listParked reads the flows that wait for an operator, those that wait longest first.
func (s *server) listParked(c *call) error {
	q := c.query()
	size := q.integer("page_size", false, defaultPageSize, 1, maxPageSize)
	f := exchange.ParkedFilter{
		Reason:  q.oneOf("reason", each(workflows.Reasons(), func(r workflows.Reason) string { return string(r) })...),
		Network: exchange.Network(q.oneOf("network", networkNames...)), After: q.parkedPlace("after"), Size: int(size) + 1,
	}
	if err := q.done(); err != nil {
		return err
	}
	flows, total, err := s.Store.ListParked(c.ctx, f)
	if err != nil {
		return err
	}
	next := ""
	if len(flows) > int(size) {
		flows = flows[:size]
		next = parkedCursor(flows[size-1].Place())
	}
	return c.json(http.StatusOK, map[string]any{
		"parked": each(flows, parkedWire), "page_size": size, "total": total, "has_more": next != "", "next_after": optText(next),
	})
}

// parkedCursor is the place of a flow in the list, as text.
func parkedCursor(p exchange.ParkedPlace) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.Since.UTC().Format(time.RFC3339Nano) + " " + p.WorkflowID))
}

// cursor reads where a page ended; nil when absent.
func (q *query) cursor(name string) []byte {
	s, ok := q.take(name, false)
	if !ok {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(s) > maxCursor {
		q.fail(name, "format", "must be the next_after of the page before")
		return nil
	}
	return slices.Clip(b)
}

// parkedPlace reads where a page ended; the beginning of the list when absent.
func (q *query) parkedPlace(name string) exchange.ParkedPlace {
	b := q.cursor(name)
	if b == nil {
		return exchange.ParkedPlace{}
	}
	at, id, found := strings.Cut(string(b), " ")
	since, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || !found || !utf8.ValidString(id) || strings.ContainsRune(id, 0) {
		q.fail(name, "format", "must be the next_after of the page before")
	}
	return exchange.ParkedPlace{Since: since, WorkflowID: id}
}

func (s *server) parkedRoutes() []route {
	return []route{{method: http.MethodGet, path: "/api/v1/auth/parked", action: exchange.ActOperateFlows, limit: limitSearch, handle: s.listParked}}
}
