-- No flow stops waiting at a borrowed address before all its deposits are accounted for.
CREATE OR REPLACE FUNCTION check_wait_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM escrow_leases l JOIN chain_deposits d ON d.wallet_id = l.wallet_id WHERE l.wallet_id = NEW.wallet_id AND l.ended_at IS NULL
        AND d.kind = 'awaited' AND d.status = 'final' AND NOT EXISTS (SELECT FROM escrow_claims c WHERE c.deposit_id = d.id);
    IF FOUND THEN
        RAISE EXCEPTION 'money at escrow address % is not accounted for', NEW.wallet_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
