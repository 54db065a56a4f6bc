-- Why nothing may be signed for a payment until an officer has decided; empty when it may.
CREATE OR REPLACE FUNCTION payment_hold(payment uuid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN EXISTS (SELECT FROM deposit_quarantine q WHERE q.payment_id = p.id AND q.settled_at IS NULL) THEN 'unexpected_send'
        WHEN EXISTS (SELECT FROM deposit_quarantine q WHERE q.wallet_id = p.wallet_id AND q.settled_at IS NULL AND q.payment_id IS NULL
            AND q.network = p.network AND q.to_address = p.to_address AND q.asset = p.asset AND q.amount = p.amount) THEN 'sent_before'
        WHEN EXISTS (SELECT FROM deposit_quarantine q WHERE q.wallet_id IN (p.wallet_id, p.fee_wallet_id) AND q.settled_at IS NULL
            AND q.payment_id IS NULL) THEN 'foreign_send'
        ELSE '' END
    FROM chain_payments p WHERE p.id = payment
$$;
