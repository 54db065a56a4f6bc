-- Everything below this position in the logs is complete: no running transaction can still write there.
CREATE OR REPLACE FUNCTION log_horizon() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT (base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint) << 20 FROM log_clock);
END $$;
