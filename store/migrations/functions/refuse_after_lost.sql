-- Nothing is sent or given up for what two officers attested as paid before the database was put back.
CREATE OR REPLACE FUNCTION refuse_after_lost() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    object uuid := coalesce((to_jsonb(NEW) ->> 'object_id')::uuid, (to_jsonb(NEW) ->> 'id')::uuid);
BEGIN
    IF EXISTS (SELECT FROM payout_attestations w WHERE w.lost AND w.object_id = object) THEN
        RAISE EXCEPTION 'two officers attested that % was paid before the database was put back', object USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
