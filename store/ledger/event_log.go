package ledger

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// eventLog gathers the records of a transaction. One statement at the transaction's end appends all of them, because a
// change of an order, its payment and its ledger records several objects, and each statement is a round trip.
type eventLog struct{ lines []Record }

// Record is a line of the audit log and, if it is an Event, an event too. Its field names are the columns that
// WriteEventLog reads.
type Record struct {
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

// WriteEventLog appends records to both logs. Cursors and audit ids count within this transaction's own range of positions (log_position() leaves 2^20 to each
// transaction), because a later one may have committed already. The sequence counts per object: the object's row is
// locked or new in this transaction, so two writers can't take the same number; the unique key enforces it too. Both are read from the keys, which are one table, and not from the parts of the log.
const WriteEventLog = `
WITH p AS MATERIALIZED (
    SELECT greatest(n, (SELECT max(cursor) FROM event_keys WHERE cursor >= n AND cursor < n + (1 << 20))) AS cursor,
        greatest(n, (SELECT max(id) FROM audit_log WHERE id >= n AND id < n + (1 << 20))) AS audit
    FROM (SELECT log_position() AS n) x),
lines AS MATERIALIZED (
    SELECT l.*, row_number() OVER () AS n
    FROM jsonb_to_recordset($1::jsonb) AS l (at timestamptz, actor text, role text, ip text, request_id text, action text, object_type text,
        object_id uuid, before jsonb, after jsonb, event boolean, owner_id uuid, vendor_id uuid)),
appended AS (
    INSERT INTO events (cursor, object_type, object_id, sequence, type, owner_id, vendor_id, payload, at)
    SELECT p.cursor + l.n, l.object_type, l.object_id,
        coalesce((SELECT max(sequence) FROM event_keys e WHERE e.object_type = l.object_type AND e.object_id = l.object_id), 0)
            + row_number() OVER (PARTITION BY l.object_type, l.object_id ORDER BY l.n),
        l.action, l.owner_id, l.vendor_id, l.after, l.at
    FROM lines l, p WHERE l.event)
INSERT INTO audit_log (id, at, actor, role, ip, request_id, action, object_type, object_id, before, after)
SELECT p.audit + l.n, l.at, l.actor, l.role, l.ip, l.request_id, l.action, l.object_type, l.object_id, l.before, l.after FROM lines l, p`

// Note adds a record of an object as it was and as it is now, nil for none. Its time is that of the transaction.
func (t Tx) Note(r Record, before, after any) (err error) {
	if r.Before, err = encoded(before); err != nil {
		return err
	}
	if r.After, err = encoded(after); err != nil {
		return err
	}
	r.At = t.now()
	t.log.lines = append(t.log.lines, r)
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

// write appends the gathered records. It is the last step before the commit.
func (l *eventLog) write(ctx context.Context, tx pg.Tx) error {
	if len(l.lines) == 0 {
		return nil
	}
	doc, err := json.Marshal(l.lines)
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "records can't be encoded as JSON")
	}
	n, err := tx.Exec(ctx, WriteEventLog, string(doc))
	if err == nil && n != int64(len(l.lines)) {
		err = exchange.Errorf(exchange.CodeInternal, "%d of %d audit rows were written", n, len(l.lines))
	}
	return err
}
