-- Two officers settle a movement in the quarantine, unless its transaction turned out to be one of ours, or what owners of a wallet had signed
-- for a payment that we approved. What may be the payment of a payload that can be executed is settled by that alone: a note would hide it.
CREATE OR REPLACE FUNCTION guard_quarantine() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.reason = 'not_our_send' AND EXISTS (SELECT FROM chain_attempts a WHERE a.network = NEW.network AND a.tx_id = NEW.tx_id
            AND (NOT a.adopted OR EXISTS (SELECT FROM chain_payments p WHERE p.id = a.payment_id AND p.purpose = 'proposal')
                AND EXISTS (SELECT FROM multisig_payloads y WHERE (y.payment_id, y.found_tx, y.found_index) = (a.payment_id, NEW.tx_id, NEW.event_index)))) THEN
        RETURN NULL;
    END IF;
    IF NEW.reason = 'not_our_send' AND may_be_proposal(NEW::deposit_quarantine) THEN
        RAISE EXCEPTION 'movement % may be what the owners of its wallet signed for a proposal', NEW.id USING ERRCODE = 'KV001';
    END IF;
    -- An adopted transaction settles all of its movements.
    PERFORM FROM control_changes c JOIN deposit_quarantine q ON q.id::text = c.change ->> 'quarantine_id'
        WHERE c.kind = 'quarantine_settled' AND c.applied_in = pg_current_xact_id() AND (q.id = NEW.id OR (q.network, q.tx_id) = (NEW.network, NEW.tx_id));
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed what movement % was', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
