-- Reports whether the latest screening of the recipient of a payment says that it may be paid. Who has a wallet in our
-- custody is known to us and is not screened.
CREATE OR REPLACE FUNCTION recipient_cleared(p chain_payments) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM wallets w WHERE w.network = p.network AND w.address = p.to_address)
        OR coalesce((SELECT s.verdict = 'clear' FROM screenings s WHERE s.payment_id = p.id OR (p.purpose = 'transfer' AND s.transfer_id = p.object_id)
            ORDER BY s.at DESC, s.id DESC LIMIT 1), false)
$$;
