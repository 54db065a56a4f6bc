-- Nothing is sent or given up for what two officers attested as paid, while the receipt is booked by no attempt.
CREATE OR REPLACE FUNCTION refuse_after_lost() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    object uuid := coalesce((to_jsonb(NEW) ->> 'object_id')::uuid, (to_jsonb(NEW) ->> 'id')::uuid);
BEGIN
    IF EXISTS (SELECT FROM payout_attestations w WHERE w.object_id = object AND w.receipt <> ''
            AND NOT EXISTS (SELECT FROM payment_attempts a WHERE a.object_id = object AND a.receipt = w.receipt)) THEN
        RAISE EXCEPTION 'two officers attested that % was paid', object USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
