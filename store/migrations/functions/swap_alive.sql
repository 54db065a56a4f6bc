-- Reports whether a leg of a swap may still move money, or did: a payment that was not given up.
CREATE OR REPLACE FUNCTION swap_alive(swap uuid, leg text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM chain_payments p WHERE p.purpose = leg AND p.object_id = swap AND p.status <> 'cancelled');
END $$;
