-- Reports whether a leg of a swap is final: swap_collect, swap_payout or swap_refund.
CREATE OR REPLACE FUNCTION swap_paid(swap uuid, leg text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = leg AND p.object_id = swap AND p.status = 'completed')
$$;
