-- At the end of the transaction, because holds are written last: the money of a refund by bank is reserved at one bank while it is on its way,
-- was used up when it was paid, and is free when it was not; its exception follows it; and what happened is booked. Whoever changes its hold is
-- asked the same.
CREATE OR REPLACE FUNCTION check_bank_refund_money() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    f refunds;
BEGIN
    IF TG_TABLE_NAME = 'holds' THEN
        SELECT * INTO f FROM refunds WHERE id = OLD.object_id AND rail = 'bank';
    ELSE
        SELECT * INTO f FROM refunds WHERE id = NEW.id;
    END IF;
    IF f.id IS NULL THEN
        RETURN NULL; -- crypto
    END IF;
    IF f.bank_hold_id IS NOT NULL AND NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = f.bank_hold_id AND h.object_type = 'refund'
            AND h.object_id = f.id AND h.placed = f.amount AND (h.status <> 'held' OR h.amount = h.placed) AND a.kind = 'bank' AND a.asset = 'KES'
            AND h.status = CASE f.status WHEN 'processing' THEN 'held' WHEN 'completed' THEN 'captured' ELSE 'released' END) THEN
        RAISE EXCEPTION 'the money of refund % at the bank does not match its state', f.id USING ERRCODE = 'KV002';
    END IF;
    IF NOT bank_refund_entry(f, 'due') OR f.status = 'completed' AND NOT bank_refund_entry(f, 'paid') OR f.status = 'failed' AND NOT bank_refund_entry(f, 'returned') THEN
        RAISE EXCEPTION 'refund % is not booked as it is %', f.id, f.status USING ERRCODE = 'KV002';
    END IF;
    IF NOT exception_goes_back(f.exception_id) THEN
        RAISE EXCEPTION 'exception % does not follow refund %', f.exception_id, f.id USING ERRCODE = 'KV006';
    END IF;
    IF f.statement_line_id IS NOT NULL AND NOT EXISTS (SELECT FROM bank_lines l WHERE l.id = f.statement_line_id AND l.status = 'matched'
            AND l.object_type = 'bank_refund' AND l.object_id = f.id) THEN
        RAISE EXCEPTION 'refund % names a line that does not show it', f.id USING ERRCODE = 'KV002';
    END IF;
    IF f.status = 'failed' AND EXISTS (SELECT FROM releases r WHERE r.purpose = 'refund' AND r.object_id = f.id AND r.ended_at IS NULL) THEN
        RAISE EXCEPTION 'refund % moves nothing and its release still counts', f.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
