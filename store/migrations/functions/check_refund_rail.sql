-- An attempt begins only for a refund by mobile money that is under way, to its payee, over its amount, and while there is
-- no claim that an earlier one has paid. A refund in crypto is never paid by mobile money.
CREATE OR REPLACE FUNCTION check_refund_rail() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    refund refunds;
BEGIN
    SELECT * INTO refund FROM refunds f WHERE f.id = NEW.object_id AND f.rail = 'momo' AND f.asset = NEW.asset
        AND f.amount = NEW.amount AND f.phone = NEW.phone FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'payment attempt % does not match a refund by mobile money', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF refund.claimed OR refund.status <> 'processing' THEN
        RAISE EXCEPTION 'refund % is % or may be paid already', NEW.object_id, refund.status USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
