-- Enforces the steps of a transfer's kind: nothing leaves our custody unscreened or with fewer approvals than its
-- value requires, only the completed chain payment completes it, and it does not end otherwise while a payment of it
-- may still move money.
CREATE OR REPLACE FUNCTION check_transfer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status IN ('screening', 'pending_approval') AND NEW.kind <> 'external' THEN
        RAISE EXCEPTION 'transfer % stays in our custody and has no %', NEW.id, NEW.status USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'queued' AND NEW.kind = 'external' THEN
        IF 'clear' IS DISTINCT FROM (SELECT verdict FROM screenings WHERE transfer_id = NEW.id ORDER BY at DESC, id DESC LIMIT 1) THEN
            RAISE EXCEPTION 'transfer % is not cleared by a screening', NEW.id USING ERRCODE = 'KV001';
        END IF;
        IF NEW.approvals_required > (SELECT count(*) FROM approvals
                WHERE object_type = 'transfer' AND object_id = NEW.id AND action = 'approve' AND digest = NEW.digest) THEN
            RAISE EXCEPTION 'transfer % lacks approvals', NEW.id USING ERRCODE = 'KV001';
        END IF;
    END IF;
    IF NEW.status = 'completed' AND NOT EXISTS (SELECT FROM chain_payments
            WHERE purpose = 'transfer' AND object_id = NEW.id AND status = 'completed' AND tx_id = NEW.tx_hash) THEN
        RAISE EXCEPTION 'transfer % is not completed on its network', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status IN ('cancelled', 'rejected', 'blocked', 'failed') AND EXISTS (SELECT FROM chain_payments
            WHERE purpose = 'transfer' AND object_id = NEW.id AND status <> 'cancelled') THEN
        RAISE EXCEPTION 'transfer % has a payment that may still move money', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
