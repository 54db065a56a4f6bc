package api

import (
	"encoding/json"
	"math"
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// wireEvent is one fact of the event log.
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

// listEvents reads the log after a cursor. next_after is the cursor to ask with next; asking again
// with the same one later shows what has happened since.
func (s *server) listEvents(c *call) error {
	q := c.query()
	after := q.integer("after", false, 0, 0, math.MaxInt64)
	size := q.integer("page_size", false, defaultPageSize, 1, maxPageSize)
	if err := q.done(); err != nil {
		return err
	}
	events, err := s.Store.Events(c.ctx, c.view(), after, int(size))
	if err != nil {
		return err
	}
	next := after
	if len(events) > 0 {
		next = events[len(events)-1].Cursor
	}
	return c.json(http.StatusOK, map[string]any{
		"events": each(events, c.eventWire), "after": after, "next_after": next, "page_size": size, "has_more": len(events) == int(size),
	})
}

// wireMachine is a state machine with its drawing.
type wireMachine struct {
	exchange.MachineView
	Mermaid string `json:"mermaid"`
}

func (s *server) listMachines(c *call) error {
	return c.json(http.StatusOK, map[string]any{
		"state_machines": each(exchange.Machines(), func(m exchange.MachineView) wireMachine { return wireMachine{m, m.Mermaid()} }),
	})
}

// wireAudit says who did what.
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

func (s *server) listAudit(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.AuditFilter{
		Actor: q.text("actor", false), Action: q.text("action", false), ObjectType: q.text("object_type", false),
		ObjectID: q.id("object_id"), From: q.time("created_from"), To: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	records, total, err := s.Store.AuditRecords(c.ctx, filter, page)
	if err != nil {
		return err
	}
	return c.list("audit", each(records, auditWire), page, total)
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

var accountKinds = []string{
	"custody", "wallet_balance", "fiat_balance", "momo_collection", "momo_payout", "bank", "orders_in_flight", "refunds_due",
	"suspense", "unclaimed", "receivable", "rounding", "fees", "network_fees", "capital",
}

func assetNames() []string {
	return each(money.Assets(), func(a money.Asset) string { return string(a) })
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
	accounts, total, err := s.Store.ListAccounts(c.ctx, filter, page)
	if err != nil {
		return err
	}
	return c.list("accounts", each(accounts, accountWire), page, total)
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
	ObjectType string     `json:"object_type"`
	ObjectID   *uuid.UUID `json:"object_id"`
	Lines      []wireLine `json:"lines"`
	At         timestamp  `json:"at"`
}

func entryRecordWire(e store.EntryRecord) wireEntry {
	return wireEntry{e.ID, e.Key, e.Kind, e.ObjectType, optID(e.ObjectID), each(e.Lines, lineWire), stamp(e.At)}
}

// listEntries filters by object, or by an account that is named by kind, owner and asset together.
func (s *server) listEntries(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.EntryFilter{ObjectType: q.text("object_type", false), ObjectID: q.id("object_id")}
	ref := exchange.AccountRef{
		Kind: exchange.AccountKind(q.oneOf("kind", accountKinds...)), Owner: q.id("owner_id"), Asset: money.Asset(q.oneOf("asset", assetNames()...)),
	}
	if (ref.Kind == "") != (ref.Asset == "") || (ref.Owner != uuid.Nil && ref.Kind == "") {
		q.fail("kind", "required", "kind and asset name an account only together")
	}
	if err := q.done(); err != nil {
		return err
	}
	if ref.Kind != "" {
		filter.Account = &ref
	}
	entries, total, err := s.Store.ListEntries(c.ctx, filter, page)
	if err != nil {
		return err
	}
	return c.list("entries", each(entries, entryRecordWire), page, total)
}
