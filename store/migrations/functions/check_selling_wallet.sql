-- The key of a cold wallet never signs online, so an order paid from it could not be delivered. Active offers may be
-- paused and closed; orders for them are refused.
CREATE OR REPLACE FUNCTION check_selling_wallet() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.type = 'hot') THEN
        RAISE EXCEPTION '% % sells from a wallet that is not hot', TG_TABLE_NAME, NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
