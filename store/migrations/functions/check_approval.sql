-- Compares a decision with its token, its object and its officer. A refund is approved while it waits, with its
-- present terms, by an officer who neither requested it nor gave its address, and whose order it is not.
CREATE OR REPLACE FUNCTION check_approval() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM approval_tokens k WHERE k.id = NEW.token_id AND k.officer_id = NEW.officer_id
            AND k.object_type = NEW.object_type AND k.object_id = NEW.object_id AND k.action = NEW.action AND k.digest = NEW.digest
            AND k.used_at IS NOT NULL) THEN
        RAISE EXCEPTION 'approval % has no token of its officer for exactly its object', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NEW.object_type = 'transfer' AND NOT EXISTS (SELECT FROM transfers f WHERE f.id = NEW.object_id AND f.requested_by = NEW.requester_id
            AND f.digest = NEW.digest AND f.status = 'pending_approval') THEN
        RAISE EXCEPTION 'approval % does not fit its transfer', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NEW.object_type = 'refund' AND NOT EXISTS (SELECT FROM refunds f LEFT JOIN orders o ON o.id = f.order_id
            WHERE f.id = NEW.object_id AND f.rail = 'chain' AND f.address <> '' AND f.digest = NEW.digest AND f.status IN ('pending', 'needs_review')
                AND f.requested_by IS NOT DISTINCT FROM NEW.requester_id AND NEW.officer_id IS DISTINCT FROM f.requested_by
                AND NEW.officer_id IS DISTINCT FROM f.addressed_by AND NEW.officer_id IS DISTINCT FROM f.dismissed_by
                AND NEW.officer_id IS DISTINCT FROM o.customer_id AND NEW.officer_id IS DISTINCT FROM o.vendor_id) THEN
        RAISE EXCEPTION 'approval % does not fit its refund', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NEW.object_type = 'order' AND NOT EXISTS (SELECT FROM releases r JOIN orders o ON o.id = r.object_id WHERE r.purpose = 'funding' AND r.object_id = NEW.object_id
            AND r.digest = NEW.digest AND r.passed_at IS NULL AND r.ended_at IS NULL AND r.requester_id = NEW.requester_id
            AND o.status = 'pending' AND NEW.officer_id NOT IN (o.customer_id, o.vendor_id)) THEN
        RAISE EXCEPTION 'approval % does not fit its order', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NEW.object_type = 'otc_withdrawal' AND NOT EXISTS (SELECT FROM otc_withdrawals w WHERE w.id = NEW.object_id AND w.digest = NEW.digest AND w.requested_by = NEW.requester_id
            AND NEW.officer_id NOT IN (w.requested_by, w.merchant_id) AND NEW.officer_id IS DISTINCT FROM w.executed_by
            AND (w.status IN ('pending_approval', 'approved', 'on_hold') OR w.status IN ('executing', 'needs_review') AND NEW.action = 'approve')) THEN
        RAISE EXCEPTION 'approval % does not fit its withdrawal', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NEW.object_type = 'swap' AND NOT EXISTS (SELECT FROM swaps s WHERE s.id = NEW.object_id AND s.digest = NEW.digest AND s.requested_by = NEW.requester_id
            AND NEW.officer_id IS DISTINCT FROM s.requested_by AND s.status = 'reserved') THEN
        RAISE EXCEPTION 'approval % does not fit its swap', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NEW.object_type = 'multisig_proposal' AND NOT EXISTS (SELECT FROM multisig_proposals p JOIN users u ON u.id = NEW.officer_id
            WHERE p.id = NEW.object_id AND p.digest = NEW.digest AND p.proposer_id = NEW.requester_id AND NEW.officer_id <> p.proposer_id
                AND (p.status = 'approving' AND (NEW.action = 'reject' OR p.signable_at IS NULL) AND p.kind <> 'cancel' OR p.status IN ('signing', 'ready') AND p.ending IS NULL AND NEW.action = 'reject' AND u.role = 'admin')) THEN
        RAISE EXCEPTION 'approval % does not fit its proposal', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NEW.object_type = 'multisig_payload' AND NOT EXISTS (SELECT FROM multisig_payloads y JOIN multisig_proposals p ON p.id = y.proposal_id
            JOIN multisig_owners o ON o.account_id = y.wallet_id AND o.user_id = NEW.officer_id AND o.held AND o.standing = 'agreed'
            WHERE y.id = NEW.object_id AND y.status = 'open' AND encode(sha256(y.digest), 'hex') = NEW.digest AND NEW.action = 'approve' AND NEW.requester_id IS NULL
                AND p.status IN ('signing', 'ready') AND p.ending IS NULL AND (y.network <> 'solana' OR o.address = ANY (y.signers))) THEN
        RAISE EXCEPTION 'approval % does not fit its payload', NEW.id USING ERRCODE = 'KV004';
    END IF;
    IF NOT EXISTS (SELECT FROM users u WHERE u.id = NEW.officer_id AND u.is_active AND u.role IN ('treasury', 'admin')) THEN
        RAISE EXCEPTION 'the officer of approval % may not approve', NEW.id USING ERRCODE = 'KV004';
    END IF;
    RETURN NEW;
END $$;
