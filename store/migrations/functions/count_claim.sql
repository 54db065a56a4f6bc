-- Counts what left an escrow address against its deposit, so that it can't leave twice by different ways.
CREATE OR REPLACE FUNCTION count_claim() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.purpose = 'refund' THEN
        UPDATE escrow_claims c SET refunded = c.refunded + NEW.amount FROM refunds f
            WHERE f.id = NEW.object_id AND (c.hold_id = f.hold_id OR (c.hold_id IS NULL AND c.exception_id = f.exception_id));
    ELSE
        UPDATE escrow_claims SET taken = taken + NEW.amount WHERE hold_id = NEW.hold_id AND order_id = NEW.object_id;
        UPDATE escrow_claims SET kept = kept + NEW.amount WHERE exception_id = NEW.object_id;
    END IF;
    RETURN NULL;
END $$;
