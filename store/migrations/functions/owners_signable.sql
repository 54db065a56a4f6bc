-- When the pause of a change of the owners is over: as long after enough officers had approved it, and as long after so many of those who count now
-- had their present role and were on. An officer who was switched off in the pause and on again has it begin again, whether the flows saw that or not. NULL
-- while too few count.
CREATE OR REPLACE FUNCTION owners_signable(p multisig_proposals) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT CASE WHEN p.signable_at IS NOT NULL THEN greatest(p.signable_at, u.standing_since + make_interval(secs => l.pause_seconds)) END
        FROM users u CROSS JOIN multisig_policy l WHERE u.id IN (SELECT owners_approvers(p)) ORDER BY u.standing_since OFFSET greatest(p.policy_needed, 1) - 1 LIMIT 1);
END $$;
