-- Counts what orders take of an inventory and what comes back of it. A hold that was split off an offer's is none of it.
CREATE OR REPLACE FUNCTION count_inventory() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    more numeric := CASE NEW.status WHEN 'released' THEN 0 ELSE NEW.amount END;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        more := more - OLD.amount;
    END IF;
    UPDATE inventories SET taken = taken + more WHERE hold_id = NEW.parent_id;
    RETURN NULL;
END $$;
