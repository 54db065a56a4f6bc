-- Whether the retention of a file has ended. A picture is kept as long as its PDF.
CREATE OR REPLACE FUNCTION file_due(file uuid, moment timestamptz) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT moment > f.created_at + CASE WHEN EXISTS (SELECT FROM file_uses u WHERE u.file_id IN (SELECT f.id UNION ALL SELECT d.id FROM files d WHERE d.original_id = f.id))
        THEN r.kept ELSE r.unused_kept END
    FROM files f JOIN file_retention r ON r.purpose = f.purpose WHERE f.id = file
$$;
