-- Lines are stored while their statement is being stored, in its currency.
CREATE OR REPLACE FUNCTION check_stored_lines() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM new_lines l LEFT JOIN bank_statements s ON s.id = l.statement_id AND s.status = 'storing' AND s.asset = l.asset AND l.number <= s.lines
            WHERE s.id IS NULL) THEN
        RAISE EXCEPTION 'a line belongs to no statement that is being stored' USING ERRCODE = 'KV001';
    END IF;
    RETURN NULL;
END $$;
