-- Whether the watch has yet to read all that the failed transactions of a payment could still do; of a swap, those of all legs. That one
-- failed is one node's word, and the node may be wrong about the block too, so that another one has it or takes it. The watch has to have
-- read that block, all that was final when the node said so, and the whole life of the transaction. Solana counts a life of 150 blocks in
-- blocks, and the watch in slots, of which some are empty. On Ethereum, and with a nonce account, a life ends with its number.
CREATE OR REPLACE FUNCTION unread_life(payment uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM chain_attempts a LEFT JOIN deposit_cursors c ON c.network = a.network
        WHERE a.payment_id = ANY (ARRAY(SELECT payment UNION SELECT o.id FROM chain_payments p JOIN chain_payments o ON o.object_id = p.object_id
                AND o.purpose IN ('swap_collect', 'swap_payout', 'swap_refund') WHERE p.id = payment AND p.purpose LIKE 'swap\_%'))
            AND a.status = 'failed' AND NOT coalesce(a.block <= c.final_number AND a.updated_at <= c.final_time AND (a.expires_at IS NULL OR a.expires_at <= c.final_time)
                AND (a.last_valid_height = 0 OR a.block + 1000 <= c.final_number), false));
END $$;
