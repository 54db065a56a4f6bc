-- +goose Up
-- Events that are sent to addresses which their owners name. A delivery is a duty with a row; what it says is the
-- event itself, which never changes.

-- An endpoint of a customer, of a merchant, or (both empty) of the house.
CREATE TABLE webhook_endpoints (
    id            uuid        PRIMARY KEY,
    owner_id      uuid        REFERENCES users (id),
    vendor_id     uuid        REFERENCES users (id),
    created_by    uuid        NOT NULL REFERENCES users (id),
    url           text        NOT NULL CHECK (char_length(url) BETWEEN 1 AND 500),
    description   text        NOT NULL CHECK (char_length(description) <= 200),
    event_types   text[]      NOT NULL CHECK (cardinality(event_types) <= 50),
    status        text        NOT NULL CHECK (status IN ('active', 'disabled')),
    status_detail text        NOT NULL CHECK (status_detail IN ('', 'by_person', 'gone', 'failing', 'owner_inactive')),
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

-- Secrets, sealed. One signs without end; those before it end when their overlap is over.
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
    status        text        NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
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

-- How far the event log was handed to the endpoints. It moves with the deliveries, in one statement.
CREATE TABLE webhook_relay (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    cursor   bigint  NOT NULL CHECK (cursor >= 0)
);
INSERT INTO webhook_relay (cursor) VALUES (0);

-- +goose StatementBegin
CREATE FUNCTION keep_webhook_relay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.cursor < OLD.cursor THEN
        RAISE EXCEPTION 'the relay of events does not go back' USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER webhook_relay_forward BEFORE UPDATE ON webhook_relay FOR EACH ROW EXECUTE FUNCTION keep_webhook_relay();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT, UPDATE ON webhook_endpoints TO kivuko_app;
        GRANT SELECT, INSERT, UPDATE (expires_at), DELETE ON webhook_keys TO kivuko_app;
        GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_deliveries TO kivuko_app;
        GRANT SELECT, UPDATE (cursor) ON webhook_relay TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
