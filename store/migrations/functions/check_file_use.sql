-- A file that comes into use exists, as does the picture behind it, and neither ends at the same time: their rows are locked, for which a
-- process has no right of its own. Nothing uses the picture behind a PDF.
CREATE OR REPLACE FUNCTION check_file_use() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM files f WHERE f.id IN (SELECT unnest(ARRAY[d.id, d.original_id]) FROM files d WHERE d.id = NEW.file_id) ORDER BY f.id FOR SHARE;
    IF NOT EXISTS (
        SELECT FROM files f LEFT JOIN files o ON o.id = f.original_id
        WHERE f.id = NEW.file_id AND f.deleted_at IS NULL AND o.deleted_at IS NULL AND f.content_type NOT IN ('image/png', 'image/jpeg')
    ) THEN
        RAISE EXCEPTION 'file % can''t be used', NEW.file_id USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
