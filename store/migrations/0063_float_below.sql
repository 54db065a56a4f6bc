-- +goose Up
-- A payout that is proven has left the operator's account whatever our books had reserved by then: of one that was taken
-- for refused, the reservation is free and may serve others. Its booking must not wait for float. So momo_payout alone may
-- fall below what is held of it, by such a booking alone. Nothing more is reserved until it is filled up.

ALTER TABLE ledger_accounts DROP CONSTRAINT ledger_accounts_available,
    ADD CONSTRAINT ledger_accounts_available CHECK (may_go_below OR kind = 'momo_payout' OR posted - held >= 0);

-- apply_lines is as before, and lets no other booking take the float below its holds.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION apply_lines() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    off record;
BEGIN
    SELECT l.entry_id, a.asset, sum(l.amount) AS sum INTO off
        FROM new_lines l JOIN ledger_accounts a ON a.id = l.account_id
        GROUP BY l.entry_id, a.asset HAVING sum(l.amount) <> 0 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'entry % is off by % %', off.entry_id, off.sum, off.asset USING ERRCODE = 'KV003';
    END IF;
    PERFORM FROM new_lines l JOIN ledger_accounts a ON a.id = l.account_id WHERE scale(trim_scale(l.amount)) > asset_scale(a.asset) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'an amount has more decimal places than its asset' USING ERRCODE = 'KV003';
    END IF;
    IF (SELECT count(*) FROM ledger_lines WHERE entry_id = ANY (ARRAY(SELECT DISTINCT entry_id FROM new_lines)))
        <> (SELECT count(*) FROM new_lines) THEN
        RAISE EXCEPTION 'an entry that is booked gets no more lines' USING ERRCODE = 'KV002';
    END IF;
    UPDATE ledger_accounts a
        SET posted = a.posted + CASE WHEN a.debit_normal THEN d.sum ELSE -d.sum END, updated_at = now()
        FROM (SELECT account_id, sum(amount) AS sum FROM new_lines GROUP BY account_id) d
        WHERE a.id = d.account_id;
    IF EXISTS (SELECT FROM new_lines l JOIN ledger_accounts a ON a.id = l.account_id JOIN ledger_entries e ON e.id = l.entry_id
            WHERE a.kind = 'momo_payout' AND a.posted < a.held AND l.amount < 0 AND e.kind NOT IN
                ('order.completed', 'order_payout.paid_twice', 'refund.completed', 'refund.paid_twice', 'payout.charged')) THEN
        RAISE EXCEPTION 'the payout float has too little' USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_accounts_available';
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION refuse_float_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the payout float has too little' USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_accounts_available';
END $$;
-- +goose StatementEnd
CREATE TRIGGER ledger_accounts_float BEFORE UPDATE ON ledger_accounts FOR EACH ROW
    WHEN (NEW.kind = 'momo_payout' AND NEW.held > OLD.held AND NEW.posted < NEW.held) EXECUTE FUNCTION refuse_float_hold();

-- What a payee was promised and paid in a day is counted by the phone.
CREATE INDEX payment_attempts_payee_idx ON payment_attempts (phone, created_at) WHERE direction = 'payout';
CREATE INDEX orders_payee_idx ON orders (payment_phone, created_at) WHERE payment_method = 'momo' AND order_type LIKE 'OFF\_RAMP%';
