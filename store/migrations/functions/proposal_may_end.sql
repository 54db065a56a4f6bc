-- Reports whether a proposal may end so: because somebody asks for that in this transaction, officers decided it, its time is over, or what it
-- was to make impossible has ended. That a
-- payload of it can't be executed is another condition (check_proposal_facts).
CREATE OR REPLACE FUNCTION proposal_may_end(p multisig_proposals, how text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN CASE how
        WHEN 'cancelled' THEN proposal_party_gone(p) OR EXISTS (SELECT FROM users u WHERE u.id = intent_asker(p.id, 'proposal.cancel') AND u.is_active
            AND (u.role IN ('admin', 'treasury') OR u.id = p.proposer_id))
        WHEN 'rejected' THEN proposal_rejected(p)
        WHEN 'expired' THEN p.expires_at <= clock_timestamp() + interval '5 seconds'
        WHEN 'superseded' THEN p.kind = 'cancel' AND NOT EXISTS (SELECT FROM multisig_payloads y WHERE y.proposal_id = p.supersedes AND y.status = 'open')
        ELSE false END;
END $$;
