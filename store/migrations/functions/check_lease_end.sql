-- Takes an address back when its order has ended, no flow waits for its money any more, all deposits are accounted
-- for, and what the order held there has left. It sets how long the address rests.
CREATE OR REPLACE FUNCTION check_lease_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM orders WHERE id = NEW.order_id AND status IN ('completed', 'cancelled', 'failed');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % has not ended', NEW.order_id USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM deposit_waits WHERE wallet_id = NEW.wallet_id AND ended_at IS NULL;
    IF FOUND THEN
        RAISE EXCEPTION 'a flow waits for money at escrow address %', NEW.wallet_id USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM chain_deposits d WHERE d.wallet_id = NEW.wallet_id AND d.kind = 'awaited' AND d.status = 'final'
        AND NOT EXISTS (SELECT FROM escrow_claims c WHERE c.deposit_id = d.id);
    IF FOUND THEN
        RAISE EXCEPTION 'money at escrow address % is not accounted for', NEW.wallet_id USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM ledger_accounts a WHERE a.owner_id = NEW.wallet_id AND a.kind = 'wallet_balance' AND a.asset IN ('USDT', 'USDC') AND (a.posted <> a.held
        OR EXISTS (SELECT FROM holds h WHERE h.account_id = a.id AND h.status = 'held' AND h.object_type = 'order' AND h.object_id = NEW.order_id));
    IF FOUND THEN
        RAISE EXCEPTION 'the money of order % has not left escrow address %', NEW.order_id, NEW.wallet_id USING ERRCODE = 'KV001';
    END IF;
    -- An address that saw no money rests shortly: nobody else knows it.
    SELECT NEW.ended_at + make_interval(secs => CASE WHEN EXISTS (SELECT FROM chain_deposits d WHERE d.wallet_id = NEW.wallet_id AND d.created_at >= NEW.leased_at)
        THEN p.rest_seconds ELSE least(p.idle_rest_seconds, p.rest_seconds) END) INTO NEW.rest_until
        FROM escrow_addresses a JOIN escrow_policy p ON p.network = a.network WHERE a.id = NEW.wallet_id;
    RETURN NEW;
END $$;
