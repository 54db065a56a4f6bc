-- Reports whether the latest screening of who sent a deposit says that it may be taken, and none of them has come on
-- the deny list since. What came out of our own custody needs no screening.
CREATE OR REPLACE FUNCTION deposit_cleared(d chain_deposits) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT FROM outside_senders(d))
        OR coalesce((SELECT s.verdict = 'clear' FROM screenings s WHERE s.deposit_id = d.id ORDER BY s.at DESC, s.id DESC LIMIT 1), false)
            AND NOT EXISTS (SELECT FROM outside_senders(d) a JOIN deny_list l ON l.network = d.network AND l.address = a WHERE l.removed_at IS NULL)
$$;
