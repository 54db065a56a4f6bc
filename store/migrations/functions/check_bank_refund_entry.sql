-- An entry of the ledger about a refund by bank is what the refund means.
CREATE OR REPLACE FUNCTION check_bank_refund_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    what text := substr(NEW.kind, 13);
BEGIN
    IF NOT EXISTS (SELECT FROM refunds f WHERE f.id = NEW.object_id AND f.rail = 'bank' AND NEW.key = 'refund:' || f.id || ':' || what AND bank_refund_entry(f, what)
            AND CASE what WHEN 'due' THEN true WHEN 'paid' THEN f.status = 'completed' WHEN 'returned' THEN f.status = 'failed' END) THEN
        RAISE EXCEPTION 'entry % is of no refund by bank', NEW.key USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
