-- An entry of the ledger about a deposit is what the deposit means, and only one takes its money out of flight.
CREATE OR REPLACE FUNCTION check_deposit_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    what text := substr(NEW.kind, 13);
BEGIN
    IF NOT EXISTS (SELECT FROM otc_deposits d WHERE d.id = NEW.object_id AND d.received_at IS NOT NULL AND NEW.key = 'otc_deposit:' || d.id || ':' || what AND deposit_entry(d, what)
            AND CASE what
                WHEN 'received' THEN d.method = 'bank'
                WHEN 'settled' THEN d.asset = 'KES' AND d.status IN ('credited', 'audited')
                WHEN 'sold' THEN d.asset <> 'KES' AND d.status IN ('credited', 'audited')
                WHEN 'returned' THEN d.status IN ('rejected', 'cancelled')
            END) THEN
        RAISE EXCEPTION 'entry % is of no deposit', NEW.key USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
