-- Whether this database may send: it is the one that was released last, or has never sent anything and was never released.
CREATE OR REPLACE FUNCTION database_released() RETURNS boolean LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    RETURN coalesce((SELECT r.identity FROM database_releases r ORDER BY r.number DESC LIMIT 1) = database_identity(),
        NOT EXISTS (SELECT FROM payment_attempts) AND NOT EXISTS (SELECT FROM float_moves WHERE status <> 'created'));
END $$;
