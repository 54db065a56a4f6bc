-- What the giving up of a payment waits for, which releases its money; empty when nothing. In a database that was put back, and before the
-- watch has read again what was signed before it was away, the payment may have been made without this database knowing. Of one that
-- failed, see unread_life.
CREATE OR REPLACE FUNCTION giving_up_waits(payment uuid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN put_back() THEN 'put_back'
        WHEN EXISTS (SELECT FROM chain_payments p JOIN deposit_looks l ON l.network = p.network LEFT JOIN deposit_cursors c ON c.network = p.network
            WHERE p.id = payment AND (l.identity <> database_identity() OR l.resumed_at IS NOT NULL AND NOT coalesce(l.passed <= c.final_number, false))) THEN 'watch'
        WHEN unread_life(payment) THEN 'unread'
        ELSE '' END
$$;
