-- Checks a decision's officer, the exception's status, and the credited account: a merchant for shillings, the owner
-- of the wallet with the money for crypto.
CREATE OR REPLACE FUNCTION check_exception_decision() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    x payment_exceptions;
BEGIN
    PERFORM FROM users WHERE id = NEW.decided_by AND is_active AND role IN ('admin', 'treasury') FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the officer may not decide about exception %', NEW.exception_id USING ERRCODE = 'KV006';
    END IF;
    SELECT * INTO x FROM payment_exceptions WHERE id = NEW.exception_id;
    IF x.status <> NEW.verdict THEN
        RAISE EXCEPTION 'exception % is %, not %', x.id, x.status, NEW.verdict USING ERRCODE = 'KV001';
    END IF;
    IF NEW.verdict = 'credited' AND x.kind IN ('paid_twice', 'reconciliation') THEN
        RAISE EXCEPTION 'exception % has no money to credit', x.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.merchant_id IS NOT NULL AND (x.asset <> 'KES' OR NOT EXISTS (SELECT FROM users WHERE id = NEW.merchant_id AND role = 'vendor')) THEN
        RAISE EXCEPTION 'exception % is not credited to a merchant', x.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.wallet_id IS NOT NULL AND NOT EXISTS (SELECT FROM chain_deposits d JOIN wallets w ON w.id = d.wallet_id
            WHERE d.exception_id = x.id AND d.status = 'final' AND d.wallet_id = NEW.wallet_id AND d.asset = x.asset
                AND d.amount = x.amount AND w.owner_id IS NOT NULL) THEN
        RAISE EXCEPTION 'the money of exception % is not in wallet %', x.id, NEW.wallet_id USING ERRCODE = 'KV002';
    END IF;
    -- Who brings a statement in doesn't turn one of its lines into somebody's money, also not as the second voice.
    IF EXISTS (SELECT FROM bank_lines l JOIN bank_statements s ON s.id = l.statement_id JOIN files f ON f.id = s.file_id
            LEFT JOIN control_changes c ON c.id = NEW.change_id
            WHERE l.id = x.line_id AND (NEW.decided_by IN (s.imported_by, f.uploaded_by) OR c.decided_by IN (s.imported_by, f.uploaded_by))) THEN
        RAISE EXCEPTION 'the officer imported the statement of exception %', x.id USING ERRCODE = 'KV006';
    END IF;
    -- Money that officers typed for a deposit is that deposit's: its line is matched with it.
    PERFORM FROM bank_lines l WHERE l.id = x.line_id FOR NO KEY UPDATE;
    IF EXISTS (SELECT FROM bank_lines l WHERE l.id = x.line_id AND line_typed(l, NULL)) THEN
        RAISE EXCEPTION 'the money of exception % is that of a deposit', x.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
