-- Counts the prompts that were sent to a phone since a time, and lets no other transaction count the same phone until
-- this one ends: what is counted under the lock can't be passed by two at once. Prompts that were refused put nothing
-- on the phone. As this is a function, each statement in it sees what was committed while it waited for the lock.
CREATE OR REPLACE FUNCTION prompts_of(number text, since timestamptz) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko prompts of ' || number, 0));
    RETURN (SELECT count(*) FROM payment_attempts
        WHERE phone = number AND direction = 'collection' AND status <> 'refused' AND created_at > since);
END $$;
