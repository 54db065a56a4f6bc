-- What the giving up of a payment waits for, which releases its money; empty when nothing. In a database that was put back, and before the
-- watch has read again what was signed before it was away, the payment may have been made without this database knowing. Of one that
-- failed, see unread_life. That a payload of a proposal can't be executed is one node's word too: the watch has to have read all that was final
-- when the node said so, and on TRON the payload's whole life.
CREATE OR REPLACE FUNCTION giving_up_waits(payment uuid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN put_back() THEN 'put_back'
        WHEN EXISTS (SELECT FROM chain_payments p JOIN deposit_looks l ON l.network = p.network LEFT JOIN deposit_cursors c ON c.network = p.network
            WHERE p.id = payment AND (l.identity <> database_identity() OR l.resumed_at IS NOT NULL AND NOT coalesce(l.passed <= c.final_number, false))) THEN 'watch'
        WHEN unread_life(payment) OR EXISTS (SELECT FROM multisig_payloads y LEFT JOIN deposit_cursors c ON c.network = y.network
            WHERE y.payment_id = payment AND y.status = 'void' AND NOT coalesce(CASE y.network WHEN 'tron' THEN y.expires_at ELSE y.updated_at END <= c.final_time, false)) THEN 'unread'
        ELSE '' END
$$;
