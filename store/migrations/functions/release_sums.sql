-- The running sums of a release: the values of others that have left within a day before a moment, or are still to leave,
-- from its source, of its owner, by its requester, and to its recipient. One whose key is missing is zero.
CREATE OR REPLACE FUNCTION release_sums(r releases, moment timestamptz, OUT source numeric, OUT owner numeric, OUT requester numeric, OUT recipient numeric)
    LANGUAGE sql STABLE AS $$
    SELECT (SELECT coalesce(sum(o.value), 0) FROM releases o WHERE o.source = r.source AND o.counts_until > moment AND o.exempt = '' AND o.id <> r.id),
        CASE WHEN r.house THEN (SELECT coalesce(sum(o.value), 0) FROM releases o WHERE o.house AND o.counts_until > moment AND o.exempt = '' AND o.id <> r.id)
            ELSE (SELECT coalesce(sum(o.value), 0) FROM releases o WHERE o.owner_id = r.owner_id AND o.counts_until > moment AND o.exempt = '' AND o.id <> r.id) END,
        (SELECT coalesce(sum(o.value), 0) FROM releases o WHERE o.requester_id = r.requester_id AND o.counts_until > moment AND o.exempt = '' AND o.id <> r.id),
        (SELECT coalesce(sum(o.value), 0) FROM releases o WHERE o.recipient = r.recipient AND o.counts_until > moment AND o.exempt = '' AND o.id <> r.id)
$$;
