-- At the end of the transaction the fees of a sweep are held in its wallet as long as it is open, used when its payment is
-- completed, and free when it was given up. Whoever changes that hold is asked the same. Shillings are booked from what the house
-- earned to its capital, and no more of them than it earned.
CREATE OR REPLACE FUNCTION check_fee_sweep_booking() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    s fee_sweeps;
BEGIN
    IF TG_TABLE_NAME = 'holds' THEN
        SELECT * INTO s FROM fee_sweeps WHERE id = OLD.object_id;
    ELSE
        SELECT * INTO s FROM fee_sweeps WHERE id = NEW.id;
    END IF;
    IF s.asset = 'KES' THEN
        IF s.status <> 'completed' OR NOT EXISTS (SELECT FROM ledger_entries e WHERE e.id = entry_of('fee_sweep:' || s.id) AND e.kind = 'fee_sweep.booked'
                AND (SELECT array_agg((a.code, l.amount::numeric) ORDER BY a.code) FROM ledger_lines l JOIN ledger_accounts a ON a.id = l.account_id WHERE l.entry_id = e.id)
                    = ARRAY[('capital:house:KES'::text, -s.amount::numeric), ('fees:house:KES'::text, s.amount::numeric)]) THEN
            RAISE EXCEPTION 'fee sweep % is not booked as it says', s.id USING ERRCODE = 'KV002';
        END IF;
        IF (SELECT a.posted FROM ledger_accounts a WHERE a.code = 'fees:house:KES') < 0 THEN
            RAISE EXCEPTION 'fee sweep % takes more than the house earned', s.id USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_accounts_available';
        END IF;
        RETURN NULL;
    END IF;
    IF NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = s.hold_id AND h.object_type = 'fee_sweep' AND h.object_id = s.id
            AND h.placed = s.amount AND (h.status <> 'held' OR h.amount = h.placed) AND a.kind = 'wallet_fees' AND a.owner_id = s.wallet_id AND a.asset = s.asset
            AND h.status = CASE s.status WHEN 'completed' THEN 'captured' WHEN 'cancelled' THEN 'released' ELSE 'held' END) THEN
        RAISE EXCEPTION 'fee sweep % is % and the hold of its fees does not match', s.id, s.status USING ERRCODE = 'KV002';
    END IF;
    IF s.status = 'completed' AND NOT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'fee_sweep' AND p.object_id = s.id AND p.status = 'completed') THEN
        RAISE EXCEPTION 'fee sweep % has no completed payment', s.id USING ERRCODE = 'KV001';
    END IF;
    IF s.status = 'cancelled' AND EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'fee_sweep' AND p.object_id = s.id AND p.status <> 'cancelled') THEN
        RAISE EXCEPTION 'the payment of fee sweep % may still move money', s.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
