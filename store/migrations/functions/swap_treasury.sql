-- The treasury wallet of a network, out of which swaps are paid.
CREATE OR REPLACE FUNCTION swap_treasury(of_network text) RETURNS uuid LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT w.id FROM wallets w WHERE w.network = of_network AND w.owner_id IS NULL AND w.purpose = 'treasury' AND w.custody = 'custodial' ORDER BY w.created_at, w.id LIMIT 1);
END $$;
