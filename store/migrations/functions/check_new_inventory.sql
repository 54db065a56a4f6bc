-- The treasury begins to sell from a hot wallet of its own when two officers agree, in the transaction in which the second does.
CREATE OR REPLACE FUNCTION check_new_inventory() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.taken <> 0 OR NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.owner_id IS NULL
            AND w.purpose = 'treasury' AND w.custody = 'custodial' AND w.type = 'hot') THEN
        RAISE EXCEPTION 'inventory % is not of a hot wallet of the treasury', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.kind = 'inventory_allocation' AND c.applied_in = pg_current_xact_id()
            AND c.change ->> 'wallet_id' = NEW.wallet_id::text AND c.change ->> 'asset' = NEW.asset) THEN
        RAISE EXCEPTION 'no second officer confirmed inventory %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
