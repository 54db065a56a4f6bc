-- A payment of ours to a counterpart address would be seen as ours and be owed to no owner. Only gas for refunds goes
-- there.
CREATE OR REPLACE FUNCTION refuse_counterpart_recipient() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF is_counterpart(NEW.network, NEW.to_address) THEN
        RAISE EXCEPTION 'payment or transfer % goes to an address of ours on the wrong network', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
