-- A transaction becomes the first live one of its payment only when nothing withholds its signature. One with the number of another can't pay a
-- second time, and one that the watch found on the chain needs no signature.
CREATE OR REPLACE FUNCTION refuse_withheld_signature() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    withheld text;
BEGIN
    PERFORM FROM chain_attempts WHERE payment_id = NEW.payment_id AND status IN ('signed', 'broadcast', 'included', 'replaced');
    IF FOUND THEN
        RETURN NEW;
    END IF;
    PERFORM FROM deposit_quarantine q JOIN chain_payments p ON p.id = NEW.payment_id AND p.wallet_id = q.wallet_id
        WHERE q.network = NEW.network AND q.tx_id = NEW.tx_id AND q.reason = 'not_our_send';
    IF FOUND THEN
        RETURN NEW;
    END IF;
    PERFORM FROM chain_payments p WHERE p.id = NEW.payment_id AND p.purpose = 'proposal' AND p.amount = 0 AND NEW.adopted; -- owners had it executed, and it moved nothing
    IF FOUND THEN
        RETURN NEW;
    END IF;
    withheld := signing_withheld(NEW.payment_id);
    IF withheld <> '' THEN
        RAISE EXCEPTION 'nothing is signed for payment % over %: %', NEW.payment_id, NEW.network, withheld USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
