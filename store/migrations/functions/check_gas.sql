-- One top-up of a wallet at a time is brought ahead of need, and none beside one that a payment asked for. A payment asks for more when a block has
-- what was brought. The locks make the second of two
-- at once see the first: that of the network for its budget and the gas wallet, that of the wallet for its coins.
CREATE OR REPLACE FUNCTION check_gas() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    receiver uuid := (SELECT w.id FROM wallets w WHERE w.network = NEW.network AND w.address = NEW.to_address);
    fault    text;
BEGIN
    IF NEW.object_id = receiver THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('kivuko gas ahead ' || NEW.network, 0));
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko gas ' || receiver, 0));
    IF NEW.object_id = receiver THEN
        fault := gas_ahead_fault(receiver, NEW.amount, NEW.wallet_id);
    ELSIF EXISTS (SELECT FROM chain_payments g WHERE g.purpose = 'gas' AND g.object_id = receiver AND g.status NOT IN ('completed', 'cancelled')
            AND NOT gas_arrived(g.id)) THEN
        fault := 'under_way';
    END IF;
    IF fault <> '' THEN
        RAISE EXCEPTION 'no gas is brought to wallet % by payment %: %', receiver, NEW.id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
