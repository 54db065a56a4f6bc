-- Two officers settle a movement in the quarantine, unless its transaction turned out to be one of ours.
CREATE OR REPLACE FUNCTION guard_quarantine() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.reason = 'not_our_send' AND EXISTS (SELECT FROM chain_attempts a WHERE a.network = NEW.network AND a.tx_id = NEW.tx_id AND NOT a.adopted) THEN
        RETURN NULL;
    END IF;
    -- An adopted transaction settles all of its movements.
    PERFORM FROM control_changes c JOIN deposit_quarantine q ON q.id::text = c.change ->> 'quarantine_id'
        WHERE c.kind = 'quarantine_settled' AND c.applied_in = pg_current_xact_id() AND (q.id = NEW.id OR (q.network, q.tx_id) = (NEW.network, NEW.tx_id));
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed what movement % was', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
