-- A signature is of an owner of the account, for a payload that can be executed and is not to end. The key of an owner that we hold signs only
-- after that officer confirmed exactly this payload, in the signer, and while a payment may be signed at all. The signature of an owner outside
-- comes by an intent that names the payload, through the chain's worker, which has verified it.
CREATE OR REPLACE FUNCTION check_owner_signature() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    y     multisig_payloads;
    p     multisig_proposals;
    o     multisig_owners;
    fault text;
BEGIN
    SELECT * INTO y FROM multisig_payloads WHERE id = NEW.payload_id;
    SELECT * INTO p FROM multisig_proposals WHERE id = y.proposal_id FOR NO KEY UPDATE;
    PERFORM FROM multisig_accounts WHERE id = y.wallet_id FOR SHARE;
    SELECT * INTO y FROM multisig_payloads WHERE id = NEW.payload_id;
    SELECT * INTO o FROM multisig_owners WHERE account_id = y.wallet_id AND address = NEW.owner AND standing = 'agreed';
    fault := CASE
        WHEN o.n IS NULL OR o.held <> NEW.held OR y.network = 'solana' AND NEW.owner <> ALL (y.signers) THEN 'is not of an owner who signs it'
        WHEN y.status <> 'open' OR p.status NOT IN ('signing', 'ready') OR p.ending IS NOT NULL OR p.expires_at <= clock_timestamp() THEN 'comes too late'
        WHEN NOT proposal_released(p.id) THEN 'is of a wallet that differs'
        WHEN NEW.held THEN CASE
            WHEN current_user IN ('kivuko_api', 'kivuko_flows', 'kivuko_momo', 'kivuko_chain') THEN 'is made by the signer only'
            WHEN o.user_id <> NEW.user_id OR NOT EXISTS (SELECT FROM approvals a JOIN users u ON u.id = a.officer_id AND u.is_active AND u.role IN ('admin', 'treasury')
                WHERE a.id = NEW.approval_id AND a.object_type = 'multisig_payload' AND a.object_id = y.id AND a.officer_id = NEW.user_id AND a.action = 'approve'
                    AND a.digest = encode(sha256(y.digest), 'hex')) THEN 'is confirmed by nobody'
            WHEN signing_withheld(y.payment_id) <> '' THEN 'is withheld: ' || signing_withheld(y.payment_id)
            WHEN proposal_hit(p) THEN 'has a recipient who is not accepted any more' END
        WHEN current_user IN ('kivuko_api', 'kivuko_flows', 'kivuko_momo', 'kivuko_signer') THEN 'is verified by the chain''s worker only'
        WHEN intent_terms(NEW.intent_id, 'proposal.sign', p.id, NEW.user_id) ->> 'payload_id' IS DISTINCT FROM y.id::text THEN 'was brought for another payload'
        END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'the signature of % for payload % %', NEW.owner, NEW.payload_id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
