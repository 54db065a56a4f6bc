-- The block of the transaction that executed a proposal.
CREATE OR REPLACE FUNCTION executed_block(p multisig_proposals) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT a.block FROM chain_payments c JOIN chain_attempts a ON a.payment_id = c.id AND a.tx_id = p.tx_hash
        WHERE c.purpose = 'proposal' AND c.object_id = p.id AND p.status = 'executed' AND a.block > 0);
END $$;
