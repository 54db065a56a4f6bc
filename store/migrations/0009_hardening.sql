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
