-- How many of the escrow addresses of a network that are lent next get gas ahead of need: as many as were lent in the last three minutes,
-- one until the next run, one until the top-ups are in blocks, and one for sales that grow. Leases have the time of a process; whatever it
-- is, there are no more than the policy allows.
CREATE OR REPLACE FUNCTION escrow_ahead(of_network text) RETURNS int LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT greatest(p.free, least(p.free_most, (SELECT count(*) FROM escrow_leases l JOIN escrow_addresses a ON a.id = l.wallet_id
            WHERE a.network = p.network AND l.leased_at > now() - interval '3 minutes')))
        FROM gas_policy p WHERE p.network = of_network);
END $$;
