-- A refund and a payout of an order announce their release when they are opened. The argument is its purpose. A refund in crypto
-- without an address does so when it gets one.
CREATE OR REPLACE FUNCTION announce_owed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO releases (id, purpose, object_id, house, owner_id, source, requester_id, recipient, inside, exempt, value, opened_at)
        SELECT gen_random_uuid(), r.purpose, r.object_id, r.house, r.owner_id, r.source, r.requester_id, r.recipient, r.inside, r.exempt, r.value, NEW.created_at
        FROM release_terms(TG_ARGV[0], NEW.id) r WHERE r.recipient IS NOT NULL;
    RETURN NULL;
END $$;
