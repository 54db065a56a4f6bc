-- Counts a top-up ahead of need, at the database's own time.
CREATE OR REPLACE FUNCTION count_gas_ahead() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO gas_ahead (payment_id, wallet_id, network, amount, at)
        SELECT NEW.id, w.id, NEW.network, NEW.amount, clock_timestamp() FROM wallets w WHERE w.id = NEW.object_id;
    RETURN NULL;
END $$;
