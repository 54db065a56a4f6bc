-- At the end of the transaction, because rows are written together: a proposal is where its payment, its payloads and its money are. Its amount is
-- held until it is executed or has ended; it is executed exactly when its payment is completed; and it does not end otherwise while a payload of it
-- could still be executed. Whoever changes one of them is asked the same.
CREATE OR REPLACE FUNCTION check_proposal_facts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    p     multisig_proposals;
    paid  chain_payments;
    open  int;
    fault text;
BEGIN
    SELECT * INTO p FROM multisig_proposals WHERE id = CASE TG_TABLE_NAME WHEN 'multisig_proposals' THEN NEW.id
        WHEN 'multisig_payloads' THEN (to_jsonb(NEW) ->> 'proposal_id')::uuid ELSE (to_jsonb(NEW) ->> 'object_id')::uuid END;
    SELECT * INTO paid FROM chain_payments c WHERE c.purpose = 'proposal' AND c.object_id = p.id;
    open := (SELECT count(*) FROM multisig_payloads y WHERE y.proposal_id = p.id AND y.status = 'open');
    fault := CASE
        WHEN EXISTS (SELECT FROM multisig_payloads y WHERE y.proposal_id = p.id AND y.found_tx <> ''
            AND NOT EXISTS (SELECT FROM chain_attempts a WHERE a.payment_id = y.payment_id AND a.tx_id = y.found_tx AND a.adopted)) THEN 'its payload was executed by a transaction that is not its payment''s'
        WHEN (p.status = 'executed') <> coalesce(paid.status = 'completed', false) THEN 'its payment is not'
        WHEN p.status = 'executed' THEN CASE
            WHEN p.tx_hash <> paid.tx_id THEN 'by another transaction'
            WHEN open > 0 OR (SELECT count(*) FROM multisig_payloads y WHERE y.proposal_id = p.id AND y.status = 'executed') <> 1 THEN 'its payload is not' END
        WHEN EXISTS (SELECT FROM multisig_payloads y WHERE y.proposal_id = p.id AND y.status = 'executed') THEN 'its payload is executed'
        WHEN p.status IN ('rejected', 'cancelled', 'expired', 'superseded', 'failed') THEN CASE
            WHEN open > 0 THEN 'a payload of it can be executed'
            WHEN paid.status <> 'cancelled' THEN 'its payment may move money'
            WHEN EXISTS (SELECT FROM releases r WHERE r.purpose = 'proposal' AND r.object_id = p.id AND r.ended_at IS NULL) THEN 'its release still counts' END
        WHEN p.status IN ('proposed', 'approving') THEN CASE
            WHEN open > 0 THEN 'there is a payload of it'
            WHEN paid.status NOT IN ('approved', 'parked') THEN 'its payment is signed' END
        WHEN paid.id IS NULL OR paid.status = 'cancelled' THEN 'it has no payment'
        WHEN open = 0 AND p.ending IS NULL THEN 'it has no payload'
        WHEN p.status = 'ready' AND p.ending IS NULL AND NOT EXISTS (SELECT FROM multisig_payloads y WHERE y.proposal_id = p.id AND y.status = 'open' AND payload_signed(y.id)) THEN 'it lacks signatures'
        WHEN p.status IN ('broadcasting', 'confirming') AND paid.status NOT IN ('signed', 'broadcast', 'included') THEN 'it has no transaction'
        END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'proposal % is % and %', p.id, p.status, fault USING ERRCODE = 'KV001';
    END IF;
    IF p.kind = 'owners' AND p.status = 'executed' AND p.applied_in = pg_current_xact_id() AND NOT owners_are(p) THEN
        RAISE EXCEPTION 'the owners of the account are not those of proposal %', p.id USING ERRCODE = 'KV002';
    END IF;
    IF p.kind = 'owners' AND p.status = 'executed' AND p.applied_in = pg_current_xact_id() AND NOT EXISTS (SELECT FROM multisig_payloads y JOIN deposit_cursors c ON c.network = y.network
            WHERE y.proposal_id = p.id AND y.status = 'executed' AND executed_block(p) >= y.block AND executed_block(p) <= c.final_number) THEN
        RAISE EXCEPTION 'proposal % was executed in a block that was not read since its payload was prepared', p.id USING ERRCODE = 'KV001';
    END IF;
    IF p.kind = 'payment' AND NOT EXISTS (SELECT FROM holds h JOIN ledger_accounts a ON a.id = h.account_id WHERE h.id = p.hold_id AND h.object_type = 'multisig_proposal' AND h.object_id = p.id
            AND h.placed = p.amount AND (h.status <> 'held' OR h.amount = h.placed) AND a.code = 'wallet_balance:' || p.wallet_id || ':' || p.asset
            AND h.status = CASE WHEN p.status = 'executed' THEN 'captured' WHEN p.status IN ('rejected', 'cancelled', 'expired', 'superseded', 'failed') THEN 'released' ELSE 'held' END) THEN
        RAISE EXCEPTION 'the money of proposal % is not where it is %', p.id, p.status USING ERRCODE = 'KV002';
    END IF;
    RETURN NULL;
END $$;
