-- At the end of the transaction, because holds are written last: a withdrawal's money is held where it is while it is open, was used up when
-- it is completed, and is free when it ended otherwise; what was sold, paid and bought is booked. Whoever changes a hold of a withdrawal is
-- asked the same.
CREATE OR REPLACE FUNCTION check_withdrawal_money() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    w     otc_withdrawals;
    state text;
BEGIN
    IF TG_TABLE_NAME = 'holds' THEN
        SELECT * INTO w FROM otc_withdrawals WHERE id = OLD.object_id;
    ELSE
        SELECT * INTO w FROM otc_withdrawals WHERE id = NEW.id;
    END IF;
    state := CASE w.status WHEN 'completed' THEN 'captured' WHEN 'rejected' THEN 'released' WHEN 'cancelled' THEN 'released' WHEN 'failed' THEN 'released' ELSE 'held' END;
    IF NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = w.hold_id AND h.status = state AND h.object_type = 'otc_withdrawal' AND h.object_id = w.id
            AND h.placed = CASE WHEN w.sold_at IS NULL THEN w.source_amount ELSE w.payout_amount END AND (h.status <> 'held' OR h.amount = h.placed)
            AND a.code = CASE WHEN w.source_asset <> 'KES' AND w.sold_at IS NULL THEN 'wallet_balance:' || w.source_wallet_id || ':' || w.source_asset
                ELSE 'fiat_balance:' || w.merchant_id || ':KES' END) THEN
        RAISE EXCEPTION 'the money of withdrawal % is not %', w.id, state USING ERRCODE = 'KV002';
    END IF;
    IF w.house_hold_id IS NOT NULL AND NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = w.house_hold_id
            AND h.object_type = 'otc_withdrawal' AND h.object_id = w.id AND h.placed = w.payout_amount + w.fee_amount AND (h.status <> 'held' OR h.amount = h.placed)
            AND a.code = 'fiat_balance:00000000-0000-7000-8000-6b6976756b6f:KES'
            AND h.status = CASE WHEN w.sold_at IS NOT NULL THEN 'captured' ELSE state END) THEN
        RAISE EXCEPTION 'the shillings that buy the crypto of withdrawal % are not held', w.id USING ERRCODE = 'KV002';
    END IF;
    IF w.bank_hold_id IS NOT NULL AND NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = w.bank_hold_id
            AND h.object_type = 'otc_withdrawal' AND h.object_id = w.id AND h.placed = w.payout_amount AND (h.status <> 'held' OR h.amount = h.placed)
            AND a.kind = 'bank' AND a.asset = 'KES'
            AND h.status = CASE w.status WHEN 'confirming' THEN 'held' WHEN 'completed' THEN 'captured' ELSE 'released' END)
        OR w.method = 'bank' AND w.status IN ('confirming', 'completed') AND w.bank_hold_id IS NULL THEN
        RAISE EXCEPTION 'the money of withdrawal % at the bank does not match its state', w.id USING ERRCODE = 'KV002';
    END IF;
    IF w.sold_at IS NOT NULL AND NOT (withdrawal_entry(w, 'sold') AND EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'withdrawal' AND p.object_id = w.id AND p.status = 'completed'))
        OR w.status = 'completed' AND NOT withdrawal_entry(w, CASE w.method WHEN 'chain' THEN 'bought' ELSE 'paid' END) THEN
        RAISE EXCEPTION 'withdrawal % is not booked as it is %', w.id, w.status USING ERRCODE = 'KV002';
    END IF;
    IF w.status = 'completed' AND w.statement_line_id IS NOT NULL AND NOT EXISTS (SELECT FROM bank_lines l WHERE l.id = w.statement_line_id AND l.status = 'matched'
            AND l.object_type = 'otc_withdrawal' AND l.object_id = w.id) THEN
        RAISE EXCEPTION 'withdrawal % names a line that does not show it', w.id USING ERRCODE = 'KV002';
    END IF;
    IF w.status IN ('rejected', 'cancelled', 'failed') AND EXISTS (SELECT FROM releases r WHERE r.purpose = 'withdrawal' AND r.object_id = w.id AND r.ended_at IS NULL) THEN
        RAISE EXCEPTION 'withdrawal % moves nothing and its release still counts', w.id USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
