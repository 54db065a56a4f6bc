-- Whether the watch has yet to see that a payment's failed transactions moved nothing: it has not read the block of each, or, of one
-- that lacked gas and is replaced without an officer, not the whole life. Before that the word of one node is all there is, and the
-- node may be wrong about the block too, so that another one takes the transaction. Of a swap, the failed transactions of all legs count,
-- each for its whole life: no officer compares the chain before what was collected goes back. Solana counts a life of 150 blocks in
-- blocks, and the watch in slots, of which some are empty.
CREATE OR REPLACE FUNCTION unread_failure(payment uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM chain_attempts a JOIN deposit_cursors c ON c.network = a.network
        WHERE a.payment_id = payment AND a.status = 'failed'
            AND (a.block > c.final_number OR a.last_code = 'OUT_OF_ENERGY' AND a.expires_at > coalesce(c.final_time, '-infinity')))
        OR EXISTS (SELECT FROM chain_payments p JOIN chain_payments o ON o.object_id = p.object_id AND o.purpose IN ('swap_collect', 'swap_payout', 'swap_refund')
            JOIN chain_attempts a ON a.payment_id = o.id AND a.status = 'failed' JOIN deposit_cursors c ON c.network = a.network
            WHERE p.id = payment AND p.purpose LIKE 'swap\_%' AND (a.block > c.final_number OR a.expires_at > coalesce(c.final_time, '-infinity')
                OR a.last_valid_height > 0 AND a.block + 1000 > c.final_number))
$$;
