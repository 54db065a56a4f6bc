-- Reports whether an address is the wrong network's form of an address of ours, which is never paid.
CREATE OR REPLACE FUNCTION is_counterpart(network text, address text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM wallets w WHERE w.purpose <> 'counterpart' AND w.network <> $1
        AND w.counterpart = CASE WHEN $1 = 'ethereum' THEN hex_address($2) ELSE $2 END);
END $$;
