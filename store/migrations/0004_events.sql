-- +goose Up
-- The logs, events and audit, and the webhook endpoints that events are sent to.

-- Positions in the logs below. A position is the number of the writing transaction, shifted, plus a count within the
-- transaction. So everything below the oldest running transaction is complete: a reader that stops at log_horizon()
-- never skips a row that commits late. A plain sequence can't do that, because its numbers are assigned in another
-- order than transactions end. base is raised when the database was restored into a server with lower transaction
-- numbers (see Migrate).
CREATE TABLE log_clock (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    base     bigint  NOT NULL CHECK (base >= 0)
);
INSERT INTO log_clock (base) VALUES (0);

-- The event log.
CREATE TABLE events (
    cursor      bigint      PRIMARY KEY,
    object_type text        NOT NULL,
    object_id   uuid        NOT NULL,
    sequence    bigint      NOT NULL CHECK (sequence > 0),
    type        text        NOT NULL,
    owner_id    uuid,
    vendor_id   uuid,
    payload     jsonb       NOT NULL,
    at          timestamptz NOT NULL,
    CONSTRAINT events_sequence_key UNIQUE (object_type, object_id, sequence)
);
CREATE INDEX events_owner_idx ON events (owner_id, cursor) WHERE owner_id IS NOT NULL;
CREATE INDEX events_vendor_idx ON events (vendor_id, cursor) WHERE vendor_id IS NOT NULL;
CALL append_only('events');

-- The audit log. Rows are simply appended; audit_seals chains them later, because a chain inside the writing
-- transaction would serialise all writers.
CREATE TABLE audit_log (
    id          bigint      PRIMARY KEY,
    at          timestamptz NOT NULL,
    actor       text        NOT NULL,
    role        text        NOT NULL,
    ip          text        NOT NULL,
    request_id  text        NOT NULL,
    action      text        NOT NULL,
    object_type text        NOT NULL,
    object_id   uuid        NOT NULL,
    before      jsonb,
    after       jsonb
);
CREATE INDEX audit_log_object_idx ON audit_log (object_type, object_id, id);
CREATE INDEX audit_log_actor_idx ON audit_log (actor, id);
CALL append_only('audit_log');

-- hash = HMAC-SHA256 of the previous hash and of the row, with a key that is not in the database: who has only the database can
-- change rows, but can't compute the chain anew. n counts from 1 without a gap.
CREATE TABLE audit_seals (
    n         bigint      PRIMARY KEY CHECK (n > 0),
    audit_id  bigint      NOT NULL UNIQUE REFERENCES audit_log (id),
    hash      bytea       NOT NULL CHECK (octet_length(hash) = 32),
    key_id    text        NOT NULL CHECK (char_length(key_id) BETWEEN 1 AND 40),
    sealed_at timestamptz NOT NULL
);
CALL append_only('audit_seals');

-- An endpoint of a customer, of a merchant, or (both empty) of the house.
CREATE TABLE webhook_endpoints (
    id            uuid        PRIMARY KEY,
    owner_id      uuid        REFERENCES users (id),
    vendor_id     uuid        REFERENCES users (id),
    created_by    uuid        NOT NULL REFERENCES users (id),
    url           text        NOT NULL CHECK (char_length(url) BETWEEN 1 AND 500),
    description   text        NOT NULL CHECK (char_length(description) <= 200),
    event_types   text[]      NOT NULL CHECK (cardinality(event_types) <= 50),
    status        text        NOT NULL,
    status_detail text        NOT NULL CHECK (status_detail IN ('', 'by_user', 'gone', 'failing', 'owner_inactive')),
    from_cursor   bigint      NOT NULL,
    failing_since timestamptz,
    disabled_at   timestamptz,
    deleted_at    timestamptz,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    version       bigint      NOT NULL CHECK (version > 0),
    CONSTRAINT webhook_endpoints_side CHECK (owner_id IS NULL OR vendor_id IS NULL),
    CONSTRAINT webhook_endpoints_disabled CHECK ((status = 'disabled') = (disabled_at IS NOT NULL) AND (status = 'disabled') = (status_detail <> '')),
    CONSTRAINT webhook_endpoints_deleted CHECK (deleted_at IS NULL OR status = 'disabled')
);
CREATE UNIQUE INDEX webhook_endpoints_url_key ON webhook_endpoints (owner_id, vendor_id, url) NULLS NOT DISTINCT WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoints_vendor_idx ON webhook_endpoints (vendor_id, id) WHERE deleted_at IS NULL;
CALL moves_by('webhook_endpoints', 'webhook_endpoint');

-- Sealed secrets. The newest has no end; earlier ones end after their overlap.
CREATE TABLE webhook_keys (
    id          uuid        PRIMARY KEY,
    endpoint_id uuid        NOT NULL REFERENCES webhook_endpoints (id),
    sealed      bytea       NOT NULL CHECK (octet_length(sealed) BETWEEN 24 AND 1024),
    master_key  text        NOT NULL CHECK (master_key <> ''),
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz
);
CREATE UNIQUE INDEX webhook_keys_newest_key ON webhook_keys (endpoint_id) WHERE expires_at IS NULL;
CREATE INDEX webhook_keys_endpoint_idx ON webhook_keys (endpoint_id, created_at);

-- An event goes to an endpoint once, however often the relay reads it.
CREATE TABLE webhook_deliveries (
    id            uuid        PRIMARY KEY,
    endpoint_id   uuid        NOT NULL REFERENCES webhook_endpoints (id),
    event_cursor  bigint      NOT NULL REFERENCES events (cursor),
    object_type   text        NOT NULL,
    object_id     uuid        NOT NULL,
    status        text        NOT NULL,
    status_detail text        NOT NULL CHECK (status_detail IN ('', 'exhausted', 'too_large', 'gone', 'endpoint_disabled', 'endpoint_deleted')),
    attempts      int         NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    tries         int         NOT NULL DEFAULT 0 CHECK (tries BETWEEN 0 AND attempts),
    replays       int         NOT NULL DEFAULT 0 CHECK (replays >= 0),
    next_at       timestamptz NOT NULL,
    claimed_until timestamptz,
    announced     boolean     NOT NULL DEFAULT false,
    last_at       timestamptz,
    last_status   int         NOT NULL DEFAULT 0,
    last_error    text        NOT NULL DEFAULT '' CHECK (char_length(last_error) <= 40),
    delivered_at  timestamptz,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    CONSTRAINT webhook_deliveries_event_key UNIQUE (endpoint_id, event_cursor),
    CONSTRAINT webhook_deliveries_delivered CHECK (status <> 'delivered' OR delivered_at IS NOT NULL),
    CONSTRAINT webhook_deliveries_failed CHECK ((status = 'failed') = (status_detail <> '')),
    CONSTRAINT webhook_deliveries_claim CHECK (claimed_until IS NULL OR status = 'pending')
);
CREATE INDEX webhook_deliveries_due_idx ON webhook_deliveries (endpoint_id, next_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_object_idx ON webhook_deliveries (endpoint_id, object_type, object_id, event_cursor) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_new_idx ON webhook_deliveries (created_at) WHERE status = 'pending' AND NOT announced;
CREATE INDEX webhook_deliveries_overdue_idx ON webhook_deliveries (next_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_list_idx ON webhook_deliveries (endpoint_id, created_at DESC, id DESC);
CREATE INDEX webhook_deliveries_ended_idx ON webhook_deliveries (updated_at) WHERE status <> 'pending';
CALL moves_by('webhook_deliveries', 'webhook_delivery');

-- How far the relay has read the event log. It moves with the deliveries, in one statement.
CREATE TABLE webhook_relay (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    cursor   bigint  NOT NULL CHECK (cursor >= 0)
);
INSERT INTO webhook_relay (cursor) VALUES (0);
CREATE TRIGGER webhook_relay_forward BEFORE UPDATE ON webhook_relay FOR EACH ROW EXECUTE FUNCTION keep_webhook_relay();

-- The flows that wait for an operator, one row each. A flow writes its row when it parks and deletes it when it
-- continues. Temporal's search attributes contain the same and are authoritative: a scheduled flow compares the two.
-- No row moves money or proves anything.
CREATE TABLE parked_flows (
    workflow_id text        PRIMARY KEY CHECK (char_length(workflow_id) BETWEEN 1 AND 200),
    run_id      text        NOT NULL CHECK (char_length(run_id) BETWEEN 1 AND 100),
    flow_type   text        NOT NULL CHECK (char_length(flow_type) BETWEEN 1 AND 100),
    object_type text        NOT NULL DEFAULT '' CHECK (char_length(object_type) <= 40),
    object_id   uuid,
    reason      text        NOT NULL CHECK (reason ~ '^[a-z0-9_-]{1,60}$'),
    network     text        NOT NULL DEFAULT '',
    since       timestamptz NOT NULL,
    CONSTRAINT parked_flows_object CHECK ((object_type = '') = (object_id IS NULL))
);
CREATE INDEX parked_flows_since_idx ON parked_flows (since, workflow_id);
CREATE INDEX parked_flows_reason_idx ON parked_flows (reason, since, workflow_id);
CREATE INDEX parked_flows_object_idx ON parked_flows (object_id) WHERE object_id IS NOT NULL;
