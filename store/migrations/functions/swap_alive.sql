-- Reports whether a leg of a swap may still move money, or did: a payment that was not given up.
CREATE OR REPLACE FUNCTION swap_alive(swap uuid, leg text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = leg AND p.object_id = swap AND p.status <> 'cancelled')
$$;
