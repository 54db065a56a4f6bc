-- Up to how many shillings of a merchant's mobile money need no officer in 24 hours.
CREATE OR REPLACE FUNCTION otc_limit(merchant uuid) RETURNS numeric LANGUAGE sql STABLE AS $$
    SELECT o.automatic FROM otc_limits o WHERE o.merchant_id IN (merchant, platform_treasury()) ORDER BY o.merchant_id = merchant DESC, o.entry DESC LIMIT 1
$$;
