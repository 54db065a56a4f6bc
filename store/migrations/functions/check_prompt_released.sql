-- A prompt of a database that may not send is stored as refused; a payment by hand has none. The first prompt of an empty database releases it.
CREATE OR REPLACE FUNCTION check_prompt_released() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF by_hand(NEW) THEN
        RETURN NULL;
    END IF;
    IF NOT EXISTS (SELECT FROM database_releases) AND NOT EXISTS (SELECT FROM payment_attempts a WHERE a.id <> NEW.id) THEN
        INSERT INTO database_releases (identity) VALUES (database_identity());
    ELSIF NOT database_released() AND EXISTS (SELECT FROM payment_attempts a WHERE a.id = NEW.id AND a.status <> 'refused') THEN
        RAISE EXCEPTION 'nothing is sent before two officers have released this database' USING ERRCODE = 'KV055';
    END IF;
    RETURN NULL;
END $$;
