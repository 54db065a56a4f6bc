-- A refund in crypto is never paid by mobile money, and no attempt begins while there is a claim that an earlier one has
-- paid.
CREATE OR REPLACE FUNCTION check_refund_rail() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    refund refunds;
BEGIN
    SELECT * INTO refund FROM refunds f WHERE f.id = NEW.refund_id AND f.rail = 'momo' FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'payment attempt % pays no refund of its rail', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF refund.claimed THEN
        RAISE EXCEPTION 'refund % may be paid already', NEW.refund_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
