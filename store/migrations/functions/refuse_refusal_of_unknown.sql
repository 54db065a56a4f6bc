-- The response to a submission does not refuse a payout of unknown outcome. Two runs of a step may send it under its
-- one id, and the response to one says nothing about the other. Only the provider's report about the payout itself
-- settles it.
CREATE OR REPLACE FUNCTION refuse_refusal_of_unknown() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'payout % may have been sent by another run of its step', NEW.id USING ERRCODE = 'KV001';
END $$;
