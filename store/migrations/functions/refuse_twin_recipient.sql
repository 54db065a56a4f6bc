-- A payment of ours to a counterpart address would be seen as ours and be owed to no one. Gas goes there, for what is
-- sent back.
CREATE OR REPLACE FUNCTION refuse_twin_recipient() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF is_twin(NEW.network, NEW.to_address) THEN
        RAISE EXCEPTION 'payment or transfer % goes to an address of ours on the wrong network', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
