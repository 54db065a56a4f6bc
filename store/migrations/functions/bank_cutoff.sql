-- The cut-off of the next bank day after the day in Kenya of a moment: 18:00 there. NULL when a month has no bank day.
CREATE OR REPLACE FUNCTION bank_cutoff(moment timestamptz) RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT ((d.day + time '18:00') AT TIME ZONE 'Africa/Nairobi')
    FROM (SELECT (moment AT TIME ZONE 'Africa/Nairobi')::date + n AS day FROM generate_series(1, 31) n) d
    WHERE is_bank_day(d.day) ORDER BY d.day LIMIT 1
$$;
