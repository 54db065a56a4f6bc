-- An attempt begins only for a payout that is under way, to its payee, over its amount, under its reference, and while the crypto is not
-- refunded and there is no claim that it is paid. payment_attempts_open_key allows one open attempt at a time.
CREATE OR REPLACE FUNCTION check_order_payout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM order_payouts p JOIN orders o ON o.id = p.id
        WHERE p.id = NEW.object_id AND p.rail = 'momo' AND p.status = 'processing' AND o.status = 'processing'
            AND p.asset = NEW.asset AND p.amount = NEW.amount AND p.phone = NEW.phone AND o.payment_reference = NEW.reference AND NOT p.claimed FOR SHARE OF p;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'payment attempt % does not pay what its order owes now', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF order_party_gone(NEW.object_id) THEN
        RAISE EXCEPTION 'a party of order % is switched off', NEW.object_id USING ERRCODE = 'KV058';
    END IF;
    IF EXISTS (SELECT FROM refunds r WHERE r.order_id = NEW.object_id AND r.exception_id IS NULL) THEN
        RAISE EXCEPTION 'order % is being refunded', NEW.object_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
