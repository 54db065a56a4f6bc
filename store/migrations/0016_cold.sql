-- +goose Up
-- Payments of cold wallets are signed away from the service. What is handed out is kept, and nothing comes back
-- but that.

-- One unsigned transaction that was handed out. While it is open another one of its payment must not exist: both
-- could be signed and sent.
CREATE TABLE cold_drafts (
    id         uuid         PRIMARY KEY,
    payment_id uuid         NOT NULL REFERENCES chain_payments (id),
    network    network      NOT NULL,
    body       bytea        NOT NULL CHECK (octet_length(body) BETWEEN 1 AND 4096),
    payload    bytea        NOT NULL CHECK (octet_length(payload) BETWEEN 1 AND 4096),
    tx_id      text         NOT NULL DEFAULT '' CHECK (char_length(tx_id) <= 200),
    expires_at timestamptz,
    lane       uuid         REFERENCES wallets (id),
    nonce      bigint       NOT NULL DEFAULT 0 CHECK (nonce >= 0),
    ref_block  text         NOT NULL DEFAULT '' CHECK (char_length(ref_block) <= 200),
    bid_tip    zero_or_more NOT NULL DEFAULT 0,
    bid_cap    zero_or_more NOT NULL DEFAULT 0,
    fee_limit  zero_or_more NOT NULL DEFAULT 0,
    status     text         NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'signed', 'lapsed')),
    closes_at  timestamptz  NOT NULL,
    asked_by   uuid         NOT NULL REFERENCES users (id),
    attempt_id uuid         UNIQUE REFERENCES chain_attempts (id) DEFERRABLE INITIALLY DEFERRED,
    created_at timestamptz  NOT NULL,
    CONSTRAINT cold_drafts_life CHECK (closes_at > created_at AND (expires_at IS NULL OR expires_at < closes_at)),
    CONSTRAINT cold_drafts_signed CHECK ((status = 'signed') = (attempt_id IS NOT NULL))
);
CREATE UNIQUE INDEX cold_drafts_open_key ON cold_drafts (payment_id) WHERE status = 'open';
CREATE INDEX cold_drafts_payment_idx ON cold_drafts (payment_id, created_at DESC);
CREATE TRIGGER cold_drafts_same BEFORE UPDATE ON cold_drafts FOR EACH ROW
    WHEN (OLD.status = 'signed'
          OR (OLD.id, OLD.payment_id, OLD.network, OLD.body, OLD.payload, OLD.tx_id, OLD.expires_at, OLD.lane, OLD.nonce, OLD.ref_block, OLD.bid_tip, OLD.bid_cap,
              OLD.fee_limit, OLD.closes_at, OLD.asked_by, OLD.created_at)
          IS DISTINCT FROM
             (NEW.id, NEW.payment_id, NEW.network, NEW.body, NEW.payload, NEW.tx_id, NEW.expires_at, NEW.lane, NEW.nonce, NEW.ref_block, NEW.bid_tip, NEW.bid_cap,
              NEW.fee_limit, NEW.closes_at, NEW.asked_by, NEW.created_at)
          OR NEW.status = 'open')
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER cold_drafts_kept BEFORE DELETE ON cold_drafts FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER cold_drafts_all_kept BEFORE TRUNCATE ON cold_drafts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- A payment of a cold wallet has no signed bytes but those that came back for what was handed out.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION refuse_cold_signature() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_payments p JOIN wallets w ON w.id = p.wallet_id WHERE p.id = NEW.payment_id AND w.type = 'cold'
        AND NOT EXISTS (SELECT FROM cold_drafts d WHERE d.payment_id = p.id AND d.attempt_id = NEW.id AND d.tx_id IN ('', NEW.tx_id)
            AND (d.lane, d.nonce) IS NOT DISTINCT FROM (NEW.lane, NEW.nonce));
    IF FOUND THEN
        RAISE EXCEPTION 'payment % is of a cold wallet, whose key signs nothing here', NEW.payment_id USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM chain_payments p JOIN wallets w ON w.id = p.fee_wallet_id WHERE p.id = NEW.payment_id AND w.type = 'cold';
    IF FOUND THEN
        RAISE EXCEPTION 'the fee of payment % is of a cold wallet, whose key signs nothing here', NEW.payment_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd

-- What is handed out may come back and pay, so its payment is not given up before that is over.
-- +goose StatementBegin
CREATE FUNCTION refuse_giving_up_open_draft() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM cold_drafts WHERE payment_id = NEW.id AND status = 'open';
    IF FOUND THEN
        RAISE EXCEPTION 'a transaction of payment % was handed out and may come back signed', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_payments_no_open_draft BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND NEW.status = 'cancelled') EXECUTE FUNCTION refuse_giving_up_open_draft();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT, UPDATE (status, attempt_id) ON cold_drafts TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
