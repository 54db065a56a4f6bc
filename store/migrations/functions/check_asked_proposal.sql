-- A proposal is what its intent says: by somebody who may propose for the wallet, which is an account of several owners in force. How many
-- officers its policy needs follows from its value, which is near the market's, because limits and officers go by it. A change of the owners
-- needs one more than any payment (owners_needed), and its digest names the whole change. A cancel needs none: it moves nothing, and the owners decide.
CREATE OR REPLACE FUNCTION check_asked_proposal() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    said jsonb := intent_terms(NEW.intent_id, 'proposal.open', NEW.id, NEW.proposer_id);
BEGIN
    IF NOT coalesce(said ->> 'wallet_id' = NEW.wallet_id::text AND coalesce(said ->> 'kind', 'payment') = NEW.kind
            AND CASE NEW.kind WHEN 'payment' THEN split_part(said ->> 'amount', ' ', 1)::numeric = NEW.amount AND split_part(said ->> 'amount', ' ', 2) = NEW.asset
                AND said ->> 'destination' = NEW.destination ELSE NOT said ?| '{amount,destination}' AND proposal_digest(NEW) = NEW.digest END
            AND (said ->> 'change')::jsonb IS NOT DISTINCT FROM NEW.change AND said ->> 'supersedes' IS NOT DISTINCT FROM NEW.supersedes::text
            AND num_nonnulls(NEW.signable_at, NEW.applied_in) = 0 AND coalesce(said ->> 'reference', '') = NEW.reference
            AND NEW.status = 'proposed' AND num_nonnulls(NEW.ending, NEW.payload_id, NEW.executed_by) = 0 AND NEW.tx_hash = '' AND NOT proposal_party_gone(NEW), false) THEN
        RAISE EXCEPTION 'proposal % is not what was asked for', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NOT EXISTS (SELECT FROM multisig_accounts a JOIN wallets w ON w.id = a.id AND w.custody = 'multisig' AND (w.network, w.address) = (a.network, a.address)
            WHERE a.id = NEW.wallet_id AND a.status = 'active' AND a.network = NEW.network AND a.merchant_id IS NOT DISTINCT FROM NEW.merchant_id
                AND a.policy_version = NEW.policy_version AND (a.address = NEW.destination) = (NEW.kind <> 'payment')
                AND NEW.policy_needed = CASE NEW.kind WHEN 'payment' THEN multisig_needed(a.id, a.policy_version, NEW.value)
                    WHEN 'owners' THEN owners_needed(a.id, a.policy_version, NEW.proposer_id) ELSE 0 END) THEN
        RAISE EXCEPTION 'proposal % is not of an account of several owners in force, and its policy', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.kind = 'owners' AND NOT owners_sound(NEW.change, NEW.wallet_id) THEN
        RAISE EXCEPTION 'proposal % names owners or thresholds that its account can not have', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.kind = 'cancel' AND NOT EXISTS (SELECT FROM multisig_proposals o JOIN users u ON u.id = NEW.proposer_id AND (u.role IN ('admin', 'treasury') OR u.id = o.proposer_id)
            WHERE o.id = NEW.supersedes AND o.wallet_id = NEW.wallet_id AND o.kind <> 'cancel' AND o.status IN ('signing', 'ready')) THEN
        RAISE EXCEPTION 'proposal % cancels nothing that its proposer may cancel', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.to_wallet_id IS DISTINCT FROM (SELECT w.id FROM wallets w WHERE w.network = NEW.network AND w.address = NEW.destination) OR is_counterpart(NEW.network, NEW.destination)
            OR EXISTS (SELECT FROM wallets w WHERE w.id = NEW.to_wallet_id AND w.purpose = 'escrow')
            OR NEW.kind = 'payment' AND EXISTS (SELECT FROM wallets w JOIN users u ON u.id = NEW.proposer_id AND u.role NOT IN ('admin', 'treasury') WHERE w.id = NEW.to_wallet_id AND w.owner_id IS NULL) THEN
        RAISE EXCEPTION 'proposal % has a destination that it can not have', NEW.id USING ERRCODE = 'KV002';
    END IF;
    IF NEW.kind = 'payment' AND (NEW.value < NEW.amount * NEW.rate OR coalesce(NEW.rate < 0.8 * reference_rate(NEW.asset, NEW.created_at), true)
            OR NEW.rate < (SELECT v.agreed FROM valuations v WHERE v.asset = NEW.asset)) THEN
        RAISE EXCEPTION 'proposal % has a value below that of its amount', NEW.id USING ERRCODE = 'KV002';
    END IF;
    RETURN NEW;
END $$;
