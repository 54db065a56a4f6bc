-- The crypto of a refund is reserved in its wallet. Holds are written last.
CREATE OR REPLACE FUNCTION check_refund_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = NEW.hold_id AND h.status = 'held' AND h.amount = NEW.amount
            AND a.kind = 'wallet_balance' AND a.owner_id = NEW.wallet_id AND a.asset = NEW.asset
            AND (h.object_type, h.object_id) IN (('order', NEW.order_id), ('refund', NEW.id))) THEN
        RAISE EXCEPTION 'nothing is reserved for refund %', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
