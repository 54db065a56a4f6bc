-- At the end of the transaction, each part of an inventory is an order's: as much as its crypto, in the wallet of the inventory, until it
-- was delivered or the order ended without that.
CREATE OR REPLACE FUNCTION check_inventory_part() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM inventories WHERE hold_id = NEW.parent_id) AND NOT EXISTS (SELECT FROM holds h JOIN holds i ON i.id = h.parent_id AND i.account_id = h.account_id
            JOIN orders o ON o.hold_id = h.id AND o.quote_id IS NOT NULL AND (h.object_type, h.object_id, h.placed) = ('order', o.id, o.crypto_amount)
            WHERE h.id = NEW.id AND CASE h.status WHEN 'held' THEN h.amount = h.placed WHEN 'released' THEN o.status IN ('cancelled', 'failed')
                ELSE EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'order' AND p.object_id = o.id AND p.hold_id = h.id AND p.status = 'completed') END) THEN
        RAISE EXCEPTION 'hold % takes of an inventory what no order takes', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
