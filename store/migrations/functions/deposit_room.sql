-- How many shillings of a merchant's mobile money need no officer now: the merchant's automatic limit, without what needed none in the last
-- 24 hours by the database's clock. It is locked until the transaction ends, so that two deposits don't take the same room.
CREATE OR REPLACE FUNCTION deposit_room(merchant uuid) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko automatic ' || merchant, 0));
    RETURN otc_limit(merchant) - (SELECT coalesce(sum(d.received_amount), 0) FROM otc_deposits d WHERE d.merchant_id = merchant AND d.automatic_at > clock_timestamp() - interval '24 hours');
END $$;
