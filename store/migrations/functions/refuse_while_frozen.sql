-- Refuses a payout while outgoing payments are frozen.
CREATE OR REPLACE FUNCTION refuse_while_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF frozen() THEN
        RAISE EXCEPTION 'outgoing payments are frozen' USING ERRCODE = 'KV057';
    END IF;
    RETURN NEW;
END $$;
