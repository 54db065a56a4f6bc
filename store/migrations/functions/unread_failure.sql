-- Whether the watch has yet to see that a payment's failed transactions moved nothing: it has not read the block of each, or, of one
-- that lacked gas and is replaced without an officer, not the whole life. Before that the word of one node is all there is, and the
-- node may be wrong about the block too, so that another one takes the transaction. Of a swap, the failed transactions of all legs count,
-- each for its whole life: no officer compares the chain before what was collected goes back.
CREATE OR REPLACE FUNCTION unread_failure(payment uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM chain_attempts a JOIN deposit_cursors c ON c.network = a.network
        WHERE a.payment_id = payment AND a.status = 'failed'
            AND (a.block > c.final_number OR a.last_code = 'OUT_OF_ENERGY' AND a.expires_at > coalesce(c.final_time, '-infinity')))
        OR EXISTS (SELECT FROM chain_payments p WHERE p.id = payment AND p.purpose LIKE 'swap\_%' AND unread_life(p.id));
END $$;
