-- Stores the distinct words of names, for the search by parts of names.
CREATE OR REPLACE FUNCTION learn_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO name_words SELECT DISTINCT lower(w) FROM (SELECT first_name AS w FROM named UNION SELECT last_name FROM named) n
        ORDER BY 1 ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
