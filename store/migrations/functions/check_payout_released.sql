-- A payout begins in the transaction that let its release pass, so every try is judged by what left until then.
CREATE OR REPLACE FUNCTION check_payout_released() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM releases r WHERE r.purpose = CASE NEW.object_type WHEN 'order' THEN 'payout' WHEN 'otc_withdrawal' THEN 'withdrawal' ELSE NEW.object_type END
            AND r.object_id = NEW.object_id AND r.ended_at IS NULL AND r.passed_in = pg_current_xact_id()) THEN
        RAISE EXCEPTION 'payment attempt % is not released', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
