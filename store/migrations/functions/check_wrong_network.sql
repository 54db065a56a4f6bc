-- A deposit to a counterpart wallet becomes an exception of kind wrong_network, and no other deposit does.
CREATE OR REPLACE FUNCTION check_wrong_network() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM payment_exceptions x JOIN wallets w ON w.id = NEW.wallet_id WHERE x.id = NEW.exception_id
        AND (x.kind = 'wrong_network') = (w.purpose = 'counterpart') AND (x.kind <> 'wrong_network' OR x.receipt = NEW.network || ':' || NEW.tx_id || ':' || NEW.event_index);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'exception % does not match movement %', NEW.exception_id, NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
