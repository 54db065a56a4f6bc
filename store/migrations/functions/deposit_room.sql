-- How many shillings of a merchant's mobile money need no officer now: the merchant's automatic limit, without what needed none in the last
-- 24 hours by the database's clock. It is locked until the transaction ends, so that two deposits don't take the same room.
CREATE OR REPLACE FUNCTION deposit_room(merchant uuid) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko automatic ' || merchant, 0));
    RETURN (SELECT o.automatic FROM otc_limits o WHERE o.merchant_id IN (merchant, '00000000-0000-7000-8000-6b6976756b6f') ORDER BY o.merchant_id = merchant DESC LIMIT 1)
        - (SELECT coalesce(sum(d.received_amount), 0) FROM otc_deposits d WHERE d.merchant_id = merchant AND d.automatic_at > clock_timestamp() - interval '24 hours');
END $$;
