-- A destination is saved by who acts for its merchant, and confirmed by the master merchant itself, at the database's own time: the rest
-- begins then. An admin may only remove it. The house's own addresses are nobody's destination.
CREATE OR REPLACE FUNCTION check_destination() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    actor users;
BEGIN
    SELECT * INTO actor FROM users u WHERE u.is_active AND u.id = CASE WHEN TG_OP = 'INSERT' THEN NEW.created_by
        WHEN NEW.status = 'removed' THEN NEW.removed_by ELSE NEW.confirmed_by END FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'nobody active changes destination %', NEW.id USING ERRCODE = 'KV058';
    END IF;
    IF NOT (CASE
            WHEN TG_OP = 'UPDATE' AND NEW.status = 'confirmed' THEN actor.id = NEW.merchant_id AND actor.role = 'vendor'
            WHEN TG_OP = 'UPDATE' AND NEW.status = 'removed' AND actor.role = 'admin' THEN true
            ELSE coalesce(actor.vendor_id, actor.id) = NEW.merchant_id AND actor.role IN ('vendor', 'subvendor') END) THEN
        RAISE EXCEPTION 'destination % is not a matter of user %', NEW.id, actor.id USING ERRCODE = 'KV002';
    END IF;
    IF TG_OP = 'INSERT' THEN
        IF NEW.kind = 'address' AND EXISTS (SELECT FROM wallets w WHERE w.network = NEW.network AND w.address = NEW.address AND w.owner_id IS NULL) THEN
            RAISE EXCEPTION 'destination % is an address of the house', NEW.id USING ERRCODE = 'KV002';
        END IF;
    ELSIF NEW.status = 'confirmed' THEN
        NEW.confirmed_at := clock_timestamp();
    END IF;
    RETURN NEW;
END $$;
