-- Enforces the steps of a transfer: nothing leaves our custody unscreened, nothing is queued before its release has passed,
-- only the completed chain payment completes it, and it does not end otherwise while a payment of it may still move
-- money.
CREATE OR REPLACE FUNCTION check_transfer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.kind = 'internal' AND NEW.status = 'screening' OR NEW.kind = 'external' AND OLD.status = 'created' AND NEW.status = 'pending_approval' THEN
        RAISE EXCEPTION 'transfer % is % and can''t become %', NEW.id, NEW.kind, NEW.status USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status = 'queued' THEN
        IF NEW.kind = 'external' AND 'clear' IS DISTINCT FROM (SELECT verdict FROM screenings WHERE transfer_id = NEW.id ORDER BY at DESC, id DESC LIMIT 1) THEN
            RAISE EXCEPTION 'transfer % is not cleared by a screening', NEW.id USING ERRCODE = 'KV001';
        END IF;
        IF NOT EXISTS (SELECT FROM releases r WHERE r.purpose = 'transfer' AND r.object_id = NEW.id AND r.passed_at IS NOT NULL AND r.ended_at IS NULL) THEN
            RAISE EXCEPTION 'transfer % is not released', NEW.id USING ERRCODE = 'KV001';
        END IF;
    END IF;
    IF NEW.status = 'completed' AND NOT EXISTS (SELECT FROM chain_payments
            WHERE purpose = 'transfer' AND object_id = NEW.id AND status = 'completed' AND tx_id = NEW.tx_hash) THEN
        RAISE EXCEPTION 'transfer % is not completed on its network', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status IN ('cancelled', 'rejected', 'failed') AND EXISTS (SELECT FROM releases r
            WHERE r.purpose = 'transfer' AND r.object_id = NEW.id AND r.ended_at IS NULL) THEN
        RAISE EXCEPTION 'transfer % moves nothing and its release still counts', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.status IN ('cancelled', 'rejected', 'blocked', 'failed') AND EXISTS (SELECT FROM chain_payments
            WHERE purpose = 'transfer' AND object_id = NEW.id AND status <> 'cancelled') THEN
        RAISE EXCEPTION 'transfer % has a payment that may still move money', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
