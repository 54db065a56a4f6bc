-- Whether the watch has yet to see that a payment's failed transactions moved nothing: it has not read the block of each, or, of one
-- that lacked gas and is replaced without an officer, not the whole life. Before that the word of one node is all there is, and the
-- node may be wrong about the block too, so that another one takes the transaction.
CREATE OR REPLACE FUNCTION unread_failure(payment uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM chain_attempts a JOIN deposit_cursors c ON c.network = a.network
        WHERE a.payment_id = payment AND a.status = 'failed'
            AND (a.block > c.final_number OR a.last_code = 'OUT_OF_ENERGY' AND a.expires_at > coalesce(c.final_time, '-infinity')))
$$;
