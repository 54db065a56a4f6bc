-- Reports whether an address is the wrong network's spelling of an address of ours, where no one is paid.
CREATE OR REPLACE FUNCTION is_twin(network text, address text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM wallets w WHERE w.purpose <> 'twin' AND w.network <> $1
        AND w.twin = CASE WHEN $1 = 'ethereum' THEN hex_address($2) ELSE $2 END)
$$;
