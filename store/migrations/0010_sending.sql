-- +goose Up
-- Sending on three networks: sequences of transactions, replacements, fee payers, and gas for wallets that
-- have none.

INSERT INTO state_transitions (machine, from_state, to_state) VALUES
    ('chain_attempt', 'signed', 'replaced'),
    ('chain_attempt', 'broadcast', 'replaced'),
    ('chain_attempt', 'included', 'replaced'),
    ('chain_attempt', 'replaced', 'broadcast'),
    ('chain_attempt', 'replaced', 'included'),
    ('chain_attempt', 'replaced', 'succeeded'),
    ('chain_attempt', 'replaced', 'failed'),
    ('chain_attempt', 'replaced', 'expired');

-- A payment may have its fee paid by a wallet of the house, and an object may need gas more than once.
ALTER TABLE chain_payments
    ADD COLUMN n             int  NOT NULL DEFAULT 1 CHECK (n > 0),
    ADD COLUMN fee_wallet_id uuid REFERENCES wallets (id),
    ADD COLUMN fee_payer     text NOT NULL DEFAULT '',
    ALTER COLUMN hold_id DROP NOT NULL,
    DROP CONSTRAINT chain_payments_purpose_check,
    DROP CONSTRAINT chain_payments_object_key,
    ADD CONSTRAINT chain_payments_purpose CHECK (purpose IN ('order', 'refund', 'transfer', 'gas')),
    ADD CONSTRAINT chain_payments_object_key UNIQUE (purpose, object_id, n),
    ADD CONSTRAINT chain_payments_numbered CHECK (n = 1 OR purpose = 'gas'),
    -- The house's own gas is reserved by nobody; everything else is.
    ADD CONSTRAINT chain_payments_reserved CHECK ((hold_id IS NULL) = (purpose = 'gas')),
    ADD CONSTRAINT chain_payments_fee_payer CHECK ((fee_wallet_id IS NULL) = (fee_payer = '') AND fee_wallet_id <> wallet_id),
    ADD CONSTRAINT chain_payments_wallet_key UNIQUE (id, wallet_id);
-- One top-up at a time for a payment.
CREATE UNIQUE INDEX chain_payments_gas_key ON chain_payments (object_id) WHERE purpose = 'gas' AND status NOT IN ('completed', 'cancelled');
CREATE TRIGGER chain_payments_fee_same BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN ((OLD.n, OLD.fee_wallet_id, OLD.fee_payer) IS DISTINCT FROM (NEW.n, NEW.fee_wallet_id, NEW.fee_payer))
    EXECUTE FUNCTION refuse_change();

-- The sequence of each wallet on a network that numbers transactions. It begins with what the chain
-- counts; after that, this table alone says which number is next.
CREATE TABLE nonce_lanes (
    wallet_id     uuid        PRIMARY KEY REFERENCES wallets (id),
    first         bigint      NOT NULL CHECK (first >= 0),
    next          bigint      NOT NULL,
    foreign_nonce bigint, -- a number that somebody else used: nothing is signed any more
    opened_at     timestamptz NOT NULL,
    CONSTRAINT nonce_lanes_next CHECK (next >= first)
);
-- Which payment took which number.
CREATE TABLE nonces (
    wallet_id  uuid   NOT NULL REFERENCES nonce_lanes (wallet_id),
    nonce      bigint NOT NULL,
    payment_id uuid   NOT NULL,
    CONSTRAINT nonces_pkey PRIMARY KEY (wallet_id, nonce),
    CONSTRAINT nonces_payment_key UNIQUE (payment_id, wallet_id, nonce),
    CONSTRAINT nonces_payment FOREIGN KEY (payment_id, wallet_id) REFERENCES chain_payments (id, wallet_id)
);

-- A number is taken only when it is the next one, and taking it moves the lane: there can be no gap. The
-- service itself can't move a lane.
-- +goose StatementBegin
CREATE FUNCTION take_nonce() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE nonce_lanes SET next = next + 1 WHERE wallet_id = NEW.wallet_id AND next = NEW.nonce AND foreign_nonce IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nonce % of wallet % is not the next one', NEW.nonce, NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER nonces_taken BEFORE INSERT ON nonces FOR EACH ROW EXECUTE FUNCTION take_nonce();
CREATE TRIGGER nonces_same BEFORE UPDATE OR DELETE ON nonces FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER nonces_kept BEFORE TRUNCATE ON nonces FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER nonce_lanes_born BEFORE INSERT ON nonce_lanes FOR EACH ROW
    WHEN (NEW.next <> NEW.first OR NEW.foreign_nonce IS NOT NULL) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER nonce_lanes_same BEFORE UPDATE ON nonce_lanes FOR EACH ROW
    WHEN ((OLD.wallet_id, OLD.first, OLD.opened_at) IS DISTINCT FROM (NEW.wallet_id, NEW.first, NEW.opened_at)
          OR NEW.next NOT IN (OLD.next, OLD.next + 1) OR (OLD.foreign_nonce IS NOT NULL AND NEW.foreign_nonce IS DISTINCT FROM OLD.foreign_nonce))
    EXECUTE FUNCTION refuse_change();
CREATE TRIGGER nonce_lanes_kept BEFORE DELETE ON nonce_lanes FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER nonce_lanes_kept_all BEFORE TRUNCATE ON nonce_lanes FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

ALTER TABLE chain_attempts
    ADD COLUMN lane    uuid,
    ADD COLUMN bid_tip zero_or_more NOT NULL DEFAULT 0,
    ADD COLUMN bid_cap zero_or_more NOT NULL DEFAULT 0,
    ADD CONSTRAINT chain_attempts_lane CHECK ((lane IS NOT NULL) = (network = 'ethereum')),
    ADD CONSTRAINT chain_attempts_nonce CHECK (nonce >= 0 AND (lane IS NOT NULL OR nonce = 0)),
    ADD CONSTRAINT chain_attempts_replaced CHECK (status <> 'replaced' OR lane IS NOT NULL),
    ADD CONSTRAINT chain_attempts_nonce_fk FOREIGN KEY (payment_id, lane, nonce) REFERENCES nonces (payment_id, wallet_id, nonce);
-- Of the transactions with one number the network can take one.
CREATE UNIQUE INDEX chain_attempts_final_key ON chain_attempts (lane, nonce) WHERE status IN ('succeeded', 'failed');
CREATE INDEX chain_attempts_lane_idx ON chain_attempts (lane, nonce) WHERE lane IS NOT NULL;
CREATE TRIGGER chain_attempts_place_same BEFORE UPDATE ON chain_attempts FOR EACH ROW
    WHEN ((OLD.lane, OLD.nonce, OLD.bid_tip, OLD.bid_cap) IS DISTINCT FROM (NEW.lane, NEW.nonce, NEW.bid_tip, NEW.bid_cap))
    EXECUTE FUNCTION refuse_change();

-- A number is taken together with the bytes that use it, or not at all: one without would hold up every
-- later payment of the wallet.
-- +goose StatementBegin
CREATE FUNCTION nonce_has_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_attempts WHERE payment_id = NEW.payment_id AND lane = NEW.wallet_id AND nonce = NEW.nonce;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nonce % of wallet % was taken without a transaction', NEW.nonce, NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER nonces_used AFTER INSERT ON nonces DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION nonce_has_bytes();

-- Two live transactions of one payment could both pay, unless they have the same number.
-- +goose StatementBegin
CREATE FUNCTION one_number_alive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM chain_attempts WHERE payment_id = NEW.payment_id AND id <> NEW.id AND status IN ('signed', 'broadcast', 'included', 'replaced')
        AND (lane IS NULL OR (lane, nonce) IS DISTINCT FROM (NEW.lane, NEW.nonce));
    IF FOUND THEN
        RAISE EXCEPTION 'payment % has a live transaction with another number', NEW.payment_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_attempts_alone AFTER INSERT ON chain_attempts FOR EACH ROW EXECUTE FUNCTION one_number_alive();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT, UPDATE (foreign_nonce) ON nonce_lanes TO kivuko_app;
        GRANT SELECT, INSERT ON nonces TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
