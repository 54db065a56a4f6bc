-- A file belongs to the merchant that it was uploaded for by itself or its subvendor, or to the house. The PDF of a picture belongs where
-- the picture does.
CREATE OR REPLACE FUNCTION check_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.deleted_at IS NOT NULL THEN
        RAISE EXCEPTION 'a file begins as one that is kept' USING ERRCODE = 'KV002';
    END IF;
    IF NOT EXISTS (
        SELECT FROM users u WHERE u.id = NEW.uploaded_by AND CASE u.role
            WHEN 'vendor' THEN NEW.owner_id = u.id WHEN 'subvendor' THEN NEW.owner_id = u.vendor_id
            WHEN 'otc_officer' THEN NEW.owner_id IS NULL AND NEW.purpose <> 'bank_statement'
            ELSE NEW.owner_id IS NULL AND u.role IN ('admin', 'treasury') END
    ) THEN
        RAISE EXCEPTION 'user % may not upload file % for its owner and purpose', NEW.uploaded_by, NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF EXISTS (SELECT FROM users u LEFT JOIN users v ON v.id = u.vendor_id WHERE u.id = NEW.uploaded_by AND NOT (u.is_active AND coalesce(v.is_active, true))) THEN
        RAISE EXCEPTION 'user % was deactivated while it sent file %', NEW.uploaded_by, NEW.id USING ERRCODE = 'KV001';
    END IF;
    IF NEW.original_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM files f WHERE f.id = NEW.original_id AND f.content_type IN ('image/png', 'image/jpeg') AND f.sha256 = NEW.source_sha256
            AND f.purpose = NEW.purpose AND f.uploaded_by = NEW.uploaded_by AND f.owner_id IS NOT DISTINCT FROM NEW.owner_id
    ) THEN
        RAISE EXCEPTION 'file % was not made from picture %', NEW.id, NEW.original_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
