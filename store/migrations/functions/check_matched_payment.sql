-- The exception of a payment to our number ends as matched only with its payment, whose money leaves suspense for the deposit.
CREATE OR REPLACE FUNCTION check_matched_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM c2b_payments p JOIN otc_deposits d ON d.id = p.object_id AND p.object_type = 'otc_deposit' JOIN ledger_entries e ON e.id = entry_of('exception:' || NEW.id || ':matched')
            WHERE p.exception_id = NEW.id AND p.status = 'matched' AND p.amount = NEW.amount AND d.momo_receipt = p.receipt AND e.kind = 'payment.matched' AND e.object_id = NEW.id
                AND (SELECT array_agg((a.code, n.amount::numeric) ORDER BY a.code) FROM ledger_lines n JOIN ledger_accounts a ON a.id = n.account_id WHERE n.entry_id = e.id)
                    = ARRAY[('orders_in_flight:house:KES'::text, -NEW.amount::numeric), ('suspense:house:KES'::text, NEW.amount::numeric)]) THEN
        RAISE EXCEPTION 'exception % is matched with no payment', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
