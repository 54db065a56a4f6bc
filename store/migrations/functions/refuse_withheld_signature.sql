-- A transaction becomes the first live one of its payment only without a hold, and after the watch has read the chain
-- again if this database may be older than the chain, and has seen that each transaction of the payment that failed moved
-- nothing. One with the number of another can't pay a second time, and one that the watch found on the chain needs no
-- signature.
CREATE OR REPLACE FUNCTION refuse_withheld_signature() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    hold text;
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
    hold := payment_hold(NEW.payment_id);
    IF hold <> '' THEN
        RAISE EXCEPTION 'nothing is signed for payment %: %', NEW.payment_id, hold USING ERRCODE = 'KV001';
    END IF;
    IF unread_failure(NEW.payment_id) THEN
        RAISE EXCEPTION 'nothing is signed for payment % before the watch over % has seen that its failed transaction moved nothing', NEW.payment_id, NEW.network USING ERRCODE = 'KV001';
    END IF;
    PERFORM FROM deposit_looks l JOIN chain_payments p ON p.id = NEW.payment_id JOIN wallets w ON w.id = p.wallet_id AND w.type = 'hot'
        LEFT JOIN deposit_cursors c ON c.network = l.network
        WHERE l.network = NEW.network AND (l.identity <> database_identity()
            OR (l.resumed_at IS NOT NULL AND (l.passed IS NULL OR c.final_number IS NULL OR c.final_number < l.passed)));
    IF FOUND THEN
        RAISE EXCEPTION 'nothing is signed for payment % before the watch over % has caught up', NEW.payment_id, NEW.network USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
