-- +goose Up
-- What people asked for. The API writes an intent when it knows the caller, before anything starts. A flow gets only its
-- id, and what the flow opens must be what the intent says.

-- intent_flow is the id of the only flow that may use an intent.
CREATE FUNCTION intent_flow(kind text, object_id uuid) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE split_part(kind, '.', 1) WHEN 'transfer' THEN 'transfer:' WHEN 'purchase' THEN 'on-ramp:' WHEN 'sale' THEN 'off-ramp:'
        WHEN 'wallet' THEN 'wallet:' END || object_id
$$;

-- The statement is the canonical form of the intent, and its digest is what a signature signs. The other columns repeat
-- the statement where rows are found or compared by them.
CREATE TABLE intents (
    id         uuid        PRIMARY KEY,
    kind       text        NOT NULL CHECK (kind IN ('transfer.open', 'transfer.cancel', 'transfer.payload', 'transfer.import', 'purchase.open',
                                                    'purchase.cancel', 'purchase.prompt', 'sale.open', 'sale.cancel', 'sale.accept', 'sale.return', 'wallet.create')),
    object_id  uuid        NOT NULL,
    user_id    uuid        NOT NULL REFERENCES users (id),
    statement  bytea       NOT NULL CHECK (octet_length(statement) <= 32768),
    digest     bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at    timestamptz,
    used_by    text,
    refused_at timestamptz,
    refusal    text        CHECK (char_length(refusal) BETWEEN 1 AND 80),
    CONSTRAINT intents_digest CHECK (digest = sha256(convert_to('kivuko intent v1', 'UTF8') || '\x00'::bytea || statement)),
    CONSTRAINT intents_life CHECK (expires_at > created_at AND expires_at <= created_at + interval '24 hours'),
    CONSTRAINT intents_used CHECK ((used_at IS NULL) = (used_by IS NULL) AND used_by = intent_flow(kind, object_id) AND used_at <= expires_at),
    CONSTRAINT intents_refused CHECK ((refused_at IS NULL) = (refusal IS NULL)),
    CONSTRAINT intents_once CHECK (num_nonnulls(used_at, refused_at) <= 1)
);
CREATE INDEX intents_object_idx ON intents (object_id, created_at);
CREATE INDEX intents_user_idx ON intents (user_id, created_at);
CREATE INDEX intents_unused_idx ON intents (expires_at) WHERE used_at IS NULL;
-- One that was used is the evidence of what it opened. One that was not, and no longer can be, holds people's data for nothing.
CALL refuse_when('intents', '_kept', 'DELETE', 'OLD.used_at IS NOT NULL OR OLD.expires_at > now()');
CALL refuse_when('intents', '_kept_all', 'TRUNCATE');
CALL same_columns('intents', 'id, kind, object_id, user_id, statement, digest, created_at, expires_at');
CALL set_once('intents', 'used_at, used_by, refused_at, refusal');
CREATE TRIGGER intents_true BEFORE INSERT ON intents FOR EACH ROW EXECUTE FUNCTION check_intent();

-- What was opened names its intent, and is what the intent says. These guards come after all others.
ALTER TABLE orders ADD COLUMN intent_id uuid NOT NULL REFERENCES intents (id), ADD CONSTRAINT orders_intent_key UNIQUE (intent_id);
CALL refuse_when('orders', '_same_intent', 'UPDATE', 'OLD.intent_id <> NEW.intent_id');
CREATE TRIGGER orders_wanted AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION check_asked_order();

ALTER TABLE wallets ADD COLUMN intent_id uuid REFERENCES intents (id), ADD CONSTRAINT wallets_intent_key UNIQUE (intent_id);
CALL refuse_when('wallets', '_same_intent', 'UPDATE', 'OLD.intent_id IS DISTINCT FROM NEW.intent_id');
CREATE TRIGGER wallets_wanted AFTER INSERT ON wallets FOR EACH ROW EXECUTE FUNCTION check_asked_wallet();

ALTER TABLE transfers ADD COLUMN intent_id uuid NOT NULL REFERENCES intents (id), ADD CONSTRAINT transfers_intent_key UNIQUE (intent_id);
CALL refuse_when('transfers', '_same_intent', 'UPDATE', 'OLD.intent_id <> NEW.intent_id');
CREATE TRIGGER transfers_wanted AFTER INSERT ON transfers FOR EACH ROW EXECUTE FUNCTION check_asked_transfer();
