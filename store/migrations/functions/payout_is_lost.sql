-- Whether a payout of an object may have been made that this database does not know: it was put back and is not released, and no
-- attempt of the object may have paid.
CREATE OR REPLACE FUNCTION payout_is_lost(object uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN NOT database_released() AND NOT EXISTS (SELECT FROM payment_attempts a
        WHERE a.object_id = object AND a.direction = 'payout' AND a.status NOT IN ('refused', 'failed'));
END $$;
