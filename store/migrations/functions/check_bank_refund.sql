-- A refund by bank is opened in the transaction in which a second officer confirmed exactly it: all the money of an exception, to the
-- account that both saw, while the exception is as they saw it. None of them brought in the statement that shows the money. It goes back where it came from; another account, or one
-- where no line names the sender's, has a reason.
CREATE OR REPLACE FUNCTION check_bank_refund() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    x    payment_exceptions;
    c    control_changes;
    came record;
BEGIN
    SELECT * INTO c FROM control_changes o WHERE o.id = NEW.change_id AND o.kind = 'bank_refund' AND o.applied_in = pg_current_xact_id() AND o.proposed_by = NEW.requested_by
        AND (o.change ->> 'id', o.change ->> 'exception_id', left(o.change ->> 'note', 200), o.change ->> 'payee_reason')
            IS NOT DISTINCT FROM (NEW.id::text, NEW.exception_id::text, NEW.reason, NEW.payee_reason)
        AND (o.change ->> 'bank_name', o.change ->> 'bank_code', o.change ->> 'branch', o.change ->> 'swift_code', o.change ->> 'account_name', o.change ->> 'account_number')
            IS NOT DISTINCT FROM (NEW.bank_name, NEW.bank_code, NEW.branch, NEW.swift_code, NEW.account_name, NEW.account_number);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no second officer confirmed refund %', NEW.id USING ERRCODE = 'KV006';
    END IF;
    SELECT * INTO x FROM payment_exceptions e WHERE e.id = NEW.exception_id AND e.status = 'refunding' AND e.asset = NEW.asset AND e.amount = NEW.amount FOR SHARE;
    IF NOT FOUND OR NEW.status <> 'pending' THEN
        RAISE EXCEPTION 'refund % does not match exception %', NEW.id, NEW.exception_id USING ERRCODE = 'KV002';
    END IF;
    IF (c.was ->> 'version')::bigint + 1 IS DISTINCT FROM x.version THEN
        RAISE EXCEPTION 'exception % has changed since refund % was proposed', x.id, NEW.id USING ERRCODE = 'KV006';
    END IF;
    SELECT * INTO came FROM refund_sender(x);
    PERFORM FROM bank_lines l WHERE l.id = came.line_id FOR NO KEY UPDATE;
    IF bank_refundable(x) IS NOT NULL THEN
        RAISE EXCEPTION 'the money of exception % %', x.id, bank_refundable(x) USING ERRCODE = 'KV001';
    END IF;
    IF came.account IS DISTINCT FROM NEW.account_number AND NEW.payee_reason = '' THEN
        RAISE EXCEPTION 'refund % goes to another account without a reason', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF EXISTS (SELECT FROM bank_lines l JOIN bank_statements s ON s.id = l.statement_id JOIN files f ON f.id = s.file_id
            WHERE l.id = came.line_id AND (c.proposed_by IN (s.imported_by, f.uploaded_by) OR c.decided_by IN (s.imported_by, f.uploaded_by))) THEN
        RAISE EXCEPTION 'the officer imported the statement of exception %', x.id USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
