-- Changes when the database is another one than before: restored from a dump or a base backup, or taken over by a
-- standby, which may lack the last transactions.
CREATE OR REPLACE FUNCTION database_identity() RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    cluster  text := '';
    timeline text := '';
BEGIN
    BEGIN
        SELECT system_identifier::text INTO cluster FROM pg_control_system();
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
        cluster := 'unknown'; -- some database hosts do not allow this
    END;
    BEGIN
        timeline := substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8);
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function OR object_not_in_prerequisite_state THEN
        timeline := 'unknown';
    END;
    RETURN cluster || ':' || timeline || ':' || (SELECT oid FROM pg_database WHERE datname = current_database());
END $$;
