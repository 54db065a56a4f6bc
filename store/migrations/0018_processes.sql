-- +goose Up
-- What processes may do: nothing is requested from a database that was put back, and nothing that is alive lacks its flow.

-- The databases that may send: each by its identity (database_identity), the newest last. A database that was put back from
-- a backup, or a standby that took over, has another identity than the newest release. It may lack what was sent since, so
-- nothing is sent again before two officers have compared it with the operator's statement and released it. The first
-- request of an empty database releases it.
CREATE TABLE database_releases (
    number      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    identity    text        NOT NULL CHECK (char_length(identity) BETWEEN 1 AND 100),
    change_id   uuid        REFERENCES control_changes (id), -- the confirmed change; NULL for the first
    released_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT database_releases_change_key UNIQUE (change_id)
);
CALL append_only('database_releases');
CREATE TRIGGER database_releases_guarded BEFORE INSERT ON database_releases FOR EACH ROW EXECUTE FUNCTION guard_release();

-- A payout, a prompt and a movement of float are stored before they are requested.
CREATE TRIGGER payment_attempts_released BEFORE INSERT ON payment_attempts FOR EACH ROW WHEN (NEW.direction = 'payout')
    EXECUTE FUNCTION check_released();
CREATE CONSTRAINT TRIGGER payment_attempts_prompt_released AFTER INSERT ON payment_attempts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.direction = 'collection') EXECUTE FUNCTION check_prompt_released();
CREATE TRIGGER float_moves_released BEFORE UPDATE ON float_moves FOR EACH ROW WHEN (OLD.status = 'created' AND NEW.status = 'unknown')
    EXECUTE FUNCTION check_released();

-- What is not at its end is compared with the flows every few minutes.
CREATE INDEX refunds_unpaid_idx ON refunds (id) WHERE status <> 'completed';
CREATE INDEX payment_exceptions_late_idx ON payment_exceptions (attempt_id) WHERE status = 'open' AND kind IN ('late', 'duplicate');

-- These fire first, by their names.
CREATE TRIGGER chain_payments_author BEFORE INSERT ON chain_payments FOR EACH ROW EXECUTE FUNCTION check_payment_author();
CREATE TRIGGER wallets_author BEFORE INSERT ON wallets FOR EACH ROW EXECUTE FUNCTION check_wallet_author();
CREATE TRIGGER deposit_quarantine_signer BEFORE UPDATE ON deposit_quarantine FOR EACH ROW EXECUTE FUNCTION check_signers_alarm();
CREATE TRIGGER chain_attempts_adopter BEFORE INSERT OR UPDATE ON chain_attempts FOR EACH ROW WHEN (current_user = 'kivuko_api')
    EXECUTE FUNCTION check_adopter('payment_id');
CREATE TRIGGER cold_drafts_adopter BEFORE UPDATE ON cold_drafts FOR EACH ROW WHEN (current_user = 'kivuko_api') EXECUTE FUNCTION check_adopter('payment_id');
CREATE TRIGGER transfers_adopter BEFORE UPDATE ON transfers FOR EACH ROW WHEN (current_user = 'kivuko_api') EXECUTE FUNCTION check_adopter('id');
