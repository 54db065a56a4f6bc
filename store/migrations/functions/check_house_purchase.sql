-- At the end of the transaction, because holds are written last: exactly the crypto of a purchase from the house is reserved for it, out of the
-- inventory of the wallet that delivers it.
CREATE OR REPLACE FUNCTION check_house_purchase() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM holds h JOIN inventories i ON i.hold_id = h.parent_id WHERE h.id = NEW.hold_id AND h.status = 'held' AND h.amount = NEW.crypto_amount
            AND h.object_type = 'order' AND h.object_id = NEW.id AND (i.wallet_id, i.network, i.asset) = (NEW.wallet_id, NEW.network, NEW.asset)) THEN
        RAISE EXCEPTION 'the crypto of order % is not reserved from the inventory', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
