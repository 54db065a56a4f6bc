package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

const deliveryColumns = `d.id, d.endpoint_id, d.status, d.status_detail, d.attempts, d.tries, d.replays,
	CASE WHEN d.status = 'pending' THEN d.next_at END AS next_at, d.last_at, d.last_status, d.last_error, d.delivered_at, d.created_at, d.updated_at,
	e.cursor AS "event.cursor", e.object_type AS "event.object_type", e.object_id AS "event.object_id", e.sequence AS "event.sequence",
	e.type AS "event.type", e.owner_id AS "event.owner_id", e.vendor_id AS "event.vendor_id", e.payload AS "event.payload", e.at AS "event.at"`

// mayStill holds when the creator of endpoint p may still read the events that it gets.
const mayStill = `EXISTS (SELECT FROM users u WHERE u.id = p.created_by AND u.is_active AND CASE
    WHEN p.vendor_id IS NOT NULL THEN u.id = p.vendor_id AND u.role = 'vendor'
    WHEN p.owner_id IS NOT NULL THEN u.id = p.owner_id AND u.role IN ('customer', 'user')
    ELSE u.role = 'admin' END)`

// relayEvents reads a batch of the log, creates a delivery for each endpoint and event that match, and moves the
// cursor, all in one statement: one snapshot determines both the readable part of the log and the endpoints. Without
// endpoints the cursor moves to the end of the readable part, because endpoints get no events from before their
// creation. Ids are UUIDs of version 7.
const relayEvents = `
WITH batch AS MATERIALIZED (
    SELECT cursor, object_type, object_id, type, owner_id, vendor_id FROM events
    WHERE cursor > $1 AND cursor < (SELECT log_horizon()) ORDER BY cursor LIMIT $2),
wanted AS MATERIALIZED (SELECT EXISTS (SELECT FROM webhook_endpoints WHERE status = 'active') AS yes),
added AS (
    INSERT INTO webhook_deliveries (id, endpoint_id, event_cursor, object_type, object_id, status, status_detail, next_at, created_at, updated_at)
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send((extract(epoch FROM $3::timestamptz) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid,
        p.id, b.cursor, b.object_type, b.object_id, 'pending', '', $3, $3, $3
    FROM batch b JOIN webhook_endpoints p ON p.status = 'active' AND p.from_cursor < b.cursor
        AND ((p.owner_id IS NULL AND p.vendor_id IS NULL) OR b.owner_id = p.owner_id OR b.vendor_id = p.vendor_id)
        AND CASE WHEN b.type = 'webhook_endpoint.test' THEN b.object_id = p.id
            ELSE cardinality(p.event_types) = 0 OR b.type = ANY (p.event_types) OR split_part(b.type, '.', 1) || '.*' = ANY (p.event_types) END
    WHERE ` + mayStill + `
    ON CONFLICT (endpoint_id, event_cursor) DO NOTHING RETURNING 1),
moved AS (
    UPDATE webhook_relay SET cursor = greatest(cursor, CASE WHEN (SELECT yes FROM wanted) THEN (SELECT max(cursor) FROM batch)
        ELSE (SELECT max(cursor) FROM event_keys WHERE cursor < (SELECT log_horizon())) END)
    WHERE EXISTS (SELECT FROM batch) RETURNING 1)
SELECT (SELECT count(*) FROM batch) AS events, (SELECT count(*) FROM added) AS deliveries, (SELECT yes FROM wanted) AS wanted`

const lockRelay = `SELECT cursor FROM webhook_relay FOR UPDATE`

// RelayEvents creates the deliveries of at most limit events of the log. Repeated or concurrent calls neither
// duplicate nor skip a delivery.
func (s *Store) RelayEvents(ctx context.Context, limit int) (exchange.RelayedEvents, error) {
	var out exchange.RelayedEvents
	err := s.inTx(ctx, "webhook delivery", func(t unitTx) error {
		var cursor int64
		if err := t.Get(ctx, &cursor, lockRelay); err != nil {
			return err
		}
		return t.Get(ctx, &out, relayEvents, cursor, min(max(limit, 1), MaxEvents), t.s.now())
	})
	return out, err
}

// webhookOverdue is how late a delivery has to be before its endpoint's flow is woken again: by then the flow has
// missed it.
const webhookOverdue = 2 * time.Minute

const readUnannounced = `
(SELECT endpoint_id, id FROM webhook_deliveries WHERE status = 'pending' AND NOT announced ORDER BY created_at LIMIT $1)
UNION
(SELECT endpoint_id, id FROM webhook_deliveries d WHERE status = 'pending' AND next_at < $2 AND (claimed_until IS NULL OR claimed_until < $2)
    AND NOT EXISTS (SELECT FROM webhook_deliveries o WHERE o.endpoint_id = d.endpoint_id AND o.status = 'pending' AND o.object_type = d.object_type
        AND o.object_id = d.object_id AND o.event_cursor < d.event_cursor AND o.replays = 0)
    ORDER BY next_at LIMIT $1)`

const announce = `UPDATE webhook_deliveries SET announced = true WHERE id = ANY ($1::uuid[]) AND NOT announced`

// WebhooksToWake lists endpoints whose flows have to be notified of deliveries, with those deliveries: new and long
// overdue ones.
func (s *Store) WebhooksToWake(ctx context.Context, limit int) (map[uuid.UUID][]uuid.UUID, error) {
	var rows []struct {
		EndpointID uuid.UUID
		ID         uuid.UUID
	}
	if err := s.db.All(ctx, &rows, readUnannounced, limit, s.now().Add(-webhookOverdue)); err != nil {
		return nil, translate(err, "webhook delivery")
	}
	out := map[uuid.UUID][]uuid.UUID{}
	for _, r := range rows {
		out[r.EndpointID] = append(out[r.EndpointID], r.ID)
	}
	return out, nil
}

// WebhooksWoken records deliveries that the flow was notified of.
func (s *Store) WebhooksWoken(ctx context.Context, deliveries []uuid.UUID) error {
	_, err := s.write(ctx, "webhook delivery", announce, pq.Array(deliveries))
	return err
}

// The events of one object are delivered in order. Replays are outside of that order: they neither wait nor block.
const inTurn = ` AND (d.replays > 0 OR NOT EXISTS (SELECT FROM webhook_deliveries o WHERE o.endpoint_id = d.endpoint_id AND o.status = 'pending'
    AND o.object_type = d.object_type AND o.object_id = d.object_id AND o.event_cursor < d.event_cursor AND o.replays = 0))`

const (
	readDeliverable = `SELECT ` + webhookColumns + `, ` + mayStill + ` AS may FROM webhook_endpoints p WHERE p.id = $1 AND p.deleted_at IS NULL FOR NO KEY UPDATE`
	claimDue        = `
WITH due AS (
    SELECT d.id FROM webhook_deliveries d WHERE d.endpoint_id = $1 AND d.status = 'pending' AND d.next_at <= $2
        AND (d.claimed_until IS NULL OR d.claimed_until <= $2)` + inTurn + `
    ORDER BY d.event_cursor LIMIT $4 FOR UPDATE SKIP LOCKED),
d AS (
    UPDATE webhook_deliveries c SET claimed_until = $3, attempts = attempts + 1, tries = least(tries + 1, $5), last_at = $2, updated_at = $2
    FROM due WHERE c.id = due.id RETURNING c.*)
SELECT ` + deliveryColumns + ` FROM d JOIN events e ON e.cursor = d.event_cursor ORDER BY e.cursor`
	nextDue = `SELECT min(greatest(d.next_at, coalesce(d.claimed_until, d.next_at))) FROM webhook_deliveries d WHERE d.endpoint_id = $1 AND d.status = 'pending'` + inTurn
)

// ClaimWebhooks takes at most limit due deliveries of an endpoint, for one attempt each, and counts the attempt. No
// other caller gets them until the lease ends. A disabled or deleted endpoint has none; one whose creator may no
// longer read its events is disabled.
func (s *Store) ClaimWebhooks(ctx context.Context, endpoint uuid.UUID, limit int, lease time.Duration) (exchange.WebhookClaim, error) {
	var out exchange.WebhookClaim
	err := s.inTx(ctx, "webhook delivery", func(t unitTx) error {
		out = exchange.WebhookClaim{}
		var found []struct {
			exchange.WebhookEndpoint
			May bool
		}
		if err := t.All(ctx, &found, readDeliverable, endpoint); err != nil {
			return err
		}
		if len(found) == 0 { // the relay may have read the log while the endpoint was deleted
			_, err := t.Exec(ctx, failDeliveries, endpoint, exchange.WebhookEndpointDeleted, t.s.now())
			return err
		}
		p := found[0].WebhookEndpoint
		if p.Status != exchange.WebhookActive {
			_, err := t.Exec(ctx, failDeliveries, endpoint, exchange.WebhookEndpointDisabled, t.s.now())
			return err
		}
		if !found[0].May {
			return t.dropWebhook(ctx, p, exchange.WebhookOwnerInactive)
		}
		now := t.s.now()
		if err := t.All(ctx, &out.Deliveries, claimDue, endpoint, now, now.Add(lease), limit, exchange.WebhookAttempts); err != nil {
			return err
		}
		out.URL = p.URL
		if p.VendorID != uuid.Nil { // the owner sees the same fields of an event as in the log
			for i := range out.Deliveries {
				out.Deliveries[i].Event = out.Deliveries[i].Event.ForMerchant(p.VendorID)
			}
		}
		var err error
		out.Keys, err = t.webhookKeys(ctx, endpoint)
		return err
	})
	return out, err
}

// NextWebhook is when the next delivery of an endpoint is due; zero when none waits.
func (s *Store) NextWebhook(ctx context.Context, endpoint uuid.UUID) (time.Time, error) {
	var at sql.NullTime
	err := s.db.Get(ctx, &at, nextDue, endpoint)
	return utc(at), translate(err, "webhook delivery")
}

// dropWebhook disables an endpoint automatically.
func (t unitTx) dropWebhook(ctx context.Context, p exchange.WebhookEndpoint, why string) error {
	after := p
	if err := t.disableWebhook(ctx, &after, why); err != nil {
		return err
	}
	saved, err := t.saveWebhook(ctx, after)
	if err != nil {
		return err
	}
	return t.record(ctx, webhookRecord("disabled", exchange.System("webhooks"), &p, saved))
}

const (
	readClaimed    = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries d JOIN events e ON e.cursor = d.event_cursor WHERE d.id = $1 AND d.attempts = $2 AND d.status = 'pending' AND d.claimed_until IS NOT NULL FOR UPDATE OF d`
	lockEndpointOf = `SELECT ` + webhookColumns + ` FROM webhook_endpoints p WHERE p.id = (SELECT endpoint_id FROM webhook_deliveries WHERE id = $1) AND p.deleted_at IS NULL FOR NO KEY UPDATE`
	endDelivery    = `UPDATE webhook_deliveries SET status = $2, status_detail = $3, last_status = $4, last_error = $5, claimed_until = NULL,
	delivered_at = CASE WHEN $2 = 'delivered' THEN $6::timestamptz ELSE delivered_at END, updated_at = $6 WHERE id = $1`
	putOff     = `UPDATE webhook_deliveries SET next_at = $2, last_status = $3, last_error = $4, claimed_until = NULL, updated_at = $5 WHERE id = $1`
	setFailing = `UPDATE webhook_endpoints SET failing_since = $2 WHERE id = $1`
)

// RecordWebhook stores the result of a claimed attempt: the delivery ends, or waits for its next attempt. A late
// result, after another claim or a decision, changes nothing. An endpoint that returned 410, or only failures for
// exchange.WebhookDisableAfter, is disabled.
func (s *Store) RecordWebhook(ctx context.Context, r exchange.WebhookResult) error {
	return s.inTx(ctx, "webhook delivery", func(t unitTx) error {
		var endpoints []exchange.WebhookEndpoint
		if err := t.All(ctx, &endpoints, lockEndpointOf, r.DeliveryID); err != nil || len(endpoints) == 0 {
			return err
		}
		p := endpoints[0]
		var rows []exchange.WebhookDelivery
		if err := t.All(ctx, &rows, readClaimed, r.DeliveryID, r.Attempt); err != nil || len(rows) == 0 {
			return err
		}
		d := rows[0]
		if r.Error == "" {
			if err := t.One(ctx, endDelivery, d.ID, exchange.WebhookDelivered, "", r.Status, "", t.s.now()); err != nil || p.FailingSince.IsZero() {
				return err
			}
			return t.One(ctx, setFailing, p.ID, nullTime(time.Time{}))
		}
		return t.failWebhook(ctx, p, d, r)
	})
}

func (t unitTx) failWebhook(ctx context.Context, p exchange.WebhookEndpoint, d exchange.WebhookDelivery, r exchange.WebhookResult) error {
	now := t.s.now()
	if r.Error == exchange.WebhookErrSize { // not the endpoint's fault, and retries can't help
		return t.One(ctx, endDelivery, d.ID, exchange.WebhookFailed, exchange.WebhookErrSize, 0, r.Error, now)
	}
	pause, again := exchange.WebhookPause(d.Tries)
	var err error
	switch {
	case r.Gone:
		err = t.One(ctx, endDelivery, d.ID, exchange.WebhookFailed, exchange.WebhookGone, r.Status, r.Error, now)
	case !again:
		err = t.One(ctx, endDelivery, d.ID, exchange.WebhookFailed, exchange.WebhookExhausted, r.Status, r.Error, now)
	default:
		err = t.One(ctx, putOff, d.ID, now.Add(pause), r.Status, r.Error, now)
	}
	switch {
	case err != nil:
		return err
	case r.Gone && p.Status == exchange.WebhookActive:
		return t.dropWebhook(ctx, p, exchange.WebhookGone)
	case p.FailingSince.IsZero():
		return t.One(ctx, setFailing, p.ID, nullTime(now))
	case p.Status == exchange.WebhookActive && now.Sub(p.FailingSince) >= exchange.WebhookDisableAfter:
		return t.dropWebhook(ctx, p, exchange.WebhookFailing)
	}
	return nil
}

// DeliveryFilter narrows a list of deliveries.
type DeliveryFilter struct {
	EndpointID uuid.UUID
	ObjectID   uuid.UUID
	Status     exchange.WebhookDeliveryStatus
	Type       string
	From, To   time.Time // of the delivery's creation; half open
}

const deliverySource = `webhook_deliveries d JOIN webhook_endpoints p ON p.id = d.endpoint_id JOIN events e ON e.cursor = d.event_cursor`

// WebhookDeliveries pages through the deliveries to the endpoints of a view, newest first. Deliveries to deleted
// endpoints stay until they are pruned.
func (s *Store) WebhookDeliveries(ctx context.Context, v View, f DeliveryFilter, p Page) ([]exchange.WebhookDelivery, int, error) {
	var w where
	w.scope(v, "p.owner_id", "p.vendor_id")
	w.id("d.endpoint_id", f.EndpointID)
	w.id("d.object_id", f.ObjectID)
	w.eq("d.status", string(f.Status))
	w.eq("e.type", f.Type)
	w.between("d.created_at", f.From, f.To)
	return readPage[exchange.WebhookDelivery](ctx, s, "webhook delivery", list{columns: deliveryColumns, from: deliverySource, where: w, order: "d.created_at DESC, d.id DESC"}, p)
}

const (
	lockScopedDelivery = `SELECT ` + deliveryColumns + `, p.status AS endpoint_status, p.deleted_at FROM ` + deliverySource + `
WHERE d.id = $1 AND ($2 OR p.owner_id = $3 OR p.vendor_id = $4) FOR UPDATE OF d FOR SHARE OF p`
	replayDelivery = `UPDATE webhook_deliveries SET status = 'pending', status_detail = '', tries = 0, replays = replays + 1, next_at = $2, announced = false, updated_at = $2 WHERE id = $1`
	readDelivery   = `SELECT ` + deliveryColumns + ` FROM ` + deliverySource + ` WHERE d.id = $1`
)

// ReplayWebhook sends an ended delivery again, under the same webhook-id and with new attempts. CodeStateConflict when
// it has not ended, or its endpoint is not active.
func (s *Store) ReplayWebhook(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.WebhookDelivery, error) {
	var out exchange.WebhookDelivery
	err := s.inTx(ctx, "webhook delivery", func(t unitTx) error {
		all, owner, vendor := v.args()
		var r struct {
			exchange.WebhookDelivery
			EndpointStatus exchange.WebhookStatus
			DeletedAt      sql.NullTime
		}
		if err := t.Get(ctx, &r, lockScopedDelivery, id, all, owner, vendor); err != nil {
			return err
		}
		switch {
		case r.Status == exchange.WebhookPending:
			return exchange.Errorf(exchange.CodeStateConflict, "The delivery is still under way.")
		case r.DeletedAt.Valid || r.EndpointStatus != exchange.WebhookActive:
			return exchange.Errorf(exchange.CodeStateConflict, "The endpoint is not active.")
		}
		if err := t.One(ctx, replayDelivery, id, t.s.now()); err != nil {
			return err
		}
		if err := t.Get(ctx, &out, readDelivery, id); err != nil {
			return err
		}
		return t.audit(ctx, by, "webhook_delivery.replayed", "webhook_delivery", id,
			map[string]any{"status": r.Status, "attempts": r.Attempts}, map[string]any{"status": out.Status, "replays": out.Replays})
	})
	return out, err
}

const (
	pruneDeliveries = `
DELETE FROM webhook_deliveries WHERE id IN (
    SELECT id FROM webhook_deliveries WHERE status <> 'pending' AND updated_at < $1 ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	pruneWebhookKeys = `
DELETE FROM webhook_keys WHERE id IN (SELECT id FROM webhook_keys WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`
)

// PruneWebhooks deletes at most limit deliveries that ended longer than exchange.WebhookDeliveriesKept ago, and
// expired keys. It returns the number of deleted deliveries.
func (s *Store) PruneWebhooks(ctx context.Context, limit int) (int, error) {
	now := s.now()
	n, err := s.write(ctx, "webhook delivery", pruneDeliveries, now.Add(-exchange.WebhookDeliveriesKept), limit)
	if err == nil {
		_, err = s.write(ctx, "webhook key", pruneWebhookKeys, now, limit)
	}
	return int(n), err
}
