-- A deposit, or a completed payment from another wallet of ours, explains a fee of its own wallet and coin, in the same or
-- a later block, and never more than it brought. The check on gas_found prevents explaining a fee twice.
CREATE OR REPLACE FUNCTION net_gas() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    d record;
BEGIN
    PERFORM FROM chain_deposits WHERE id = NEW.deposit_id FOR NO KEY UPDATE;
    PERFORM FROM chain_payments WHERE id = NEW.payment_id FOR NO KEY UPDATE;
    SELECT s.wallet_id, s.asset, s.block, s.amount INTO d FROM (
            SELECT c.wallet_id, c.asset, c.block, c.amount FROM chain_deposits c
            WHERE c.id = NEW.deposit_id AND c.status = 'final' AND c.kind IN ('credit', 'house', 'awaited', 'unmatched')
            UNION ALL SELECT w.id, p.asset, p.block, p.amount FROM chain_payments p JOIN wallets w ON w.network = p.network AND w.address = p.to_address
            WHERE p.id = NEW.payment_id AND p.status = 'completed' AND p.purpose = 'gas') s;
    IF NOT FOUND OR d.amount < NEW.amount + coalesce((SELECT sum(n.amount) FROM gas_nettings n
            WHERE n.deposit_id = NEW.deposit_id OR n.payment_id = NEW.payment_id), 0) THEN
        RAISE EXCEPTION '% has no % left to net', coalesce(NEW.deposit_id, NEW.payment_id), NEW.amount USING ERRCODE = 'KV002';
    END IF;
    UPDATE gas_found SET netted = netted + NEW.amount
        WHERE attempt_id = NEW.attempt_id AND wallet_id = d.wallet_id AND asset = d.asset AND block >= d.block;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% can''t have paid the fee of transaction %', coalesce(NEW.deposit_id, NEW.payment_id), NEW.attempt_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
