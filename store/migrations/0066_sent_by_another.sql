-- +goose Up
-- A payout of unknown outcome is not refused by an answer to its sending. Two runs of a step may send it under its one
-- id, and what the operator says to one of them is no word about the other. What ends it is the operator's word about
-- the payout itself.
-- +goose StatementBegin
CREATE FUNCTION refuse_refusal_of_unknown() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'payout % may have been sent by another run of its step', NEW.id USING ERRCODE = 'KV001';
END $$;
-- +goose StatementEnd
CREATE TRIGGER payment_attempts_sent BEFORE UPDATE ON payment_attempts FOR EACH ROW
    WHEN (NEW.direction = 'payout' AND OLD.status = 'unknown' AND NEW.status = 'refused') EXECUTE FUNCTION refuse_refusal_of_unknown();
