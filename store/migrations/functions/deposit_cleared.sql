-- Reports whether the latest screening of a deposit's senders accepts it, and none of them was put on the deny list
-- since. Crypto from our own custody needs no screening.
CREATE OR REPLACE FUNCTION deposit_cleared(d chain_deposits) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (SELECT FROM outside_senders(d))
        OR coalesce((SELECT s.verdict = 'clear' FROM screenings s WHERE s.deposit_id = d.id ORDER BY s.at DESC, s.id DESC LIMIT 1), false)
            AND NOT EXISTS (SELECT FROM outside_senders(d) a JOIN deny_list l ON l.network = d.network AND l.address = a WHERE l.removed_at IS NULL)
$$;
