-- A match names what explains a line, and stays until the line is freed. One by hand is the word of an active officer, which only the
-- API takes, or what the officer who confirms a deposit, a withdrawal or a refund said of it, which is an intent. A journal entry that is being corrected at this
-- moment explains nothing any more: the lock is on the entry, because the correction and the match must not both look before the other
-- is there.
CREATE OR REPLACE FUNCTION guard_line_match() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status = 'matched' AND NEW.status = 'matched' THEN
        RAISE EXCEPTION 'line % is matched already', NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.matched_by IS NOT NULL THEN
        PERFORM FROM users u WHERE u.id = NEW.matched_by AND u.is_active AND CASE NEW.object_type
            WHEN 'otc_deposit' THEN EXISTS (SELECT FROM otc_confirmations c WHERE c.deposit_id = NEW.object_id AND c.line_id = NEW.id
                AND c.officer_id = u.id AND c.withdrawn_at IS NULL)
            ELSE u.role IN ('admin', 'treasury') AND (current_user <> 'kivuko_flows' OR NEW.object_type = 'otc_withdrawal' AND EXISTS (
                SELECT FROM otc_withdrawals w JOIN bank_confirmations c ON c.withdrawal_id = w.id AND c.officer_id = u.id AND c.withdrawn_at IS NULL
                WHERE w.id = NEW.object_id AND w.statement_line_id = NEW.id) OR NEW.object_type = 'bank_refund' AND EXISTS (
                SELECT FROM refunds f JOIN bank_confirmations c ON c.refund_id = f.id AND c.officer_id = u.id AND c.withdrawn_at IS NULL
                WHERE f.id = NEW.object_id AND f.statement_line_id = NEW.id)) END FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'no officer says what explains line %', NEW.id USING ERRCODE = 'KV006';
        END IF;
    END IF;
    IF NEW.object_type = 'journal_entry' THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('kivuko journal entry ' || NEW.object_id, 0));
        IF EXISTS (SELECT FROM journal_entries c WHERE c.corrects = NEW.object_id AND c.line_id IS NULL) THEN
            RAISE EXCEPTION 'journal entry % was a mistake', NEW.object_id USING ERRCODE = 'KV001';
        END IF;
    END IF;
    RETURN NEW;
END $$;
