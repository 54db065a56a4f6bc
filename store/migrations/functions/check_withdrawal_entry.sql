-- An entry of the ledger about a withdrawal is what the withdrawal means.
CREATE OR REPLACE FUNCTION check_withdrawal_entry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    what text := substr(NEW.kind, 16);
BEGIN
    IF NOT EXISTS (SELECT FROM otc_withdrawals w WHERE w.id = NEW.object_id AND NEW.key = 'otc_withdrawal:' || w.id || ':' || what AND withdrawal_entry(w, what)
            AND CASE what
                WHEN 'sold' THEN w.sold_at IS NOT NULL
                WHEN 'paid' THEN w.payout_asset = 'KES' AND w.status = 'completed'
                WHEN 'bought' THEN w.payout_asset <> 'KES' AND w.status = 'completed'
            END) THEN
        RAISE EXCEPTION 'entry % is of no withdrawal', NEW.key USING ERRCODE = 'KV006';
    END IF;
    RETURN NULL;
END $$;
