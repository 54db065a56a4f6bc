-- When the owner of a release first named its recipient as a destination that rests.
CREATE OR REPLACE FUNCTION release_known(r releases) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT min(k.opened_at) FROM releases k JOIN release_purposes p ON p.purpose = k.purpose AND p.rests = ''
    WHERE k.recipient = r.recipient AND (k.owner_id = r.owner_id OR k.house AND r.house)
$$;
