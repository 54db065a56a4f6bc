package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// eventLog gathers the records of a transaction. One statement at the transaction's end appends all of them, because a
// change of an order, its payment and its ledger records several objects, and each statement is a round trip.
type eventLog struct{ lines []eventLogLine }

// eventLogLine is an audit row and, if it has an event name, an event. Its field names are the columns that
// writeEventLog reads.
type eventLogLine struct {
	At         time.Time       `json:"at"`
	Actor      string          `json:"actor"`
	Role       exchange.Role   `json:"role"`
	IP         string          `json:"ip"`
	RequestID  string          `json:"request_id"`
	Action     string          `json:"action"`
	ObjectType string          `json:"object_type"`
	ObjectID   uuid.UUID       `json:"object_id"`
	Before     json.RawMessage `json:"before,omitempty"` // absent is NULL
	After      json.RawMessage `json:"after,omitempty"`
	Event      bool            `json:"event"`
	OwnerID    uuid.NullUUID   `json:"owner_id"`
	VendorID   uuid.NullUUID   `json:"vendor_id"`
}

// Cursors and audit ids count within this transaction's own range of positions (log_position() leaves 2^20 to each
// transaction), because a later one may have committed already. The sequence counts per object: the object's row is
// locked or new in this transaction, so two writers can't take the same number; the unique key enforces it too.
const writeEventLog = `
WITH p AS MATERIALIZED (
    SELECT greatest(n, (SELECT max(cursor) FROM events WHERE cursor >= n AND cursor < n + (1 << 20))) AS cursor,
        greatest(n, (SELECT max(id) FROM audit_log WHERE id >= n AND id < n + (1 << 20))) AS audit
    FROM (SELECT log_position() AS n) x),
lines AS MATERIALIZED (
    SELECT l.*, row_number() OVER () AS n
    FROM jsonb_to_recordset($1::jsonb) AS l (at timestamptz, actor text, role text, ip text, request_id text, action text, object_type text,
        object_id uuid, before jsonb, after jsonb, event boolean, owner_id uuid, vendor_id uuid)),
told AS (
    INSERT INTO events (cursor, object_type, object_id, sequence, type, owner_id, vendor_id, payload, at)
    SELECT p.cursor + l.n, l.object_type, l.object_id,
        coalesce((SELECT max(sequence) FROM events e WHERE e.object_type = l.object_type AND e.object_id = l.object_id), 0)
            + row_number() OVER (PARTITION BY l.object_type, l.object_id ORDER BY l.n),
        l.action, l.owner_id, l.vendor_id, l.after, l.at
    FROM lines l, p WHERE l.event)
INSERT INTO audit_log (id, at, actor, role, ip, request_id, action, object_type, object_id, before, after)
SELECT p.audit + l.n, l.at, l.actor, l.role, l.ip, l.request_id, l.action, l.object_type, l.object_id, l.before, l.after FROM lines l, p`

// record adds an event and its audit row.
func (t unitTx) record(_ context.Context, f auditEvent) error {
	return t.note(eventLogLine{
		Actor: f.by.ActorName(), Role: f.by.Role, IP: f.by.IP, RequestID: f.by.RequestID, Action: f.name, ObjectType: f.object, ObjectID: f.id,
		Event: true, OwnerID: nullID(f.owner), VendorID: nullID(f.vendor),
	}, f.before, f.after)
}

// audit adds only an audit row, for facts without an event.
func (t unitTx) audit(_ context.Context, by exchange.Principal, action, object string, id uuid.UUID, before, after any) error {
	return t.note(eventLogLine{
		Actor: by.ActorName(), Role: by.Role, IP: by.IP, RequestID: by.RequestID, Action: action, ObjectType: object, ObjectID: id,
	}, before, after)
}

func (t unitTx) note(l eventLogLine, before, after any) (err error) {
	if l.Before, err = encoded(before); err != nil {
		return err
	}
	if l.After, err = encoded(after); err != nil {
		return err
	}
	l.At = t.s.now()
	t.eventLog.lines = append(t.eventLog.lines, l)
	return nil
}

// encoded is a value as JSON, nil for nil.
func encoded(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, exchange.Wrap(exchange.CodeInternal, err, "a record can't be encoded as JSON")
	}
	return b, nil
}

// document is a value as a jsonb argument, NULL for nil.
func document(v any) (any, error) {
	b, err := encoded(v)
	if err != nil || b == nil {
		return nil, err
	}
	return string(b), nil
}

// tell appends the transaction's records. It is the last step before the commit.
func (t unitTx) tell(ctx context.Context) error {
	lines := t.eventLog.lines
	if len(lines) == 0 {
		return nil
	}
	doc, err := json.Marshal(lines)
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "records can't be encoded as JSON")
	}
	n, err := t.Exec(ctx, writeEventLog, string(doc))
	if err == nil && n != int64(len(lines)) {
		err = exchange.Errorf(exchange.CodeInternal, "%d of %d audit rows were written", n, len(lines))
	}
	return err
}
