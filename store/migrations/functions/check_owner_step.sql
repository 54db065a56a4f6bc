-- Owners come by a change that enough officers approved, after its pause, by the flows, each once, and nobody else than it names. They are agreed, or gone, or have another
-- weight, in the transaction in which the chain's worker stores that the change was executed (see check_proposal_facts for what they are then).
CREATE OR REPLACE FUNCTION check_owner_step() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    fault text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        fault := CASE
            WHEN NEW.brought_by IS NULL THEN CASE WHEN NEW.standing <> 'agreed' THEN 'is brought by nothing' END
            WHEN NEW.standing <> 'coming' THEN 'is not new'
            WHEN current_user IN ('kivuko_api', 'kivuko_chain', 'kivuko_momo', 'kivuko_signer') THEN 'is brought by the flows only'
            WHEN EXISTS (SELECT FROM multisig_owners a WHERE a.account_id = NEW.account_id AND a.standing = 'agreed' AND a.address = NEW.address) THEN 'is agreed already'
            WHEN NOT EXISTS (SELECT FROM multisig_proposals p, jsonb_array_elements(p.change -> 'owners') o WHERE p.id = NEW.brought_by AND p.wallet_id = NEW.account_id AND p.status = 'approving'
                AND proposal_released(p.id) AND o ->> 'address' IS NOT DISTINCT FROM NEW.address AND o ->> 'user_id' IS NOT DISTINCT FROM NEW.user_id::text
                AND (o ->> 'weight')::int = NEW.weight AND coalesce(o ->> 'label', '') = NEW.label AND NEW.held = (NEW.address IS NULL)) THEN 'is not one of an approved change' END;
    ELSIF (NEW.standing, NEW.weight, NEW.label, NEW.gone_by) IS DISTINCT FROM (OLD.standing, OLD.weight, OLD.label, OLD.gone_by) THEN
        fault := CASE
            WHEN current_user IN ('kivuko_api', 'kivuko_flows', 'kivuko_momo', 'kivuko_signer') THEN 'is changed by the chain''s worker only'
            WHEN OLD.standing = 'gone' OR NEW.standing = 'coming' THEN 'is changed too late, or too early'
            WHEN NOT EXISTS (SELECT FROM multisig_proposals p WHERE p.kind = 'owners' AND p.wallet_id = NEW.account_id AND p.status = 'executed' AND p.applied_in = pg_current_xact_id()
                AND (NEW.gone_by IS NULL OR NEW.gone_by = p.id) AND (OLD.standing <> 'coming' OR OLD.brought_by = p.id)) THEN 'is changed by no change of the owners' END;
    END IF;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'owner % of account % %', NEW.n, NEW.account_id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
