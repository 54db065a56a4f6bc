-- A payout of unknown outcome is not refused by an answer to its sending. Two runs of a step may send it under its one
-- id, and the answer to one of them says nothing about the other. What ends it is the operator's answer about the
-- payout itself.
CREATE OR REPLACE FUNCTION refuse_refusal_of_unknown() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'payout % may have been sent by another run of its step', NEW.id USING ERRCODE = 'KV001';
END $$;
