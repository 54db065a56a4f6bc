-- Reports whether a leg of a swap is final: swap_collect, swap_payout or swap_refund.
CREATE OR REPLACE FUNCTION swap_paid(swap uuid, leg text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM chain_payments p WHERE p.purpose = leg AND p.object_id = swap AND p.status = 'completed');
END $$;
