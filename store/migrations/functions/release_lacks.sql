-- Whether a release needs more officers than have approved it, as things are.
CREATE OR REPLACE FUNCTION release_lacks(r releases) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(release_officers(r, clock_timestamp()) > (SELECT count(*) FROM release_voices(r)), true)
$$;
