-- At the end of the transaction, the fee of a completed transfer is taken and that of any other ended one is released.
CREATE OR REPLACE FUNCTION check_transfer_fee() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    held text := (SELECT status FROM holds WHERE id = NEW.fee_hold_id);
BEGIN
    IF held IS DISTINCT FROM (CASE NEW.status WHEN 'completed' THEN 'captured' ELSE 'released' END) THEN
        RAISE EXCEPTION 'transfer % is % and the hold of its fee is %', NEW.id, NEW.status, held USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'completed' AND NOT EXISTS (SELECT FROM ledger_lines l JOIN ledger_accounts a ON a.id = l.account_id
            WHERE l.entry_id = entry_of('transfer:' || NEW.id || ':fee') AND a.kind = 'wallet_fees' AND a.owner_id = NEW.wallet_id AND a.asset = NEW.asset AND l.amount = -NEW.fee) THEN
        RAISE EXCEPTION 'the fee of transfer % is not booked', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
