-- Whether a release needs more officers than have approved it, as things are.
CREATE OR REPLACE FUNCTION release_lacks(r releases) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN coalesce(release_officers(r, clock_timestamp()) > (SELECT count(*) FROM release_voices(r)), true);
END $$;
