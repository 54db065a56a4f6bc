-- Nothing is sent from a database that is another one than the one that was released last. The first request of an empty
-- database releases it.
CREATE OR REPLACE FUNCTION check_released() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF NOT database_released() THEN
        RAISE EXCEPTION 'nothing is sent before two officers have released this database' USING ERRCODE = 'KV055';
    END IF;
    IF NOT EXISTS (SELECT FROM database_releases) THEN
        INSERT INTO database_releases (identity) VALUES (database_identity());
    END IF;
    RETURN NEW;
END $$;
