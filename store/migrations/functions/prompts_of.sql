-- Counts the prompts sent to a phone since a time, and blocks other transactions' counts of the phone until this one
-- ends, so that two concurrent ones can't exceed the limit. Refused prompts never reached the phone. In a function,
-- each statement sees what was committed while it waited for the lock.
CREATE OR REPLACE FUNCTION prompts_of(number text, since timestamptz) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko prompts of ' || number, 0));
    RETURN (SELECT count(*) FROM payment_attempts a
        WHERE a.phone = number AND a.direction = 'collection' AND a.status <> 'refused' AND a.created_at > since AND NOT by_hand(a));
END $$;
