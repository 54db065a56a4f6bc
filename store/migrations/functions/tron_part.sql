-- A part of a message as protocol buffers write it: its tag, its length and its bytes.
CREATE OR REPLACE FUNCTION tron_part(tag bytea, bytes bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN tag || tron_number(octet_length(bytes)) || bytes;
END $$;
