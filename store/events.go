package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/ledger"
)

// MaxEvents bounds how many events one read returns.
const MaxEvents = 500

// auditEvent is one change of one object. It becomes an event, for everyone who may see the object, and an audit row,
// for the auditor. Its payloads contain neither secrets nor personal data.
type auditEvent struct {
	by     exchange.Principal
	object string
	id     uuid.UUID
	name   string // "order.opened"
	owner  uuid.UUID
	vendor uuid.UUID
	before any // nil when the object is new
	after  any
}

// record adds an event and its audit row.
func (t unitTx) record(_ context.Context, f auditEvent) error {
	return t.Note(ledger.Record{
		Actor: f.by.ActorName(), Role: f.by.Role, IP: f.by.IP, RequestID: f.by.RequestID, Action: f.name, ObjectType: f.object, ObjectID: f.id,
		Event: true, OwnerID: nullID(f.owner), VendorID: nullID(f.vendor),
	}, f.before, f.after)
}

// audit adds only an audit row, for facts without an event.
func (t unitTx) audit(_ context.Context, by exchange.Principal, action, object string, id uuid.UUID, before, after any) error {
	return t.Note(ledger.Record{
		Actor: by.ActorName(), Role: by.Role, IP: by.IP, RequestID: by.RequestID, Action: action, ObjectType: object, ObjectID: id,
	}, before, after)
}

const eventColumns = `cursor, object_type, object_id, sequence, type, owner_id, vendor_id, payload, at`

const readEvents = `SELECT ` + eventColumns + ` FROM events
WHERE cursor > $1 AND cursor < (SELECT log_horizon()) AND ($3::text = '' OR type = $3) AND ($4::text = '' OR object_type = $4)
    AND ($5::uuid IS NULL OR object_id = $5)`

const eventOrder = ` ORDER BY cursor LIMIT $2`

// EventFilter narrows the log; zero values do not filter.
type EventFilter struct {
	Type     string
	Object   string
	ObjectID uuid.UUID
}

// Events reads the log after a cursor, at most MaxEvents at once. It ends before the oldest running transaction, so
// that a reader who continues from the last cursor never misses an event that committed late; an event may therefore
// appear a moment after its change.
func (s *Store) Events(ctx context.Context, v View, after int64, limit int) ([]exchange.Event, error) {
	return s.FilteredEvents(ctx, v, EventFilter{}, after, limit)
}

// FilteredEvents is Events with a filter. Each restricted scope has an index of its own.
func (s *Store) FilteredEvents(ctx context.Context, v View, f EventFilter, after int64, limit int) ([]exchange.Event, error) {
	limit = min(max(limit, 1), MaxEvents)
	var rows []exchange.Event
	var err error
	args := []any{after, limit, f.Type, f.Object, nullID(f.ObjectID)}
	switch all, owner, vendor := v.args(); {
	case all:
		err = s.db.All(ctx, &rows, readEvents+eventOrder, args...)
	case owner.Valid:
		err = s.db.All(ctx, &rows, readEvents+` AND owner_id = $6`+eventOrder, append(args, owner)...)
	case vendor.Valid:
		err = s.db.All(ctx, &rows, readEvents+` AND vendor_id = $6`+eventOrder, append(args, vendor)...)
	}
	if err != nil {
		return nil, translate(err, "event")
	}
	return rows, nil
}

const readTimeline = `SELECT ` + eventColumns + ` FROM events WHERE cursor IN (SELECT cursor FROM event_keys WHERE (object_type, object_id) IN (
    SELECT 'order', $1::uuid
    UNION ALL SELECT 'payment_attempt', id FROM payment_attempts WHERE object_type = 'order' AND object_id = $1
    UNION ALL SELECT 'payment_attempt', a.id FROM refunds r JOIN payment_attempts a ON a.object_type = 'refund' AND a.object_id = r.id WHERE r.order_id = $1
    UNION ALL SELECT 'chain_payment', id FROM chain_payments WHERE purpose IN ('order', 'sweep', 'funding') AND object_id = $1
    UNION ALL SELECT 'chain_payment', p.id FROM refunds r JOIN chain_payments p ON p.purpose = 'refund' AND p.object_id = r.id WHERE r.order_id = $1
    UNION ALL SELECT 'order_payout', $1
    UNION ALL SELECT 'chain_deposit', deposit_id FROM escrow_claims WHERE order_id = $1
    UNION ALL SELECT 'payment_exception', id FROM payment_exceptions WHERE order_id = $1
    UNION ALL SELECT 'refund', id FROM refunds WHERE order_id = $1))
ORDER BY cursor LIMIT 1000`

// OrderTimeline lists the events of an order and of its payments, exceptions and refunds, oldest first. CodeNotFound
// when the view has no such order.
func (s *Store) OrderTimeline(ctx context.Context, v View, id uuid.UUID) ([]exchange.Event, error) {
	if _, err := s.Order(ctx, v, id); err != nil {
		return nil, err
	}
	return readAll[exchange.Event](ctx, s.db, "event", readTimeline, id)
}
