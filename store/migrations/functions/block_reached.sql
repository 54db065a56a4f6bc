-- Reports whether a final block can exist by what the deposit watch has read: one node's wrong answer must not hide what all others say later. No
-- network makes more than four blocks in a second.
CREATE OR REPLACE FUNCTION block_reached(network network, block bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT block <= c.final_number + 1000 + greatest(0, 4 * extract(epoch FROM clock_timestamp() - c.updated_at))
        FROM deposit_cursors c WHERE c.network = block_reached.network), false)
$$;
