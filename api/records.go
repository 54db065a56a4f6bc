package api

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// wireEvent is one event of the event log.
type wireEvent struct {
	Cursor     int64           `json:"cursor"`
	ObjectType string          `json:"object_type"`
	ObjectID   uuid.UUID       `json:"object_id"`
	Sequence   int64           `json:"sequence"`
	Type       string          `json:"type"`
	Payload    json.RawMessage `json:"payload"`
	At         timestamp       `json:"at"`
}

// eventWire converts an event for the caller.
func (c *call) eventWire(e exchange.Event) wireEvent {
	if c.who.Role.Merchant() {
		e = e.ForMerchant(c.who.VendorID)
	}
	return wireEvent{e.Cursor, e.ObjectType, e.ObjectID, e.Sequence, e.Type, document(e.Payload), stamp(e.At)}
}

// document is a stored JSON document, null when there is none.
func document(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// listEvents reads the log after a position. next_after is the position for the next request; the same position later
// returns newer events.
func (s *server) listEvents(c *call) error {
	q := c.query()
	after, size := q.position(), q.size()
	filter := store.EventFilter{
		Type: q.oneOf("event_type", eventTypes()...), Object: q.oneOf("object_type", exchange.EventObjects()...), ObjectID: q.id("object_id"),
	}
	if err := q.done(); err != nil {
		return err
	}
	events, err := s.Store.FilteredEvents(c.ctx, c.view(), filter, after, size)
	if err != nil {
		return err
	}
	next := after
	if len(events) > 0 {
		next = events[len(events)-1].Cursor
	}
	return c.json(http.StatusOK, map[string]any{
		"events": each(events, c.eventWire), "next_after": position(next), "page_size": size, "has_more": len(events) == size,
	})
}

// A position in a log is opaque to clients: they send the next_after of the last response.

func position(n int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(n, 10)))
}

// position reads where a page of a log begins; zero when absent.
func (q *query) position() int64 {
	raw := q.cursor("after")
	if raw == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 {
		q.fail("after", "format", "must be the next_after of the page before")
		return 0
	}
	return n
}

func (q *query) size() int {
	return int(q.integer("page_size", false, defaultPageSize, 1, maxPageSize))
}

// log answers with a page of a log.
func log[R, W any](c *call, plural string, rows []R, size int, id func(R) int64, wire func(R) W) error {
	return c.json(http.StatusOK, logPage(plural, rows, size, id, wire))
}

// logPage is a page of a log. rows has one more row than the page when there is a next page.
func logPage[R, W any](plural string, rows []R, size int, id func(R) int64, wire func(R) W) map[string]any {
	var next *string
	if more := len(rows) > size; more {
		rows = rows[:size]
		at := position(id(rows[size-1]))
		next = &at
	}
	return map[string]any{plural: each(rows, wire), "next_after": next, "page_size": size, "has_more": next != nil}
}

// wireMachine is a state machine with its diagram.
type wireMachine struct {
	exchange.MachineView
	Mermaid string `json:"mermaid"`
}

func (s *server) listMachines(c *call) error {
	return c.json(http.StatusOK, map[string]any{
		"state_machines": each(exchange.Machines(), func(m exchange.MachineView) wireMachine { return wireMachine{m, m.Mermaid()} }),
	})
}

// wireAudit is a row of the audit log.
type wireAudit struct {
	ID         int64           `json:"id"`
	At         timestamp       `json:"at"`
	Actor      string          `json:"actor"`
	Role       *string         `json:"role"`
	IP         *string         `json:"ip"`
	RequestID  string          `json:"request_id"`
	Action     string          `json:"action"`
	ObjectType string          `json:"object_type"`
	ObjectID   *uuid.UUID      `json:"object_id"`
	Before     json.RawMessage `json:"before"`
	After      json.RawMessage `json:"after"`
	Hash       *string         `json:"hash"`
}

func auditWire(a exchange.AuditRecord) wireAudit {
	return wireAudit{
		ID: a.ID, At: stamp(a.At), Actor: a.Actor, Role: optText(string(a.Role)), IP: optText(a.IP), RequestID: a.RequestID,
		Action: a.Action, ObjectType: a.ObjectType, ObjectID: optID(a.ObjectID), Before: document(a.Before), After: document(a.After),
		Hash: optText(a.Hash),
	}
}

// auditID is the position of a record in the audit log.
func auditID(r exchange.AuditRecord) int64 { return r.ID }

func (s *server) listAudit(c *call) error {
	q := c.query()
	size := q.size()
	filter := store.AuditFilter{
		Before: q.position(),
		Actor:  q.text("actor", false), Action: q.oneOf("action", exchange.AuditActions()...), ObjectType: q.oneOf("object_type", exchange.AuditObjects()...),
		ObjectID: q.id("object_id"), From: q.time("created_from"), To: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	records, err := s.Store.AuditRecords(c.ctx, filter, size+1)
	if err != nil {
		return err
	}
	return log(c, "audit", records, size, auditID, auditWire)
}

// wireAccount is an account of the ledger.
type wireAccount struct {
	Code      string     `json:"code"`
	Kind      string     `json:"kind"`
	OwnerID   *uuid.UUID `json:"owner_id"`
	Side      string     `json:"normal_side"`
	Asset     string     `json:"asset"`
	Posted    string     `json:"posted"`
	Held      string     `json:"held"`
	Available string     `json:"available"`
	UpdatedAt timestamp  `json:"updated_at"`
}

func accountWire(a exchange.Account) wireAccount {
	side := "credit"
	if a.Ref.Kind.DebitNormal() {
		side = "debit"
	}
	return wireAccount{
		Code: a.Ref.Code(), Kind: string(a.Ref.Kind), OwnerID: optID(a.Ref.Owner), Side: side, Asset: string(a.Ref.Asset),
		Posted: a.Posted.String(), Held: a.Held.String(), Available: a.Available().String(), UpdatedAt: stamp(a.UpdatedAt),
	}
}

var accountKinds = names(exchange.AccountKinds())

func assetNames() []string {
	return names(money.Assets())
}

func (s *server) listAccounts(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.AccountFilter{
		Kind: exchange.AccountKind(q.oneOf("kind", accountKinds...)), Owner: q.id("owner_id"), Asset: money.Asset(q.oneOf("asset", assetNames()...)),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "accounts", page, accountWire)(s.Store.ListAccounts(c.ctx, filter, page))
}

// wireLine is one side of an entry.
type wireLine struct {
	Account string `json:"account"`
	Asset   string `json:"asset"`
	Debit   string `json:"debit"`
	Credit  string `json:"credit"`
}

func lineWire(l exchange.Line) wireLine {
	zero := money.Zero(l.Amount.Asset()).String()
	w := wireLine{Account: l.Account.Code(), Asset: string(l.Account.Asset), Debit: zero, Credit: zero}
	if l.Amount.Positive() {
		w.Debit = l.Amount.String()
	} else {
		w.Credit = l.Amount.Neg().String()
	}
	return w
}

// wireEntry is a booking.
type wireEntry struct {
	ID         int64      `json:"id"`
	Key        string     `json:"key"`
	Kind       string     `json:"kind"`
	ObjectType *string    `json:"object_type"`
	ObjectID   *uuid.UUID `json:"object_id"`
	Lines      []wireLine `json:"lines"`
	At         timestamp  `json:"at"`
}

func entryRecordWire(e store.EntryRecord) wireEntry {
	return wireEntry{e.ID, e.Key, e.Kind, optText(e.ObjectType), optID(e.ObjectID), each(e.Lines, lineWire), stamp(e.At)}
}

// listEntries filters by object, or by an account. Kind, owner and asset together identify an account.
func (s *server) listEntries(c *call) error {
	q := c.query()
	size := q.size()
	filter := store.EntryFilter{Before: q.position(), ObjectType: q.oneOf("object_type", exchange.EventObjects()...), ObjectID: q.id("object_id")}
	ref := exchange.AccountRef{
		Kind: exchange.AccountKind(q.oneOf("kind", accountKinds...)), Owner: q.id("owner_id"), Asset: money.Asset(q.oneOf("asset", assetNames()...)),
	}
	if (ref.Kind == "") != (ref.Asset == "") || (ref.Owner != uuid.Nil && ref.Kind == "") {
		q.fail("kind", "required", "must be given together with asset, and whenever owner_id is given")
	}
	if err := q.done(); err != nil {
		return err
	}
	if ref.Kind != "" {
		filter.Account = &ref
	}
	entries, err := s.Store.ListEntries(c.ctx, filter, size+1)
	if err != nil {
		return err
	}
	return log(c, "entries", entries, size, func(r store.EntryRecord) int64 { return r.ID }, entryRecordWire)
}
