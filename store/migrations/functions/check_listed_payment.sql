-- Only the worker of mobile money asks the operator, and reads its statement. The API, which takes notices in, reports notices alone: with one
-- row of a source that we ask beside a notice, it would prove a payment that nobody made.
CREATE OR REPLACE FUNCTION check_listed_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_user = 'kivuko_api' THEN
        RAISE EXCEPTION '% asks no operator', current_user USING ERRCODE = '42501';
    END IF;
    RETURN NEW;
END $$;
