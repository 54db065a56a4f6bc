-- The final block of a network's deposit watch, NULL before its start. No block is recorded from now on until the transaction ends.
CREATE OR REPLACE FUNCTION watched_block(network network) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko deposits ' || network::text, 0));
    RETURN (SELECT c.final_number FROM deposit_cursors c WHERE c.network = watched_block.network);
END $$;
