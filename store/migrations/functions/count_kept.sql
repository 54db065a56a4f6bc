-- What the house or another got of a collection can't be refunded any more. The update takes the collection's lock, so
-- that a refund and a decision that don't fit together can't pass each other.
CREATE OR REPLACE FUNCTION count_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE collections SET kept = kept + NEW.amount WHERE receipt = NEW.receipt;
    RETURN NULL;
END $$;
