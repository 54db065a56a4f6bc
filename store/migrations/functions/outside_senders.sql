-- All possible senders of a deposit except wallets in our own custody, which are not screened; and those of their token
-- accounts that are on the deny list.
CREATE OR REPLACE FUNCTION outside_senders(d chain_deposits) RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT DISTINCT a FROM unnest(d.from_address || d.other_senders) a
    WHERE NOT EXISTS (SELECT FROM wallets w WHERE w.network = d.network AND w.address = a)
    UNION SELECT l.address FROM deny_list l WHERE l.network = d.network AND l.address = ANY (d.sender_accounts) AND l.removed_at IS NULL
$$;
