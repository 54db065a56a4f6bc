-- A sweep of earned fees is opened in the transaction in which a second treasury officer confirmed exactly it, or by a rule
-- that two agreed to and that is in force: of a wallet that has the rule's least, and while all those wallets together reach its threshold.
-- What is held is on its way already. The sweeps that a transaction opens are held at its end, so each of them is asked about the same sum.
CREATE OR REPLACE FUNCTION check_fee_sweep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.scheduled THEN
        PERFORM FROM fee_sweep_rules f WHERE f.change_id = NEW.change_id AND f.is_active AND (f.network, f.asset) = (NEW.network, NEW.asset) AND f.least <= NEW.amount
            AND f.threshold <= (SELECT sum(a.posted - a.held) FROM ledger_accounts a JOIN wallets w ON w.id = a.owner_id
                WHERE a.kind = 'wallet_fees' AND a.asset = f.asset AND a.posted - a.held >= f.least AND w.network = f.network AND w.owner_id IS NOT NULL
                    AND w.type = 'hot' AND w.custody = 'custodial');
    ELSE
        PERFORM FROM control_changes c WHERE c.id = NEW.change_id AND c.kind = 'fee_sweep' AND c.applied_in = pg_current_xact_id()
            AND c.proposed_by = NEW.requested_by AND c.change ->> 'asset' = NEW.asset AND (c.change ->> 'network') IS NOT DISTINCT FROM NEW.network
            AND CASE WHEN NEW.wallet_id IS NULL THEN (c.change ->> 'amount')::numeric = NEW.amount
                ELSE EXISTS (SELECT FROM jsonb_array_elements(c.change -> 'payments') w WHERE w ->> 'wallet_id' = NEW.wallet_id::text AND (w ->> 'amount')::numeric = NEW.amount) END;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed fee sweep %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    IF NEW.wallet_id IS NOT NULL AND NOT EXISTS (SELECT FROM wallets w WHERE w.id = NEW.wallet_id AND w.network = NEW.network AND w.owner_id IS NOT NULL
            AND w.type = 'hot' AND w.custody = 'custodial') THEN
        RAISE EXCEPTION 'fee sweep % leaves no wallet that a payment can leave', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
