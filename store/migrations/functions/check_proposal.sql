-- Each step of a proposal follows from its payloads and their signatures, from the chain, from who asked for it, or from what officers decided.
-- Only the chain's worker says that another transaction took its number, or that its own moved nothing. What money, payment and payloads have to
-- be by then is checked at the end of the transaction (check_proposal_facts).
CREATE OR REPLACE FUNCTION check_proposal() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moved boolean := OLD.status <> NEW.status;
    ended boolean := moved AND NEW.status IN ('rejected', 'cancelled', 'expired', 'superseded', 'failed');
    fault text;
BEGIN
    IF OLD.signable_at IS NULL AND NEW.signable_at IS NOT NULL THEN
        NEW.signable_at := clock_timestamp() + make_interval(secs => (SELECT l.pause_seconds FROM multisig_policy l));
    END IF;
    NEW.applied_in := CASE WHEN moved AND NEW.status = 'executed' THEN pg_current_xact_id() ELSE OLD.applied_in END;
    fault := CASE
        WHEN NEW.signable_at IS DISTINCT FROM OLD.signable_at AND (moved OR NEW.status <> 'approving' OR (NEW.signable_at IS NOT NULL) <> owners_approved(NEW)
            OR num_nonnulls(OLD.signable_at, NEW.signable_at) = 2 AND NEW.signable_at IS DISTINCT FROM owners_signable(OLD)) THEN 'is not approved by as many officers as it needs'
        WHEN NEW.ending IS DISTINCT FROM OLD.ending AND NOT (NEW.ending IS NULL AND (ended OR NEW.status = 'executed')) THEN CASE
            WHEN moved OR NEW.ending IS NULL THEN 'is to end'
            WHEN NEW.ending IN ('superseded', 'failed') THEN CASE WHEN current_user IN ('kivuko_api', 'kivuko_flows', 'kivuko_momo', 'kivuko_signer') THEN 'was not compared with the chain' END
            WHEN OLD.ending IS NOT NULL OR NOT proposal_may_end(NEW, NEW.ending) THEN 'is ended by nobody' END
        WHEN ended AND NEW.status IS DISTINCT FROM OLD.ending AND (OLD.ending IS NOT NULL OR NOT proposal_may_end(NEW, NEW.status)) THEN 'is ended by nobody'
        WHEN moved AND OLD.ending IS NOT NULL AND NOT ended AND NEW.status <> 'executed' THEN 'is to end'
        WHEN NEW.executed_by IS NOT NULL AND NEW.executed_by IS DISTINCT FROM OLD.executed_by AND NEW.expires_at <= clock_timestamp() THEN 'is executed after its time'
        WHEN (NEW.payload_id, NEW.executed_by) IS DISTINCT FROM (OLD.payload_id, OLD.executed_by)
                AND NOT (NEW.payload_id IS NULL AND NEW.executed_by IS NULL AND EXISTS (SELECT FROM multisig_payloads y WHERE y.id = OLD.payload_id
                    AND (y.status = 'void' OR NOT payload_signed(y.id) AND NOT own_attempt_lives(y.payment_id)))) -- the next one is executed anew
                AND NOT (NOT moved AND NEW.status = 'ready' AND NEW.ending IS NULL
                AND NEW.executed_by IS NOT DISTINCT FROM intent_asker(NEW.id, 'proposal.execute')
                AND EXISTS (SELECT FROM users u WHERE u.id = NEW.executed_by AND u.is_active AND u.role IN ('admin', 'treasury'))
                AND EXISTS (SELECT FROM multisig_payloads y WHERE y.id = NEW.payload_id AND y.proposal_id = NEW.id AND y.status = 'open' AND payload_signed(y.id))) THEN 'is executed by nobody'
        WHEN moved THEN CASE NEW.status
            WHEN 'signing' THEN CASE WHEN OLD.status <> 'approving' AND EXISTS (SELECT FROM multisig_payloads y WHERE y.proposal_id = NEW.id AND y.status = 'open'
                    AND (payload_signed(y.id) OR own_attempt_lives(y.payment_id))) THEN 'has its signatures, or a transaction with them' END
            WHEN 'ready' THEN CASE WHEN OLD.status = 'signing' AND NOT EXISTS (SELECT FROM multisig_payloads y WHERE y.proposal_id = NEW.id AND y.status = 'open' AND payload_signed(y.id))
                THEN 'lacks signatures' END
            WHEN 'broadcasting' THEN CASE WHEN NOT EXISTS (SELECT FROM chain_payments c JOIN chain_attempts a ON a.payment_id = c.id AND NOT a.adopted AND a.status IN ('signed', 'broadcast', 'included')
                WHERE c.purpose = 'proposal' AND c.object_id = NEW.id) THEN 'has no transaction' END
            WHEN 'confirming' THEN CASE WHEN NOT EXISTS (SELECT FROM chain_payments c JOIN chain_attempts a ON a.payment_id = c.id AND a.status = 'included'
                WHERE c.purpose = 'proposal' AND c.object_id = NEW.id) THEN 'is in no block' END
        END
    END;
    IF fault IS NOT NULL THEN
        RAISE EXCEPTION 'proposal % %', NEW.id, fault USING ERRCODE = 'KV001';
    END IF;
    RETURN NEW;
END $$;
