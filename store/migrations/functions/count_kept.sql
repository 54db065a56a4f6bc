-- The part of a collection that the house or another party got can't be refunded any more. The update takes the
-- collection's lock, so that a conflicting refund and decision can't both pass.
CREATE OR REPLACE FUNCTION count_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM collections WHERE receipt = NEW.receipt) THEN -- of crypto there is none, and the chain's worker may not write there
        UPDATE collections SET kept = kept + NEW.amount WHERE receipt = NEW.receipt;
    END IF;
    RETURN NULL;
END $$;
