-- What an officer said of a deposit's money was asked for by that officer in these words. A reference that is typed is of no line that
-- something else explains, or about which an officer decided. The line is locked, as by a decision about it.
CREATE OR REPLACE FUNCTION check_deposit_confirmation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said jsonb := intent_terms(NEW.id, 'deposit.confirm', NEW.deposit_id, NEW.officer_id);
BEGIN
    IF NEW.withdrawn_at IS NOT NULL OR NOT coalesce(split_part(said ->> 'received', ' ', 1)::numeric = NEW.amount
            AND (said ->> 'value_date')::timestamptz AT TIME ZONE 'UTC' = NEW.value_date::timestamp
            AND said ->> 'line_id' IS NOT DISTINCT FROM NEW.line_id::text
            AND (NEW.line_id IS NOT NULL OR upper(regexp_replace(said ->> 'reference', '[^0-9A-Za-z]', '', 'g')) = NEW.reference), false) THEN
        RAISE EXCEPTION 'confirmation % is not what the officer said', NEW.id USING ERRCODE = 'KV002';
    END IF;
    PERFORM FROM bank_lines l WHERE NEW.line_id IS NULL AND l.bank_account_id = NEW.bank_account_id AND l.bank_reference = NEW.reference AND l.amount = NEW.amount FOR SHARE;
    IF NEW.line_id IS NULL AND EXISTS (SELECT FROM bank_lines l WHERE l.bank_account_id = NEW.bank_account_id AND l.bank_reference = NEW.reference AND l.side = 'credit'
            AND l.amount = NEW.amount AND (l.status = 'matched' AND (l.object_type, l.object_id) IS DISTINCT FROM ('otc_deposit', NEW.deposit_id)
                OR EXISTS (SELECT FROM payment_exceptions x WHERE x.line_id = l.id AND x.status NOT IN ('open', 'matched')))) THEN
        RAISE EXCEPTION 'the reference of confirmation % is that of other money', NEW.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
