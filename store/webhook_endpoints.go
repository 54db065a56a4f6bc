package store

import (
	"context"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

const webhookColumns = `p.id, p.owner_id, p.vendor_id, p.created_by, p.url, p.description, p.event_types, NULL AS keys, p.status, p.status_detail, p.failing_since,
	p.disabled_at, p.created_at, p.updated_at, p.version`

// webhookSnapshot shows only the host of the address: paths and parameters often contain secrets, and events reach
// other endpoints.
func webhookSnapshot(e exchange.WebhookEndpoint) map[string]any {
	host := ""
	if u, err := url.Parse(e.URL); err == nil {
		host = u.Host
	}
	return map[string]any{
		"id": e.ID, "host": host, "event_types": e.EventTypes, "status": e.Status, "status_detail": e.StatusDetail, "version": e.Version,
	}
}

func webhookRecord(name string, by exchange.Principal, before *exchange.WebhookEndpoint, after exchange.WebhookEndpoint) auditEvent {
	f := auditEvent{by: by, object: "webhook_endpoint", id: after.ID, name: "webhook_endpoint." + name, owner: after.OwnerID, vendor: after.VendorID, after: webhookSnapshot(after)}
	if before != nil {
		f.before = webhookSnapshot(*before)
	}
	return f
}

// sideOf is the party whose endpoints a view creates: a customer, a merchant, or the house.
func sideOf(v View) (owner, vendor uuid.NullUUID, err error) {
	all, owner, vendor := v.args()
	if !all && !owner.Valid && !vendor.Valid {
		return owner, vendor, exchange.Errorf(exchange.CodeForbidden, "Your role can't have webhook endpoints.")
	}
	return owner, vendor, nil
}

const (
	sameSide = ` owner_id IS NOT DISTINCT FROM $1 AND vendor_id IS NOT DISTINCT FROM $2 AND deleted_at IS NULL`
	// Serialises the creation of one party's endpoints.
	lockSide      = `SELECT pg_advisory_xact_lock(hashtextextended('webhooks ' || coalesce($1::uuid, $2::uuid)::text, 0))`
	lockHouseSide = `SELECT pg_advisory_xact_lock(hashtextextended('webhooks', 0))`
	countWebhooks = `SELECT count(*) FROM webhook_endpoints WHERE` + sameSide
	insertWebhook = `INSERT INTO webhook_endpoints AS p (id, owner_id, vendor_id, created_by, url, description, event_types, status, status_detail, from_cursor, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'active', '', log_position(), $8, $8, 1) RETURNING ` + webhookColumns
	insertWebhookKey = `INSERT INTO webhook_keys (id, endpoint_id, sealed, master_key, created_at) VALUES ($1, $2, $3, $4, $5)`
	readWebhook      = `SELECT ` + webhookColumns + ` FROM webhook_endpoints p WHERE p.id = $1 AND p.deleted_at IS NULL AND ($2 OR p.owner_id = $3 OR p.vendor_id = $4)`
	lockWebhook      = readWebhook + ` FOR NO KEY UPDATE`
	readSigners      = `SELECT id, endpoint_id, sealed, master_key, created_at, expires_at FROM webhook_keys WHERE endpoint_id = $1 AND (expires_at IS NULL OR expires_at > $2) ORDER BY created_at DESC, id DESC`
	endKeys          = `UPDATE webhook_keys SET expires_at = CASE WHEN expires_at IS NULL THEN $3 ELSE least(expires_at, $2) END WHERE endpoint_id = $1`
	deleteKeys       = `DELETE FROM webhook_keys WHERE endpoint_id = $1`
	deleteOldKeys    = `DELETE FROM webhook_keys WHERE endpoint_id = $1 AND expires_at <= $2`
	updateWebhook    = `UPDATE webhook_endpoints p SET url = $2, description = $3, event_types = $4, status = $5, status_detail = $6, failing_since = $7, disabled_at = $8,
	from_cursor = CASE WHEN p.status = 'disabled' AND $5 = 'active' THEN log_position() ELSE p.from_cursor END, updated_at = $9, version = version + 1
WHERE p.id = $1 RETURNING ` + webhookColumns
	deleteWebhook  = `UPDATE webhook_endpoints SET deleted_at = $2 WHERE id = $1`
	failDeliveries = `UPDATE webhook_deliveries SET status = 'failed', status_detail = $2, claimed_until = NULL, updated_at = $3 WHERE endpoint_id = $1 AND status = 'pending'`
)

func (t unitTx) webhookKeys(ctx context.Context, endpoint uuid.UUID) ([]exchange.WebhookKey, error) {
	var rows []exchange.WebhookKey
	if err := t.All(ctx, &rows, readSigners, endpoint, t.s.now()); err != nil {
		return nil, err
	}
	return rows, nil
}

// CreateWebhook stores an endpoint with its first key, for the party of the view. CodeLimitReached when the party has
// the maximum of endpoints, CodeConflict when it has one with the address.
func (s *Store) CreateWebhook(ctx context.Context, v View, e exchange.WebhookEndpoint, k exchange.WebhookKey, by exchange.Principal) (exchange.WebhookEndpoint, error) {
	owner, vendor, err := sideOf(v)
	if err != nil {
		return exchange.WebhookEndpoint{}, err
	}
	var out exchange.WebhookEndpoint
	err = s.inTx(ctx, "webhook endpoint", func(t unitTx) error {
		if err := t.lockWebhookSide(ctx, owner, vendor); err != nil {
			return err
		}
		var n int
		if err := t.Get(ctx, &n, countWebhooks, owner, vendor); err != nil {
			return err
		}
		if n >= exchange.MaxWebhookEndpoints {
			return exchange.Errorf(exchange.CodeLimitReached, "At most %d webhook endpoints are allowed.", exchange.MaxWebhookEndpoints)
		}
		now := t.s.now()
		var r exchange.WebhookEndpoint
		err := t.Get(ctx, &r, insertWebhook, e.ID, owner, vendor, by.UserID, e.URL, e.Description, pq.StringArray(notNil(e.EventTypes)), now)
		if err != nil {
			return err
		}
		if err := t.One(ctx, insertWebhookKey, k.ID, e.ID, k.Sealed, k.MasterKey, now); err != nil {
			return err
		}
		out = r
		if out.Keys, err = t.webhookKeys(ctx, e.ID); err != nil {
			return err
		}
		return t.record(ctx, webhookRecord("created", by, nil, out))
	})
	return out, err
}

// The columns of a returning clause carry no alias of a table.
func notNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func (t unitTx) lockWebhookSide(ctx context.Context, owner, vendor uuid.NullUUID) (err error) {
	if owner.Valid || vendor.Valid {
		_, err = t.Exec(ctx, lockSide, owner, vendor)
	} else {
		_, err = t.Exec(ctx, lockHouseSide)
	}
	return err
}

// WebhookPatch changes an endpoint; nil leaves a field as it is.
type WebhookPatch struct {
	URL         *string
	Description *string
	EventTypes  *[]string
	Active      *bool
	IfVersions  []int64 // the expected versions; none is any
}

// changeWebhook locks an endpoint of a view, changes it and records the change under a name.
func (s *Store) changeWebhook(ctx context.Context, v View, id uuid.UUID, name string, by exchange.Principal, change func(unitTx, *exchange.WebhookEndpoint) error) (exchange.WebhookEndpoint, error) {
	var out exchange.WebhookEndpoint
	err := s.inTx(ctx, "webhook endpoint", func(t unitTx) error {
		all, owner, vendor := v.args()
		var before exchange.WebhookEndpoint
		if err := t.Get(ctx, &before, lockWebhook, id, all, owner, vendor); err != nil {
			return err
		}
		after := before
		if err := change(t, &after); err != nil {
			return err
		}
		var err error
		if out, err = t.saveWebhook(ctx, after); err != nil {
			return err
		}
		if out.Keys, err = t.webhookKeys(ctx, id); err != nil {
			return err
		}
		return t.record(ctx, webhookRecord(name, by, &before, out))
	})
	return out, err
}

func (t unitTx) saveWebhook(ctx context.Context, e exchange.WebhookEndpoint) (exchange.WebhookEndpoint, error) {
	var r exchange.WebhookEndpoint
	err := t.Get(ctx, &r, updateWebhook, e.ID, e.URL, e.Description, pq.StringArray(notNil(e.EventTypes)), e.Status, e.StatusDetail, nullTime(e.FailingSince), nullTime(e.DisabledAt), t.s.now())
	if err != nil {
		return e, err
	}
	return r, nil
}

// foreign reports whether staff of the house acts on another party's endpoint.
func foreign(e exchange.WebhookEndpoint, v View) bool {
	all, _, _ := v.args()
	return all && (e.OwnerID != uuid.Nil || e.VendorID != uuid.Nil)
}

// PatchWebhook changes an endpoint of the view. CodeStateConflict when the house would redirect another party's
// events. A disabled endpoint misses all events until it is active again.
func (s *Store) PatchWebhook(ctx context.Context, v View, id uuid.UUID, p WebhookPatch, by exchange.Principal) (exchange.WebhookEndpoint, error) {
	return s.changeWebhook(ctx, v, id, "updated", by, func(t unitTx, e *exchange.WebhookEndpoint) error {
		if err := expect(p.IfVersions, e.Version); err != nil {
			return err
		}
		if p.URL != nil && *p.URL != e.URL {
			if foreign(*e, v) {
				return exchange.Errorf(exchange.CodeStateConflict, "Only the owner of an endpoint can change its address.")
			}
			e.URL = *p.URL
		}
		if p.Description != nil {
			e.Description = *p.Description
		}
		if p.EventTypes != nil {
			e.EventTypes = *p.EventTypes
		}
		switch {
		case p.Active == nil:
		case *p.Active && e.Status == exchange.WebhookDisabled:
			e.Status, e.StatusDetail, e.DisabledAt, e.FailingSince = exchange.WebhookActive, "", time.Time{}, time.Time{}
		case !*p.Active && e.Status == exchange.WebhookActive:
			return t.disableWebhook(ctx, e, exchange.WebhookByUser)
		}
		return nil
	})
}

// disableWebhook sets an endpoint to disabled and ends its waiting deliveries; the caller saves it.
func (t unitTx) disableWebhook(ctx context.Context, e *exchange.WebhookEndpoint, why string) error {
	e.Status, e.StatusDetail, e.DisabledAt = exchange.WebhookDisabled, why, t.s.now()
	_, err := t.Exec(ctx, failDeliveries, e.ID, exchange.WebhookEndpointDisabled, t.s.now())
	return err
}

// DeleteWebhook deletes an endpoint. Its secrets are gone at once; its deliveries stay readable until they are pruned.
func (s *Store) DeleteWebhook(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) error {
	_, err := s.changeWebhook(ctx, v, id, "deleted", by, func(t unitTx, e *exchange.WebhookEndpoint) error {
		now := t.s.now()
		if _, err := t.Exec(ctx, failDeliveries, id, exchange.WebhookEndpointDeleted, now); err != nil {
			return err
		}
		if e.Status == exchange.WebhookActive {
			e.Status, e.StatusDetail, e.DisabledAt = exchange.WebhookDisabled, exchange.WebhookByUser, now
			if _, err := t.saveWebhook(ctx, *e); err != nil {
				return err
			}
		}
		if _, err := t.Exec(ctx, deleteKeys, id); err != nil {
			return err
		}
		return t.One(ctx, deleteWebhook, id, now)
	})
	return err
}

// RotateWebhookKey gives an endpoint a new key. The previous one signs beside it for exchange.WebhookOverlap; older
// ones end at once. CodeStateConflict when staff of the house would rotate another party's key, because they would see
// the secret.
func (s *Store) RotateWebhookKey(ctx context.Context, v View, id uuid.UUID, k exchange.WebhookKey, by exchange.Principal) (exchange.WebhookEndpoint, error) {
	return s.changeWebhook(ctx, v, id, "secret_rotated", by, func(t unitTx, e *exchange.WebhookEndpoint) error {
		if foreign(*e, v) {
			return exchange.Errorf(exchange.CodeStateConflict, "Only the owner of an endpoint can rotate its secret.")
		}
		now := t.s.now()
		if _, err := t.Exec(ctx, endKeys, id, now, now.Add(exchange.WebhookOverlap)); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, deleteOldKeys, id, now); err != nil {
			return err
		}
		return t.One(ctx, insertWebhookKey, k.ID, id, k.Sealed, k.MasterKey, now)
	})
}

// TestWebhook appends an event for this endpoint alone. CodeStateConflict when it is disabled.
func (s *Store) TestWebhook(ctx context.Context, v View, id uuid.UUID, by exchange.Principal) (exchange.WebhookEndpoint, error) {
	return s.changeWebhook(ctx, v, id, "test", by, func(_ unitTx, e *exchange.WebhookEndpoint) error {
		if e.Status != exchange.WebhookActive {
			return exchange.Errorf(exchange.CodeStateConflict, "The endpoint is disabled.")
		}
		return nil
	})
}

// Webhooks pages through the endpoints of a view, newest first, with their keys but not the secrets.
func (s *Store) Webhooks(ctx context.Context, v View, status exchange.WebhookStatus, p Page) ([]exchange.WebhookEndpoint, int, error) {
	var w where
	w.add(`p.deleted_at IS NULL`)
	w.scope(v, "p.owner_id", "p.vendor_id")
	w.eq("p.status", string(status))
	all, total, err := readPage[exchange.WebhookEndpoint](ctx, s, "webhook endpoint", list{columns: webhookColumns, from: "webhook_endpoints p", where: w, order: "p.created_at DESC, p.id DESC"}, p)
	if err != nil {
		return nil, 0, err
	}
	for i := range all {
		if all[i].Keys, err = s.shownKeys(ctx, all[i].ID); err != nil {
			return nil, 0, err
		}
	}
	return all, total, nil
}

// Webhook reads an endpoint of a view, with its keys but not the secrets.
func (s *Store) Webhook(ctx context.Context, v View, id uuid.UUID) (exchange.WebhookEndpoint, error) {
	all, owner, vendor := v.args()
	var e exchange.WebhookEndpoint
	err := s.db.Get(ctx, &e, readWebhook, id, all, owner, vendor)
	if err != nil {
		return exchange.WebhookEndpoint{}, translate(err, "webhook endpoint")
	}
	e.Keys, err = s.shownKeys(ctx, id)
	return e, err
}

// shownKeys reads the keys of an endpoint without their secrets.
func (s *Store) shownKeys(ctx context.Context, endpoint uuid.UUID) ([]exchange.WebhookKey, error) {
	var keys []exchange.WebhookKey
	if err := s.db.All(ctx, &keys, readSigners, endpoint, s.now()); err != nil {
		return nil, translate(err, "webhook endpoint")
	}
	for i := range keys {
		keys[i].Sealed = nil
	}
	return keys, nil
}
