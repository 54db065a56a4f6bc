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

// wireParked is a parked flow and the verbs that it accepts.
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
	Exception  *uuid.UUID `json:"payment_exception_id"`
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
		Exception: optID(f.ExceptionID), CustomerID: optID(f.CustomerID), MerchantID: optID(f.MerchantID), Since: stamp(f.Since), Runbook: a.Runbook,
	}
	if f.Amount.Asset() != "" {
		w.Amount, w.Asset = optText(f.Amount.String()), optText(string(f.Amount.Asset()))
	}
	return w
}

// maxCursor is the maximum length of a cursor.
const maxCursor = 2000

// listParked lists the flows that wait for an operator. Those that wait longest come first.
func (s *server) listParked(c *call) error {
	q := c.query()
	size := q.integer("page_size", false, defaultPageSize, 1, maxPageSize)
	f := exchange.ParkedFilter{
		Reason:  q.oneOf("reason", names(workflows.Reasons())...),
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

// parkedCursor is the cursor of a flow in the list.
func parkedCursor(p exchange.ParkedPlace) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.Since.UTC().Format(time.RFC3339Nano) + " " + p.WorkflowID))
}

// cursor reads the cursor of a page; nil when absent.
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

// parkedPlace reads the cursor of a page; the beginning of the list when absent.
func (q *query) parkedPlace(name string) exchange.ParkedPlace {
	s, given := q.take(name, false)
	if !given {
		return exchange.ParkedPlace{}
	}
	place, ok := parkedPlace(s)
	if !ok {
		q.fail(name, "format", "must be the next_after of the page before")
	}
	return place
}

// parkedPlace reads a cursor of parkedCursor.
func parkedPlace(s string) (exchange.ParkedPlace, bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(s) > maxCursor {
		return exchange.ParkedPlace{}, false
	}
	at, id, found := strings.Cut(string(b), " ")
	since, err := time.Parse(time.RFC3339Nano, at)
	ok := err == nil && found && utf8.ValidString(id) && !strings.ContainsRune(id, 0)
	return exchange.ParkedPlace{Since: since, WorkflowID: id}, ok
}

func (s *server) parkedRoutes() []route {
	const parked = "/api/v1/auth/parked"
	return []route{
		{method: http.MethodGet, path: parked, action: exchange.ActOperateFlows, limit: limitSearch, handle: s.listParked},
		{
			method: http.MethodPost, path: parked + "/retry", action: exchange.ActOperateFlows, limit: limitGeneral,
			key: keyRequired, timeout: flowTimeout, handle: s.retryParked,
		},
	}
}
