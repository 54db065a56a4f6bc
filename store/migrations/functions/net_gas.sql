-- A deposit explains a fee of its own wallet and coin, in the same or a later block, and never more than it brought.
-- The check on gas_found prevents explaining a fee twice.
CREATE OR REPLACE FUNCTION net_gas() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    d record;
BEGIN
    SELECT * INTO d FROM chain_deposits WHERE id = NEW.deposit_id FOR NO KEY UPDATE;
    IF d.status <> 'final' OR d.kind NOT IN ('credit', 'house', 'awaited', 'unmatched')
        OR d.amount < NEW.amount + coalesce((SELECT sum(amount) FROM gas_nettings WHERE deposit_id = NEW.deposit_id), 0) THEN
        RAISE EXCEPTION 'deposit % brought no % that are left', NEW.deposit_id, NEW.amount USING ERRCODE = 'KV002';
    END IF;
    UPDATE gas_found SET netted = netted + NEW.amount
        WHERE attempt_id = NEW.attempt_id AND wallet_id = d.wallet_id AND asset = d.asset AND block >= d.block;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'deposit % can''t have paid the fee of transaction %', NEW.deposit_id, NEW.attempt_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
