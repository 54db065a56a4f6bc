-- At the end of the transaction, what is left of an inventory and what orders took of it are exactly what officers agreed, in pairs, to set
-- aside. So nobody makes it more alone, and nothing leaves it but for an order.
CREATE OR REPLACE FUNCTION check_inventory() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM inventories i JOIN holds h ON h.id = i.hold_id JOIN ledger_accounts a ON a.id = h.account_id
            WHERE CASE TG_TABLE_NAME WHEN 'holds' THEN i.hold_id ELSE i.id END = NEW.id
                AND h.status = 'held' AND h.parent_id IS NULL AND h.object_type = 'inventory' AND h.object_id = i.id
                AND a.code = 'wallet_balance:' || i.wallet_id || ':' || i.asset
                AND h.amount + i.taken = (SELECT coalesce(sum((c.change ->> 'amount')::numeric), 0) FROM control_changes c
                    WHERE c.kind = 'inventory_allocation' AND c.status = 'confirmed' AND c.change ->> 'wallet_id' = i.wallet_id::text AND c.change ->> 'asset' = i.asset)) THEN
        RAISE EXCEPTION 'the inventory of % is not what two officers set aside', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
