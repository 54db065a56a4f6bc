-- Reports whether a person asks for a verb on a withdrawal, by an intent that this transaction used: each is carried out once. The person's
-- row is locked, so that an account that is being switched off at this moment does not count.
CREATE OR REPLACE FUNCTION withdrawal_asked(withdrawal uuid, verb text, person uuid, roles text[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM users u WHERE u.id = person AND u.is_active AND u.role = ANY (roles) FOR SHARE;
    RETURN FOUND AND EXISTS (SELECT FROM intents i WHERE i.object_id = withdrawal AND i.kind = 'withdrawal.' || verb AND i.user_id = person
        AND i.used_in = pg_current_xact_id());
END $$;
