-- The 21 bytes of an address on TRON, without the checksum of its base58 form.
CREATE OR REPLACE FUNCTION tron_address(address text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    n     numeric := 0;
    bytes bytea := '';
BEGIN
    FOR i IN 1 .. char_length(address) LOOP
        n := n * 58 + greatest(strpos('123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz', substr(address, i, 1)) - 1, 0);
    END LOOP;
    FOR i IN 1 .. 25 LOOP
        bytes := set_byte('\x00', 0, (n % 256)::int) || bytes;
        n := div(n, 256);
    END LOOP;
    RETURN substr(bytes, 1, 21);
END $$;
