-- Only the worker of mobile money reads the operator's statement: the API, which takes notices in, says of nothing that it is listed there.
CREATE OR REPLACE FUNCTION check_listed_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_user = 'kivuko_api' THEN
        RAISE EXCEPTION '% reads no statement', current_user USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;
