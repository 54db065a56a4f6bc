-- The movement on a chain that an exception is about.
CREATE OR REPLACE FUNCTION deposit_of(receipt text) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT d.id FROM chain_deposits d WHERE receipt ~ '^[a-z]+:[^:]+:[0-9]{1,18}$' AND d.network = split_part(receipt, ':', 1)
        AND d.tx_id = split_part(receipt, ':', 2) AND d.event_index = split_part(receipt, ':', 3)::bigint
$$;
