-- The party that causes the network fees of a payment. Fees for the crypto of an order count for the order's customer
-- and vendor. The house bears the fees of money that it keeps, and of refunds without an order.
CREATE OR REPLACE FUNCTION fee_causer(purpose text, object_id uuid) RETURNS TABLE (user_id uuid, vendor_id uuid) LANGUAGE sql STABLE AS $$
    SELECT o.customer_id, o.vendor_id FROM orders o WHERE $1 IN ('order', 'sweep', 'funding') AND o.id = $2
    UNION ALL SELECT o.customer_id, o.vendor_id FROM refunds f JOIN orders o ON o.id = f.order_id WHERE $1 = 'refund' AND f.id = $2
    UNION ALL SELECT t.requested_by, t.vendor_id FROM transfers t WHERE $1 = 'transfer' AND t.id = $2
    UNION ALL SELECT w.requested_by, w.merchant_id FROM otc_withdrawals w WHERE $1 = 'withdrawal' AND w.id = $2
    UNION ALL SELECT s.requested_by, s.vendor_id FROM swaps s WHERE $1 IN ('swap_collect', 'swap_payout', 'swap_refund') AND s.id = $2
    UNION ALL SELECT p.proposer_id, p.merchant_id FROM multisig_proposals p WHERE $1 = 'proposal' AND p.id = $2 AND p.proposer_id = p.merchant_id
    UNION ALL SELECT f.user_id, f.vendor_id FROM network_fees f WHERE $1 = 'gas' AND f.payment_id = $2
$$;
