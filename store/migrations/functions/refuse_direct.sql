-- Rows of a table in parts are written only through the whole table, whose triggers look at whole statements. An archived part is as it was.
CREATE OR REPLACE FUNCTION refuse_direct() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is a part of another table, and no rows are written into it or removed from it directly', TG_TABLE_NAME USING ERRCODE = 'KV002';
END $$;
