-- The terms of the release of a refund, of a withdrawal, of a swap, of a proposal, or of a payout of an order, as they follow from its rows. An order or a payment
-- exception whose refund is not opened yet has the terms that a refund by mobile money would have that an officer requests.
-- A sum applies where a person chose what leaves, or where nothing proven came in for it: what officers return counts with
-- all that they return, what they pay by bank with all that they pay. Both officers of a refund by bank chose it, so none of them
-- is its requester.
CREATE OR REPLACE FUNCTION release_terms(purpose text, object uuid) RETURNS releases LANGUAGE plpgsql STABLE AS $$
DECLARE
    r releases;
BEGIN
    SELECT * INTO r FROM releases o WHERE o.purpose = $1 AND o.object_id = object AND o.ended_at IS NULL;
    r.id := coalesce(r.id, '00000000-0000-0000-0000-000000000000');
    r.purpose := purpose;
    r.object_id := object;
    r.house := false;
    r.inside := false;
    r.at_opening := coalesce(r.at_opening, 0);
    IF purpose = 'payout' THEN
        SELECT NULL, CASE p.rail WHEN 'momo' THEN 'momo_payout' ELSE 'bank' END, NULL, p.amount, CASE p.rail WHEN 'momo' THEN 'sale' ELSE '' END,
                p.rail || ':' || CASE p.rail WHEN 'momo' THEN p.phone ELSE o.beneficiary ->> 'AccountNumber' END
            INTO r.owner_id, r.source, r.requester_id, r.value, r.exempt, r.recipient
            FROM order_payouts p JOIN orders o ON o.id = p.id WHERE p.id = object;
        RETURN r;
    END IF;
    IF purpose = 'swap' THEN
        SELECT s.vendor_id IS NULL AND s.owner_id IS NULL, coalesce(s.vendor_id, s.owner_id), s.wallet_id::text, s.requested_by, s.value,
                CASE WHEN coalesce(s.vendor_id, s.owner_id) IS NULL THEN 'own' ELSE '' END, true, coalesce('user:' || coalesce(s.vendor_id, s.owner_id)::text, 'house')
            INTO r.house, r.owner_id, r.source, r.requester_id, r.value, r.exempt, r.inside, r.recipient
            FROM swaps s WHERE s.id = object;
        RETURN r;
    END IF;
    IF purpose = 'proposal' THEN
        SELECT true, NULL, p.wallet_id::text, p.proposer_id, p.value, CASE WHEN w.id IS NOT NULL AND w.owner_id IS NULL THEN 'own' ELSE '' END, w.id IS NOT NULL,
                CASE WHEN w.id IS NULL THEN p.network || ':' || p.destination ELSE coalesce('user:' || coalesce(w.vendor_id, w.owner_id)::text, 'house') END
            INTO r.house, r.owner_id, r.source, r.requester_id, r.value, r.exempt, r.inside, r.recipient
            FROM multisig_proposals p LEFT JOIN wallets w ON w.id = p.to_wallet_id WHERE p.id = object;
        RETURN r;
    END IF;
    IF purpose = 'withdrawal' THEN
        SELECT w.merchant_id, CASE WHEN w.source_wallet_id IS NOT NULL THEN w.source_wallet_id::text
                    WHEN w.method = 'chain' THEN (SELECT h.id::text FROM wallets h WHERE h.network = d.network AND h.owner_id IS NULL AND h.purpose = 'treasury' ORDER BY h.created_at, h.id LIMIT 1)
                    WHEN w.method = 'momo' THEN 'momo_payout' ELSE 'bank' END,
                w.requested_by, w.value, '', i.id IS NOT NULL,
                CASE WHEN i.id IS NULL THEN d.recipient ELSE 'user:' || coalesce(i.vendor_id, i.owner_id) END
            INTO r.owner_id, r.source, r.requester_id, r.value, r.exempt, r.inside, r.recipient
            FROM otc_withdrawals w JOIN otc_destinations d ON d.id = w.destination_id LEFT JOIN wallets i ON i.network = d.network AND i.address = d.address AND i.owner_id IS NOT NULL
            WHERE w.id = object;
        RETURN r;
    END IF;
    SELECT o.customer_id, CASE WHEN f.rail = 'bank' THEN 'bank' WHEN f.rail = 'momo' AND (f.requested_by IS NOT NULL OR x.chosen) THEN 'momo_payout'
                WHEN f.rail = 'chain' AND num_nonnulls(f.requested_by, f.addressed_by) > 0 THEN 'escrow' END,
            CASE WHEN f.rail <> 'bank' THEN f.requested_by END, CASE f.rail WHEN 'chain' THEN f.value ELSE f.amount END,
            CASE WHEN f.rail = 'momo' AND f.requested_by IS NULL AND NOT x.chosen AND e.kind IN ('under', 'over') THEN 'surplus' ELSE '' END,
            CASE WHEN f.rail = 'momo' THEN 'momo:' || f.phone WHEN f.rail = 'bank' THEN 'bank:' || f.account_number WHEN f.address <> '' THEN f.network || ':' || f.address END
        INTO r.owner_id, r.source, r.requester_id, r.value, r.exempt, r.recipient
        FROM refunds f LEFT JOIN orders o ON o.id = f.order_id LEFT JOIN payment_exceptions e ON e.id = f.exception_id, payee_chosen(f) AS x(chosen) WHERE f.id = object;
    IF NOT FOUND THEN
        SELECT o.customer_id, 'momo_payout', NULL, d.amount, '', 'momo:' || d.phone
            INTO r.owner_id, r.source, r.requester_id, r.value, r.exempt, r.recipient
            FROM (SELECT p.id AS order_id, p.fiat_amount AS amount, coalesce(p.payment_phone, '') AS phone FROM orders p WHERE p.id = object
                UNION ALL SELECT e.order_id, e.amount, a.phone FROM payment_exceptions e JOIN payment_attempts a ON a.id = e.attempt_id WHERE e.id = object) d
            LEFT JOIN orders o ON o.id = d.order_id;
    END IF;
    RETURN r;
END $$;
