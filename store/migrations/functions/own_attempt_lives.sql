-- Reports whether a transaction of ours that was signed for a payment may still be executed.
CREATE OR REPLACE FUNCTION own_attempt_lives(payment uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN EXISTS (SELECT FROM chain_attempts a WHERE a.payment_id = payment AND NOT a.adopted AND a.status IN ('signed', 'broadcast', 'included', 'replaced'));
END $$;
