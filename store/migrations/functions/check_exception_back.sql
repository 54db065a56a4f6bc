-- The exception of shillings that belong to no order follows its refund by bank: it is open again only when that ended unpaid.
CREATE OR REPLACE FUNCTION check_exception_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT exception_goes_back(NEW.id) THEN
        RAISE EXCEPTION 'exception % does not follow its refund', NEW.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
