-- Whether this database was put back from a backup and is not released: payments may have been made that it does not know.
CREATE OR REPLACE FUNCTION put_back() RETURNS boolean LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM database_releases) AND NOT database_released();
END $$;
