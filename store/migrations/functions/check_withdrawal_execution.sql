-- What is wrong with the execution of a withdrawal; NULL for nothing. Its release passes in the same transaction.
CREATE OR REPLACE FUNCTION check_withdrawal_execution(w otc_withdrawals) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM otc_destinations d WHERE d.id = w.destination_id AND d.status = 'confirmed' FOR SHARE;
    RETURN CASE
        WHEN NOT FOUND THEN 'goes to a destination that was removed'
        WHEN NOT withdrawal_asked(w.id, 'execute', w.executed_by, CASE w.method WHEN 'chain' THEN '{treasury}' ELSE '{admin,treasury}' END::text[]) THEN 'is executed by nobody who may'
        WHEN EXISTS (SELECT FROM approvals a WHERE a.object_type = 'otc_withdrawal' AND a.object_id = w.id AND a.officer_id = w.executed_by) THEN 'is executed by who decided about it'
        WHEN withdrawal_party_gone(w) THEN 'is of an account that is switched off'
        WHEN NOT EXISTS (SELECT FROM releases r WHERE r.purpose = 'withdrawal' AND r.object_id = w.id AND r.ended_at IS NULL AND r.passed_in = pg_current_xact_id())
            THEN 'is not released'
    END;
END $$;
