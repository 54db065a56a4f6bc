-- An open draft may be imported signed and pay, so its payment is not given up before the draft has ended, nor while
-- it is being withdrawn.
CREATE OR REPLACE FUNCTION refuse_giving_up_open_draft() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM cold_drafts WHERE payment_id = NEW.id AND status IN ('open', 'closing');
    IF FOUND THEN
        RAISE EXCEPTION 'a transaction of payment % was handed out and may come back signed', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
