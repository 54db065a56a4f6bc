-- The steps of a refund by bank: it is released, which counts it, when its money is reserved, and that money may still go back; it was paid when enough officers say so; and it
-- is over unpaid when two officers say so and nobody says otherwise. Its flow alone has it paid. Nothing else of it changes.
CREATE OR REPLACE FUNCTION check_bank_refund_step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    fault text;
BEGIN
    IF OLD.status <> NEW.status AND NEW.status IN ('processing', 'completed') AND current_user IN ('kivuko_api', 'kivuko_momo', 'kivuko_chain', 'kivuko_signer') THEN
        RAISE EXCEPTION '% pays no refund by bank', current_user USING ERRCODE = '42501';
    END IF;
    IF OLD.status <> NEW.status AND NEW.status = 'processing' THEN
        SELECT 'is of money that ' || bank_refundable(x) INTO fault FROM payment_exceptions x WHERE x.id = NEW.exception_id;
        IF fault IS NOT NULL THEN
            RAISE EXCEPTION 'refund % %', NEW.id, fault USING ERRCODE = 'KV006';
        END IF;
    END IF;
    IF OLD.status <> NEW.status AND NEW.status IN ('processing', 'failed') AND put_back() THEN
        RAISE EXCEPTION 'refund % may have been paid before the database was put back', NEW.id USING ERRCODE = 'KV055';
    END IF;
    fault := CASE
        WHEN OLD.status = NEW.status AND (OLD.bank_hold_id, OLD.begun_at, OLD.failure_id, OLD.statement_line_id, OLD.receipt, OLD.completed_at, OLD.reason)
            IS DISTINCT FROM (NEW.bank_hold_id, NEW.begun_at, NEW.failure_id, NEW.statement_line_id, NEW.receipt, NEW.completed_at, NEW.reason) THEN 'changes without a step'
        WHEN OLD.status = NEW.status THEN NULL
        WHEN NEW.status = 'processing' AND (OLD.status <> 'pending' OR NOT EXISTS (SELECT FROM releases r WHERE r.purpose = 'refund' AND r.object_id = NEW.id AND r.ended_at IS NULL
            AND r.passed_in = pg_current_xact_id())) THEN 'is not released'
        WHEN NEW.status = 'completed' AND NEW.statement_line_id IS NOT NULL AND NOT EXISTS (SELECT FROM bank_lines l JOIN bank_confirmations c ON c.refund_id = NEW.id AND c.withdrawn_at IS NULL
                JOIN intents i ON i.id = c.id AND convert_from(i.statement, 'UTF8')::jsonb -> 'terms' ->> 'line_id' = l.id::text
            WHERE l.id = NEW.statement_line_id AND (l.side, l.asset, l.amount) = ('debit', 'KES', NEW.amount) AND NEW.receipt IN (l.bank_reference, l.reference_code))
            THEN 'names a line that does not show it'
        WHEN NEW.status = 'completed' AND EXISTS (SELECT FROM bank_confirmations c WHERE c.refund_id = NEW.id AND c.withdrawn_at IS NULL AND c.reference <> NEW.receipt)
            THEN 'has another reference'
        WHEN NEW.status = 'completed' AND NOT refund_confirmed(NEW) THEN 'lacks a second officer, or a line of a statement'
        WHEN NEW.status = 'failed' AND NOT EXISTS (SELECT FROM control_changes c WHERE c.id = NEW.failure_id AND c.kind = 'bank_refund_failure'
            AND c.applied_in = pg_current_xact_id() AND c.change ->> 'refund_id' = NEW.id::text) THEN 'is ended by nobody who may'
        WHEN NEW.status = 'failed' AND EXISTS (SELECT FROM bank_confirmations c WHERE c.refund_id = NEW.id AND c.withdrawn_at IS NULL) THEN 'was paid, as an officer says'
        WHEN NEW.status = 'failed' AND refund_shown(OLD) IS NOT NULL THEN 'was paid, as a statement of the bank shows'
        WHEN NEW.status NOT IN ('processing', 'completed', 'failed') OR OLD.status = 'failed' THEN 'can''t be ' || NEW.status
    END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'refund % %', NEW.id, fault USING ERRCODE = 'KV006';
    END IF;
    RETURN NEW;
END $$;
