-- Why nothing may be signed for a payment; empty when it may. A freeze and the state of a database that was put back
-- pass; the others last until an officer has decided. What makes a handed-out transaction impossible is signed in both. Of a swap, a
-- leg that was given up and moved money after all holds up the others: the money would go out twice. Nothing leaves a wallet whose owners on
-- the chain are not those that were agreed.
CREATE OR REPLACE FUNCTION payment_hold(payment uuid) RETURNS text LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT CASE
        WHEN EXISTS (SELECT FROM deposit_quarantine q WHERE q.payment_id = p.id AND q.settled_at IS NULL)
            OR p.purpose LIKE 'swap\_%' AND EXISTS (SELECT FROM chain_payments o JOIN deposit_quarantine q ON q.payment_id = o.id AND q.settled_at IS NULL
                WHERE o.object_id = p.object_id AND o.purpose IN ('swap_collect', 'swap_payout', 'swap_refund')) THEN 'unexpected_send'
        WHEN EXISTS (SELECT FROM deposit_quarantine q WHERE q.wallet_id = p.wallet_id AND q.settled_at IS NULL AND q.payment_id IS NULL
            AND q.network = p.network AND q.to_address = p.to_address AND q.asset = p.asset AND q.amount = p.amount) THEN 'sent_before'
        WHEN EXISTS (SELECT FROM deposit_quarantine q WHERE q.wallet_id IN (p.wallet_id, p.fee_wallet_id) AND q.settled_at IS NULL
            AND q.payment_id IS NULL) THEN 'foreign_send'
        WHEN p.purpose = 'proposal' AND NOT EXISTS (SELECT FROM multisig_accounts a WHERE a.id = p.wallet_id AND a.status = 'active') THEN 'account_differs'
        WHEN payment_party_gone(p) THEN 'inactive_account'
        WHEN p.purpose IN ('nonce_account', 'nonce_advance') THEN ''
        WHEN frozen() THEN 'frozen'
        WHEN put_back() THEN 'put_back'
        ELSE '' END
    FROM chain_payments p WHERE p.id = payment);
END $$;
