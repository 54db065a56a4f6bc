-- A bank's statement has a file of this purpose, with the digest and the format that it says, which is kept because of it.
CREATE OR REPLACE FUNCTION check_statement_file() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM files f JOIN file_uses u ON u.file_id = f.id AND u.object_type = 'bank_statement' AND u.object_id = NEW.id
            WHERE f.id = NEW.file_id AND f.purpose = 'bank_statement' AND encode(f.sha256, 'hex') = NEW.digest
                AND f.content_type = CASE NEW.format WHEN 'camt053' THEN 'application/xml' ELSE 'text/csv' END) THEN
        RAISE EXCEPTION 'statement % is not what file % says', NEW.id, NEW.file_id USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
