-- Shillings of the platform's own treasury move only with the agreement of two officers.
CREATE OR REPLACE FUNCTION check_allocation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM control_changes c WHERE c.id = NEW.object_id AND c.kind = 'treasury_allocation' AND c.applied_in = pg_current_xact_id()
            AND NEW.key = 'treasury.allocated:' || c.id
            AND (SELECT -sum(l.amount) FROM ledger_lines l JOIN ledger_accounts a ON a.id = l.account_id
                 WHERE l.entry_id = NEW.id AND a.kind = 'fiat_balance') = (c.change ->> 'amount')::numeric) THEN
        RAISE EXCEPTION 'no second officer confirmed the allocation %', NEW.key USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
