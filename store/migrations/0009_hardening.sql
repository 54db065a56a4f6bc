-- +goose Up
-- Limits of what one customer, and everybody together, may ask of the house at a time.

CREATE INDEX orders_pending_idx ON orders (customer_id) WHERE status = 'pending';
CREATE INDEX payment_attempts_phone_idx ON payment_attempts (phone, created_at) WHERE direction = 'collection';

-- prompts_of counts the prompts that were sent to a phone since a time, and lets nobody else count the
-- same phone until the transaction ends: what is counted under the lock can't be passed by two at once.
-- Those that were refused put nothing on the phone. In a function of its own each statement sees what
-- was committed while it waited for the lock.
-- +goose StatementBegin
CREATE FUNCTION prompts_of(number text, since timestamptz) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko prompts of ' || number, 0));
    RETURN (SELECT count(*) FROM payment_attempts
        WHERE phone = number AND direction = 'collection' AND status <> 'refused' AND created_at > since);
END $$;
-- +goose StatementEnd

-- receivable: what was paid out once too often. unclaimed: customers' money too little to be sent back.
ALTER TABLE ledger_accounts DROP CONSTRAINT ledger_accounts_kind, ADD CONSTRAINT ledger_accounts_kind CHECK (kind IN ('custody',
    'wallet_balance', 'fiat_balance', 'momo_collection', 'momo_payout', 'bank', 'orders_in_flight', 'refunds_due', 'suspense', 'unclaimed',
    'receivable', 'rounding', 'fees', 'network_fees', 'capital'));
ALTER TABLE ledger_accounts DROP CONSTRAINT ledger_accounts_direction, ADD CONSTRAINT ledger_accounts_direction CHECK (debit_normal =
    (kind IN ('custody', 'momo_collection', 'momo_payout', 'bank', 'network_fees', 'receivable')));

ALTER TABLE payment_exceptions DROP CONSTRAINT payment_exceptions_kind_check, ADD CONSTRAINT payment_exceptions_kind_check CHECK (kind IN
    ('under', 'over', 'late', 'duplicate', 'wrong_asset', 'wrong_network', 'unmatched', 'paid_twice'));

-- A refund whose payer is doubtful waits for a person, who confirms the payee once.
INSERT INTO state_transitions (machine, from_state, to_state) VALUES ('refund', 'pending', 'needs_review');
ALTER TABLE refunds ADD COLUMN payee_confirmed boolean NOT NULL DEFAULT false;
CREATE TRIGGER refunds_confirmed BEFORE UPDATE ON refunds FOR EACH ROW WHEN (OLD.payee_confirmed AND NOT NEW.payee_confirmed)
    EXECUTE FUNCTION refuse_change();

-- Notices at the operator's standing addresses belong to no attempt and are no noise.
ALTER TABLE momo_callbacks ADD COLUMN standing boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT momo_callbacks_standing CHECK (NOT standing OR attempt_id IS NULL);
CREATE INDEX momo_callbacks_standing_idx ON momo_callbacks (received_at) WHERE standing;

-- What has outlived its use is found by its age.
CREATE INDEX session_families_age_idx ON session_families (expires_at);
CREATE INDEX login_failures_age_idx ON login_failures (updated_at);
