-- The position at which the current transaction writes into the logs; see log_clock.
CREATE OR REPLACE FUNCTION log_position() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT (base + pg_current_xact_id()::text::bigint) << 20 FROM log_clock);
END $$;
