-- Owners' signatures of a payload are authority, so there is one only while its payment may be signed: released, to an accepted recipient, and with
-- nothing that withholds a signature; a change of the owners after its pause, and exactly the one that officers approved. The lock of its wallet lets no second one take the same number or another value of the nonce account.
CREATE OR REPLACE FUNCTION check_payload() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    p     multisig_proposals;
    paid  chain_payments;
    fault text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('kivuko payload ' || NEW.wallet_id, 0));
    SELECT * INTO p FROM multisig_proposals WHERE id = NEW.proposal_id FOR NO KEY UPDATE;
    PERFORM FROM multisig_accounts WHERE id = NEW.wallet_id FOR SHARE;
    SELECT * INTO paid FROM chain_payments c WHERE c.id = NEW.payment_id AND c.purpose = 'proposal' AND c.object_id = p.id;
    fault := CASE
        WHEN paid.id IS NULL OR (NEW.wallet_id, NEW.network) IS DISTINCT FROM (p.wallet_id, p.network) THEN 'is not of its proposal'
        WHEN NEW.status <> 'open' OR NEW.evidence <> '' OR NEW.n <> (SELECT count(*) + 1 FROM multisig_payloads y WHERE y.proposal_id = p.id) THEN 'is not new'
        WHEN NEW.n > 100 THEN 'is one too many of its proposal' -- exchange.MaxPayloads
        WHEN p.status NOT IN ('approving', 'signing', 'ready') OR p.ending IS NOT NULL OR paid.status <> 'approved' OR p.expires_at <= clock_timestamp() THEN 'comes too late'
        WHEN NOT proposal_released(p.id) THEN 'lacks officers, or its wallet differs'
        WHEN p.kind = 'owners' AND NOT owners_brought(p) THEN 'lacks owners of its change'
        WHEN p.kind <> 'payment' AND NOT payload_says(NEW.joint, p) THEN 'says something else than its proposal'
        WHEN p.kind = 'cancel' AND NOT EXISTS (SELECT FROM multisig_payloads y WHERE y.proposal_id = p.supersedes AND y.status = 'open' AND y.sequence = NEW.sequence) THEN 'has not the number of what it makes impossible'
        WHEN NOT recipient_cleared(paid) OR proposal_hit(p) THEN 'has a recipient who is not cleared by a screening'
        WHEN signing_withheld(paid.id) <> '' THEN 'is withheld: ' || signing_withheld(paid.id)
        WHEN NEW.found_tx <> '' THEN 'was found before it was signed'
        WHEN NEW.network <> 'solana' AND EXISTS (SELECT FROM multisig_payloads y WHERE y.proposal_id = p.id AND y.status = 'open') THEN 'comes beside another one'
        WHEN NEW.network = 'solana' AND (cardinality(NEW.signers) <> (SELECT a.threshold FROM multisig_accounts a WHERE a.id = NEW.wallet_id)
            OR (SELECT count(DISTINCT o.address) FROM multisig_owners o WHERE o.account_id = NEW.wallet_id AND o.standing = 'agreed' AND o.address = ANY (NEW.signers)) <> cardinality(NEW.signers)) THEN 'is for others than owners'
        WHEN NEW.network = 'solana' AND EXISTS (SELECT FROM multisig_payloads y WHERE y.nonce_account = NEW.nonce_account AND y.status = 'open'
            AND (y.proposal_id, y.ref_block) <> (p.id, NEW.ref_block)) THEN 'shares a nonce account with another proposal, or has another value of it'
        END;
    -- The chain executes one transaction with a number. So the number of a payload whose proposal is to end is another one's: its execution is the
    -- proof that the ending one can't be executed. A cancel takes the number of what it makes impossible, whether that is to end or not.
    IF fault IS NULL AND EXISTS (SELECT FROM multisig_payloads y JOIN multisig_proposals o ON o.id = y.proposal_id
            WHERE y.wallet_id = NEW.wallet_id AND y.sequence = NEW.sequence AND (y.status = 'executed' OR y.status = 'open' AND o.ending IS NULL AND o.id IS DISTINCT FROM p.supersedes)) THEN
        RAISE EXCEPTION 'another payload of the wallet has number %', NEW.sequence USING ERRCODE = 'unique_violation';
    END IF;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'payload % of proposal % %', NEW.id, NEW.proposal_id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
