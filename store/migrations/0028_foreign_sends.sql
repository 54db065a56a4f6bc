-- +goose Up
-- What left a wallet and is not accounted for withholds signatures until a person has settled it, and a database
-- that may be older than the chain signs nothing until its watch has read the chain again.

ALTER TABLE deposit_quarantine
    ADD COLUMN wallet_id  uuid   REFERENCES wallets (id),        -- that the money left, by no transaction of ours unless payment_id is set
    ADD COLUMN to_address text   NOT NULL DEFAULT '' CHECK (char_length(to_address) <= 128),
    ADD COLUMN asset      asset,
    ADD COLUMN amount     zero_or_more,
    ADD COLUMN payment_id uuid   REFERENCES chain_payments (id), -- whose transaction moved what it should not have
    DROP CONSTRAINT deposit_quarantine_reason_check,
    ADD CONSTRAINT deposit_quarantine_reason_check
        CHECK (reason IN ('unreadable', 'invalid', 'refused', 'contradicts', 'not_our_send', 'unexpected_send'));

UPDATE deposit_quarantine q SET wallet_id = d.from_wallet_id, to_address = d.to_address, asset = d.asset, amount = d.amount
FROM chain_deposits d WHERE q.reason = 'not_our_send' AND (d.network, d.tx_id, d.event_index) = (q.network, q.tx_id, q.event_index);

-- Transactions that were carried out and did not pay what they should have, before they got a row here.
INSERT INTO deposit_quarantine (id, network, block, tx_id, event_index, reason, detail, payload, created_at, wallet_id, to_address, asset, amount, payment_id)
SELECT gen_random_uuid(), a.network, a.block, a.tx_id, 0, 'unexpected_send', 'it was carried out and did not make the payment', '{}', a.updated_at,
    p.wallet_id, p.to_address, p.asset, p.amount, p.id
FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id WHERE a.status = 'failed' AND a.last_code = 'SUCCESS';

ALTER TABLE deposit_quarantine
    ADD CONSTRAINT deposit_quarantine_foreign CHECK (reason <> 'not_our_send' OR (wallet_id IS NOT NULL AND asset IS NOT NULL AND amount IS NOT NULL)) NOT VALID,
    ADD CONSTRAINT deposit_quarantine_unexpected CHECK ((reason = 'unexpected_send') = (payment_id IS NOT NULL));
CREATE INDEX deposit_quarantine_wallet_idx ON deposit_quarantine (wallet_id) WHERE settled_at IS NULL AND wallet_id IS NOT NULL;
CREATE INDEX deposit_quarantine_payment_idx ON deposit_quarantine (payment_id) WHERE settled_at IS NULL AND payment_id IS NOT NULL;
CREATE TRIGGER deposit_quarantine_ends_same BEFORE UPDATE ON deposit_quarantine FOR EACH ROW
    WHEN ((OLD.wallet_id, OLD.to_address, OLD.asset, OLD.amount, OLD.payment_id) IS DISTINCT FROM (NEW.wallet_id, NEW.to_address, NEW.asset, NEW.amount, NEW.payment_id))
    EXECUTE FUNCTION refuse_change();

-- database_identity changes when the database is another one than before: restored from a dump or a base backup,
-- or taken over by a standby, which may lack the last transactions.
-- +goose StatementBegin
CREATE FUNCTION database_identity() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    cluster  text := '';
    timeline text := '';
BEGIN
    BEGIN
        SELECT system_identifier::text INTO cluster FROM pg_control_system();
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
        cluster := 'unknown'; -- some hosts of databases do not tell
    END;
    BEGIN
        timeline := substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8);
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function OR object_not_in_prerequisite_state THEN
        timeline := 'unknown';
    END;
    RETURN cluster || ':' || timeline || ':' || (SELECT oid FROM pg_database WHERE datname = current_database());
END $$;
-- +goose StatementEnd

-- How the watch over each network is getting on. After it was away, or met another database, it has resumed:
-- transactions that this database does not know of may still reach the chain, until the final chain has outlived
-- them. passed is the final block at which that was so.
CREATE TABLE deposit_looks (
    network        network     PRIMARY KEY,
    identity       text        NOT NULL,
    alive_at       timestamptz NOT NULL,
    looked_at      timestamptz,
    final_head     bigint      NOT NULL DEFAULT 0 CHECK (final_head >= 0),
    resumed_at     timestamptz,
    resumed_height bigint,
    passed         bigint      CHECK (passed >= 0)
);

-- payment_hold says in a word why nothing may be signed for a payment until a person has decided; empty when
-- nothing speaks against it.
-- +goose StatementBegin
CREATE FUNCTION payment_hold(payment uuid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN EXISTS (SELECT FROM deposit_quarantine q WHERE q.payment_id = p.id AND q.settled_at IS NULL) THEN 'unexpected_send'
        WHEN EXISTS (SELECT FROM deposit_quarantine q WHERE q.wallet_id = p.wallet_id AND q.settled_at IS NULL AND q.payment_id IS NULL
            AND q.network = p.network AND q.to_address = p.to_address AND q.asset = p.asset AND q.amount = p.amount) THEN 'sent_before'
        WHEN EXISTS (SELECT FROM deposit_quarantine q WHERE q.wallet_id IN (p.wallet_id, p.fee_wallet_id) AND q.settled_at IS NULL
            AND q.payment_id IS NULL) THEN 'foreign_send'
        ELSE '' END
    FROM chain_payments p WHERE p.id = payment
$$;
-- +goose StatementEnd

-- A transaction is the first live one of its payment only when nothing speaks against it. One with the number of
-- another can't pay a second time, and one that the watch has found on the chain signs nothing.
-- +goose StatementBegin
CREATE FUNCTION refuse_withheld_signature() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    word text;
BEGIN
    PERFORM FROM chain_attempts WHERE payment_id = NEW.payment_id AND status IN ('signed', 'broadcast', 'included', 'replaced');
    IF FOUND THEN
        RETURN NEW;
    END IF;
    PERFORM FROM deposit_quarantine q JOIN chain_payments p ON p.id = NEW.payment_id AND p.wallet_id = q.wallet_id
        WHERE q.network = NEW.network AND q.tx_id = NEW.tx_id AND q.reason = 'not_our_send';
    IF FOUND THEN
        RETURN NEW;
    END IF;
    word := payment_hold(NEW.payment_id);
    IF word <> '' THEN
        RAISE EXCEPTION 'nothing is signed for payment %: %', NEW.payment_id, word USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM deposit_looks l JOIN chain_payments p ON p.id = NEW.payment_id JOIN wallets w ON w.id = p.wallet_id AND w.type = 'hot'
        LEFT JOIN deposit_cursors c ON c.network = l.network
        WHERE l.network = NEW.network AND (l.identity <> database_identity()
            OR (l.resumed_at IS NOT NULL AND (l.passed IS NULL OR c.final_number IS NULL OR c.final_number < l.passed)));
    IF FOUND THEN
        RAISE EXCEPTION 'nothing is signed for payment % before the watch over % has caught up', NEW.payment_id, NEW.network USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_attempts_withheld BEFORE INSERT ON chain_attempts FOR EACH ROW EXECUTE FUNCTION refuse_withheld_signature();

-- A payment whose money may have left is neither given up, which gives its money back, nor tried again.
-- +goose StatementBegin
CREATE FUNCTION refuse_end_of_moved() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF payment_hold(NEW.id) IN ('unexpected_send', 'sent_before') AND (NEW.status = 'cancelled' OR payment_hold(NEW.id) = 'unexpected_send') THEN
        RAISE EXCEPTION 'payment % may have moved money; what moved must be settled first', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER chain_payments_moved BEFORE UPDATE ON chain_payments FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND (NEW.status = 'cancelled' OR (OLD.status = 'parked' AND NEW.status = 'approved')))
    EXECUTE FUNCTION refuse_end_of_moved();

-- A transaction that was carried out and did not pay what it should have can't be written down without its alarm.
-- +goose StatementBegin
CREATE FUNCTION moved_has_alarm() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM deposit_quarantine WHERE network = NEW.network AND tx_id = NEW.tx_id AND reason = 'unexpected_send';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'transaction % moved something and nobody is told', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER chain_attempts_alarm AFTER UPDATE ON chain_attempts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.status = 'failed' AND NEW.last_code = 'SUCCESS') EXECUTE FUNCTION moved_has_alarm();

-- +goose StatementBegin
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'kivuko_app') THEN
        GRANT SELECT, INSERT, UPDATE ON deposit_looks TO kivuko_app;
    END IF;
END $$;
-- +goose StatementEnd
