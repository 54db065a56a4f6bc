-- At the end of the transaction, claimed crypto is fully held on the address's own account, so that it leaves the
-- address only once.
CREATE OR REPLACE FUNCTION check_claim_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = NEW.hold_id AND h.object_type = 'order' AND h.object_id = NEW.order_id
        AND h.placed = NEW.amount AND a.kind = 'wallet_balance' AND a.owner_id = NEW.wallet_id AND a.asset = NEW.asset;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the crypto that was taken for order % is not held', NEW.order_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
