-- A number as protocol buffers write it: seven bits a byte, the lowest first.
CREATE OR REPLACE FUNCTION tron_number(n bigint) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    bytes bytea := '';
BEGIN
    WHILE n > 127 LOOP
        bytes := bytes || set_byte('\x00', 0, (n & 127 | 128)::int);
        n := n >> 7;
    END LOOP;
    RETURN bytes || set_byte('\x00', 0, n::int);
END $$;
